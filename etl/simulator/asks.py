"""What people write: asks in many registers, lengths and moods, and what they answer later.

A text is put together from parts that are drawn apart, so that thousands differ; values (ids, names, dates) are
protected from typos and lower case.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence
from random import Random  # noqa: TID251  (seeded)
from typing import Any

from etl.simulator import phrases
from etl.simulator.meaning import VERBS, Meaning, plural, words_of
from etl.simulator.people import Person

_HELD = re.compile("\x01([^\x02]*)\x02")
_ISO_DAY = re.compile(r"^\d{4}-\d\d-\d\d$")


def held(value: Any) -> str:
    """A value that typos and lower case must leave alone."""
    return f"\x01{value}\x02"


def pick(rng: Random, options: Sequence[str]) -> str:
    """One of them."""
    return options[int(rng.random() * len(options))]


def spoken_value(value: Any, who: Person) -> str:
    """A value as this person writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return who.date(dt.date.fromisoformat(value)) if _ISO_DAY.match(value) else value
    if isinstance(value, list):
        return ", ".join(spoken_value(item, who) for item in value)
    if isinstance(value, dict):
        return " ".join(f"{label(key)} {spoken_value(item, who)}" for key, item in value.items())
    return str(value) if isinstance(value, int | float) else json.dumps(value)


def label(name: str) -> str:
    """The name of an argument or field in words."""
    return " ".join(words_of(name))


def detail(name: str, value: Any, who: Person) -> str:
    """One argument as a phrase of a sentence."""
    last, shown = words_of(name)[-1], held(spoken_value(value, who).rstrip("."))
    if isinstance(value, bool):
        return f"{'with' if value else 'without'} {label(name)}"
    if isinstance(value, list | dict):
        return f"{label(name)}: {shown}"
    if last in ("reason", "why", "cause"):
        return f"the reason is: {shown}"
    for words, before in phrases.PREPOSITIONS:
        if last in words:
            return f"{before} {shown}"
    return f"{label(name)} {shown}"


def details(arguments: Mapping[str, Any], who: Person, rng: Random, leave_out: Sequence[str] = ()) -> str:
    """All arguments that the ask has to say, as the end of a sentence."""
    parts = [
        detail(name, value, who) for name, value in arguments.items() if name not in leave_out and value is not None
    ]
    if not parts:
        return ""
    if len(parts) > 2:
        return pick(rng, (" – ", ", details: ", ", namely: ", ". The details: ")) + "; ".join(parts)
    return pick(rng, (", ", ", ", " (")) + " and ".join(parts)


def request(meaning: Meaning, known: str | None, rng: Random, description: str = "") -> str:
    """The core of an ask. `known` is how the record is named; None where it is not."""
    thing = meaning.entity or "it"
    # "my order X", "order X"; without an id "my order"
    named = (
        f"{pick(rng, ('', '', 'my ', 'our '))}{thing} {held(known)}"
        if known
        else f"{pick(rng, ('my', 'our', 'that'))} {thing}"
    )
    if meaning.entity in ("file", "page"):
        named = held(known) if known else f"the {thing}"
    rest = " ".join(word for word in meaning.words[1:] if word not in thing.split() and word not in plural(thing))
    filling = {
        "verb": meaning.verb, "done": meaning.done, "named": named, "rest": rest or "details", "thing": thing,
        "things": plural(thing), "what": " ".join(meaning.words[1:]) or thing,
    }  # fmt: skip
    filling["a_thing"] = ("an " if thing[:1] in "aeiou" else "a ") + thing
    kind = meaning.kind
    if meaning.id_name is None and (
        kind == "compute" or (kind == "read") or (len(meaning.words) == 1 and kind != "search")
    ):
        does = _does(meaning, description)
        if does is None and (len(meaning.words) == 1 or meaning.words[-1] in _READABLE):
            return pick(rng, phrases.READINGS).format(what=" ".join(meaning.words))
        does = does or f"use {' '.join(meaning.words)}"
        return pick(rng, phrases.COMPUTE).format(does=does)
    if meaning.entity in ("file", "page") and kind == "read":
        kind = "read_file"
    if kind == "update" and rest:
        kind = "update_part"
    if kind == "send" and meaning.id_name is None:
        kind = "send_out"
    if kind in ("act", "delete") and meaning.id_name is None:
        return pick(rng, phrases.COMPUTE).format(does=" ".join(meaning.words))
    return pick(rng, phrases.REQUESTS[kind]).format(**filling)


_READABLE = frozenset(
    [
        "level",
        "table",
        "status",
        "info",
        "price",
        "prices",
        "rate",
        "rates",
        "list",
        "balance",
        "hours",
        "weather",
        "forecast",
        "details",
        "stock",
        "schedule",
        "report",
        "state",
        "history",
        "summary",
        "time",
        "date",
        "temperature",
        "departures",
        "arrivals",
        "menu",
    ]
)
"""Last words of names that are things one can be told."""
_SHELLS = frozenset(["bash", "shell", "terminal", "exec", "sh", "zsh", "powershell"])


def _does(meaning: Meaning, description: str) -> str | None:
    """What a tool does, as one asks for it; None where its name is that of a thing."""
    words = re.split(r"[.\n(:,;]", description.strip())[0].split()
    if 2 <= len(words) <= 9 and words[0].isalpha():
        verb = words[0].lower()
        verb = verb[:-1] if verb not in VERBS and verb.endswith("s") else verb
        if verb in VERBS:
            return " ".join([verb, *words[1:]])
    if meaning.words[0] in _SHELLS:
        return "run a command"
    return " ".join(meaning.words) if meaning.words[0] in VERBS else None


def written(
    core: str, rng: Random, who: Person, *, before: Sequence[str] = (), after: Sequence[str] = (), hurried: bool = False
) -> str:  # fmt: skip
    """A whole ask: greeting, what comes before, the request, what comes after, farewell, in one register."""
    register = "terse" if hurried else phrases.REGISTERS[int(rng.random() * len(phrases.REGISTERS))]
    before = list(before)
    if register == "chatty" or (register == "plain" and rng.random() < 0.35):
        before.insert(int(rng.random() * (len(before) + 1)), backstory(rng, who))
    if register == "chatty" and rng.random() < 0.5:
        after = [*after, backstory(rng, who)]
    body = [*before, _sentence(core, rng, ends=not core.endswith("?")), *after]
    if register == "terse":
        text = " ".join(part.rstrip(".") + ("" if part.endswith("?") else pick(rng, (".", " -", ","))) for part in body)
        text = _lower(text).rstrip(",-. ") + (
            "" if rng.random() < 0.6 else pick(rng, (" asap", " pls", " thx", "!", " quick"))
        )
        return _plain(typos(text, rng, 0.06))
    opener = _opener(register, rng, who)
    closer = _closer(register, rng, who)
    text = " ".join([part for part in (opener, *body, closer) if part]).replace("\n ", "\n").replace(" \n", "\n")
    return _plain(typos(text, rng, 0.03 if register == "sloppy" else 0.0))


def _sentence(core: str, rng: Random, *, ends: bool) -> str:
    first = core[:1].upper() + core[1:]
    return first + ("." if ends and not first.endswith((".", "!")) else "")


def _opener(register: str, rng: Random, who: Person) -> str:
    if register == "formal":
        return pick(rng, phrases.FORMAL_OPENERS) + "\n\n"
    if rng.random() < 0.3:
        return ""
    hello = pick(rng, who.country.hello) if rng.random() < 0.4 else pick(rng, phrases.OPENERS)
    named = rng.random() < 0.25
    ending = pick(rng, (".", "!", " -", "."))
    return f"{held(hello)}, {held(who.name)} here." if named else f"{held(hello)}{ending}"


def _closer(register: str, rng: Random, who: Person) -> str:
    if register == "formal":
        return f"\n\n{pick(rng, phrases.FORMAL_CLOSERS)}\n{held(who.name)}"
    if rng.random() < 0.45:
        return ""
    return held(pick(rng, who.country.bye)) if rng.random() < 0.4 else pick(rng, phrases.CLOSERS)


def backstory(rng: Random, who: Person) -> str:
    """A sentence about the life of the person asking."""
    story = pick(rng, phrases.STORIES).format(
        kin=pick(rng, phrases.KIN), when=pick(rng, phrases.WHEN), event=pick(rng, phrases.EVENTS),
        mood=pick(rng, phrases.MOODS), city=held(who.city), thing=pick(rng, phrases.OBJECTS),
    )  # fmt: skip
    return story[:1].upper() + story[1:]


def typos(text: str, rng: Random, rate: float) -> str:
    """Some ordinary words misspelt as fingers do it."""
    if not rate:
        return text
    made = []
    for part in re.split("(\x01[^\x02]*\x02|\\s+)", text):
        if len(part) > 4 and part.isalpha() and part.isascii() and rng.random() < rate * 2:
            place = 1 + int(rng.random() * (len(part) - 3))
            kind = int(rng.random() * 3)
            if kind == 0:
                part = part[:place] + part[place + 1] + part[place] + part[place + 2 :]
            elif kind == 1:
                part = part[:place] + part[place + 1 :]
            else:
                part = part[:place] + part[place] + part[place:]
        made.append(part)
    return "".join(made)


def _lower(text: str) -> str:
    return "".join(part if part.startswith("\x01") else part.lower() for part in re.split("(\x01[^\x02]*\x02)", text))


def _plain(text: str) -> str:
    return " ".join(_HELD.sub(r"\1", text).split(" "))


def said(rng: Random, options: Sequence[str], **filling: Any) -> str:
    """One of the phrases, filled in."""
    return pick(rng, options).format(**filling)
