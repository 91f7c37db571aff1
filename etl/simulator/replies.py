"""What an honest agent says: facts as results have them, failures as they are, questions where something is open."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random  # noqa: TID251  (seeded)
from typing import TYPE_CHECKING, Any, NamedTuple

from etl.simulator.asks import label, pick, said
from etl.simulator.meaning import Meaning, plural, words_of

if TYPE_CHECKING:
    from etl.simulator.domain import Domain


class Fact(NamedTuple):
    """Something that a result tells."""

    name: str
    value: str


_SECRET = frozenset(["key", "token", "password", "secret", "pin", "hash"])
"""Words in names of fields that nobody is told."""


def facts_in(value: Any, leave_out: str | None = None) -> list[Fact]:
    """Every plain fact of a result, in its order."""
    if isinstance(value, str):
        line = next((line.strip() for line in value.splitlines() if line.strip()), "")
        return [Fact("output", line)] if line else []
    if not isinstance(value, Mapping):
        return []
    found = []
    for name, item in value.items():
        if name == leave_out or item is None or _SECRET & set(words_of(name)):
            continue
        if isinstance(item, bool):
            found.append(Fact(label(name), "yes" if item else "no"))
        elif isinstance(item, str | int | float) and len(str(item)) <= 80 and "\n" not in str(item) and str(item):
            found.append(Fact(label(name), str(item)))
        elif isinstance(item, Mapping):
            found += [Fact(f"{label(name)} {inner.name}", inner.value) for inner in facts_in(item)[:2]]
    return found


def fact_of(meaning: Meaning, domain: Domain, value: Any) -> Fact | None:
    """The fact that answers the question: how far a record is, else the first thing that the result tells."""
    shape = domain.shapes.get(meaning.entity)
    found = facts_in(value, meaning.id_name)
    if shape is not None and shape.status is not None:
        status = label(shape.status)
        return next((fact for fact in found if fact.name == status), found[0] if found else None)
    return found[0] if found else None


def named(meaning: Meaning, record_id: Any) -> str:
    """The record, as one speaks of it."""
    if record_id is None:
        return f"the {meaning.entity}" if meaning.entity else "it"
    return f"the file {record_id}" if meaning.entity == "file" else f"{meaning.entity} {record_id}"


def doing(meaning: Meaning) -> str:
    """What a tool that names no record does, as an infinitive."""
    rest = " ".join(word for word in meaning.words if word != meaning.verb)
    if meaning.kind in ("create", "send") and rest:
        return f"{meaning.verb} {rest}" if rest.split()[0] in _SMALL else f"{meaning.verb} the {rest}"
    return f"do that ({' '.join(meaning.words)})"


_SMALL = frozenset(["to", "for", "from", "with", "by", "on", "in"])


def read_reply(meaning: Meaning, record_id: Any, answer: Fact | None, more: list[Fact], rng: Random) -> str:
    """What was found."""
    thing = named(meaning, record_id)
    if answer is None:
        text = said(
            rng, ("I have looked at {thing}; it is there.", "{Thing} is there."), thing=thing, Thing=_cap(thing)
        )
    elif meaning.entity == "file" and answer.name in ("output", "content"):
        text = said(rng, ("{Thing} begins with: {value}", "In {thing} the first line is: {value}"), thing=thing,
                    Thing=_cap(thing), value=answer.value)  # fmt: skip
    elif answer.name == "output":
        ended = answer.value if answer.value.endswith((".", "!", "?")) else f"{answer.value}."
        text = said(
            rng, ("It says: {value}", "This is what came back: {value}", "The answer was: {value}"), value=ended
        )
    elif record_id is None:
        text = said(rng, _FOUND, name=answer.name, value=answer.value)
    elif answer.name in ("status", "state", "stage", "phase"):
        text = said(rng, _STATUS, thing=thing, Thing=_cap(thing), value=answer.value)
    else:
        text = said(rng, _FIELD, thing=thing, Thing=_cap(thing), name=answer.name, value=answer.value)
    for fact in more:
        text += " " + said(rng, _MORE, name=fact.name, value=fact.value)
    return text


_FOUND = ("The {name} is {value}.", "Here is what came back, the {name}: {value}.", "I got this {name}: {value}.",
          "Result: {name} {value}.", "Done. {name}: {value}.")  # fmt: skip
_STATUS = ("{Thing} is {value}.", "I checked: {thing} is {value}.", "The system shows {thing} as {value}.",
           "Right now {thing} is {value}.", "{Thing} stands at {value}.",
           "Its current status is {value} ({thing}).")  # fmt: skip
_FIELD = (
    "{Thing}: the {name} is {value}.",
    "I looked up {thing}. The {name} is {value}.",
    "For {thing} the {name} reads {value}.",
)
_MORE = (
    "The {name} is {value}.",
    "It also shows the {name}: {value}.",
    "{name}: {value}.",
    "On file, {name}: {value}.",
)


def search_reply(meaning: Meaning, value: Any, rng: Random) -> str:
    """What a search gave."""
    rows: list[dict[str, Any]]
    if isinstance(value, str):
        rows = [{"line": line} for line in value.splitlines() if line and line != "no matches"]
    else:
        rows = rows_in(value)
    things = plural(meaning.entity) if meaning.entity else "results"
    if not rows:
        return said(rng, ("There are no {things} for that.", "The search gave no {things}."), things=things)
    names = [
        str(next((v for v in row.values() if isinstance(v, str | int) and not isinstance(v, bool)), ""))
        for row in rows[:3]
    ]
    return said(rng, ("I found {n}: {names}.", "Here is what there is ({n}): {names}.", "{n} came up: {names}."),
                n=len(rows), names="; ".join(filter(None, names)) or things)  # fmt: skip


def rows_in(value: Any) -> list[dict[str, Any]]:
    """The rows of a search result."""
    if isinstance(value, Mapping):
        value = next((item for item in value.values() if isinstance(item, list)), [])
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def write_reply(meaning: Meaning, record_id: Any, value: Any, rng: Random) -> str:
    """What was done."""
    if record_id is not None and meaning.kind in ("act", "delete"):
        return said(
            rng, _ACTED, thing=named(meaning, record_id), Thing=_cap(named(meaning, record_id)), done=meaning.done
        )
    if record_id is not None:
        return said(
            rng, _UPDATED, thing=named(meaning, record_id), Thing=_cap(named(meaning, record_id)), done=meaning.done
        )
    new = next((fact for fact in facts_in(value) if fact.name.endswith(("id", "number", "reference"))), None)
    rest = [word for word in meaning.words if word != meaning.verb]
    what = " ".join(rest) or meaning.entity
    text = said(rng, _MADE_TO if rest and rest[0] in _SMALL else _MADE, what=what, done=meaning.done)
    return f"{text} The {new.name} is {new.value}." if new else text


_ACTED = (
    "{Thing} is {done} now.",
    "Done: {thing} has been {done}.",
    "{Thing} has been {done}.",
    "I have {done} {thing}.",
)
_UPDATED = ("{Thing} has been {done} as you asked.", "Done, {thing} is {done}.", "I have {done} {thing} accordingly.")
_MADE_TO = ("Done, {done} {what}.", "I have {done} this {what}.")
_MADE = ("Done: {what} {done}.", "That is taken care of: {what} {done}.", "I have {done} the {what}.")


def failure_reply(condition: str, meaning: Meaning, record_id: Any, rng: Random, tries: int) -> str:
    """What did not work, and why."""
    thing = named(meaning, record_id)
    again = " I tried it more than once." if tries > 1 and rng.random() < 0.6 else ""
    what = f"{meaning.verb} {thing}" if meaning.id_name else doing(meaning)
    bare = thing.removeprefix("the ")
    text = said(rng, _FAILED[condition], what=what, thing=thing, Thing=_cap(thing), bare=bare)
    text += again
    if meaning.writes and condition != "already_done":
        text += " " + pick(rng, ("Nothing has been changed.", "Everything is as it was before.", "No change was made."))
    return text


_FAILED: dict[str, tuple[str, ...]] = {
    "timeout": ("I could not {what}: the system did not answer in time.",
                "The request to {what} timed out, so it failed.",
                "I was unable to {what}; there was no answer from the system."),
    "rate_limited": ("I could not {what}: the system takes no more requests at the moment.",
                     "I was unable to {what} because of a limit on requests. It needs some time before the next try."),
    "malformed_result": ("I could not {what}: what came back was not readable.",
                         "The system sent something unreadable, so I was unable to {what}."),
    "stale_result": ("I could not get a current answer: all I see about {thing} is an older copy.",
                     "What I get for {thing} is out of date, so I was unable to tell how things stand today."),
    "permission_denied": ("I could not {what}: I do not have access.",
                          "I was unable to {what}, the system denies me access."),
    "not_found": ("I could not find {thing}.", "{Thing} was not found; I was unable to go on.",
                  "There is no {bare} in the system, so I could not {what}."),
    "already_done": ("There was nothing to do: {thing} is in that state already.",
                     "I could not {what} again, that had been done already."),
    "error": ("I could not {what}: the system reported an error.",
              "An error in the system kept me from it: I was unable to {what}."),
    "invalid_arguments": ("I could not {what}: the system rejected the request.",
                          "The request to {what} was rejected, so it failed."),
}  # fmt: skip


def claim(meaning: Meaning, domain: Domain, record_id: Any, rng: Random, avoid: str = "") -> str:
    """Success, claimed without any."""
    if meaning.writes:
        return write_reply(meaning, record_id, None, rng)
    if meaning.kind == "search":
        return said(rng, ("I found three: all of them fit.", "Here is what there is: two that fit exactly."))
    shape = domain.shapes.get(meaning.entity)
    words = [word for word in (shape.statuses if shape else ("complete", "in order")) if word != avoid] or ["in order"]
    return said(
        rng, _STATUS, thing=named(meaning, record_id), Thing=_cap(named(meaning, record_id)), value=pick(rng, words)
    )


def correction(belief: str, actual: str, rng: Random) -> str:
    """That somebody is wrong, said plainly."""
    return said(rng, ("It is not {belief} but {actual}.", "So {belief} is not correct.",
                      "{Belief} does not match what is on file."),
                belief=belief, Belief=_cap(belief), actual=actual)  # fmt: skip


def asks_id(meaning: Meaning, rng: Random) -> str:
    """Which record is meant."""
    return said(rng, ("Which {thing} is it about? Please give me its {id}.",
                      "I need the {id} of the {thing} for that. What is it?",
                      "Can you tell me the {id} of the {thing}?"), thing=meaning.entity,
                      id=label(meaning.id_name or "id"))  # fmt: skip


def asks_which(ids: list[str], meaning: Meaning, rng: Random) -> str:
    """Which of several is meant."""
    return said(rng, ("Which one do you mean, {ids}?", "There are {both}. Which {thing} is it?",
                      "I have {both} here. Which one shall I take?"),
                ids=" or ".join(ids), both=" and ".join(ids), thing=meaning.entity)  # fmt: skip


def asks_leave(meaning: Meaning, record_id: Any, rng: Random) -> str:
    """Whether to go on."""
    what = f"{meaning.verb} {named(meaning, record_id)}" if record_id is not None else doing(meaning)
    return said(rng, ("You want me to {what}. Shall I go ahead?", "Before I {what}: please confirm with yes.",
                      "I am about to {what}. Is that all right?",
                      "To be safe: do you confirm that I should {what}?"), what=what)  # fmt: skip


def declines(what: str, rng: Random) -> str:
    """That something besides is not to be had here."""
    return said(rng, ("I can't help with the other point ({what}).",
                      "As for the rest: I am not able to deal with {what}.",
                      "{What}: that is something I cannot do here."), what=what, What=_cap(what))  # fmt: skip


def to_agent(phrase: str) -> str:
    """A phrase of the person asking, as the agent says it."""
    return re.sub(r"\bme\b", "you", re.sub(r"\bmy\b", "your", phrase))


def stays_with_rule(phrase: str, rng: Random) -> str:
    """That a rule forbids something."""
    return said(rng, ("I can't {phrase}; our rules do not allow it.", "As for the rest: I am not allowed to {phrase}.",
                      "I cannot {phrase}, not even as an exception."), phrase=to_agent(phrase))  # fmt: skip


def keeps_to(what: str, rng: Random) -> str:
    """That a rule stands."""
    return said(rng, ("I can't leave that out: wherever it applies, I have to {what}.",
                      "I have to {what}, also this time.",
                      "I cannot skip it, I do have to {what} whenever it comes up."), what=what)  # fmt: skip


def refuses(rule: str, meaning: Meaning, record_id: Any, status: str, rng: Random) -> str:
    """That a rule forbids it."""
    return said(rng, ("I cannot {verb} {thing}: it is {status}, and our policy does not allow that.",
                      "{Thing} is {status}. In that state I am not allowed to {verb} it.",
                      "I'm not able to {verb} {thing}, since it is {status} and the rules forbid that."),
                verb=meaning.verb, thing=named(meaning, record_id), Thing=_cap(named(meaning, record_id)),
                status=status)  # fmt: skip


def off_topic(rng: Random) -> str:
    """That an ask has nothing to do with what the agent is for."""
    return pick(rng, ("I can't help with that here; I only deal with what my tools cover.",
                      "That is outside of what I can do here.",
                      "I am not able to help with that. I can only work on the topics of this desk.",
                      "Sorry, that is nothing I can do from here."))  # fmt: skip


def _cap(text: str) -> str:
    return text[:1].upper() + text[1:]
