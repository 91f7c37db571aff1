"""Words that suit the name of an argument or field: cities for a city, paths for a path, ids of the right make."""

from __future__ import annotations

import itertools
import re
from datetime import timedelta
from random import Random  # noqa: TID251  (seeded)
from typing import Any

from etl.simulator.meaning import words_of
from etl.simulator.people import Person, latin, new_street


def _pick(rng: Random, options: tuple[Any, ...] | list[Any]) -> Any:
    return options[int(rng.random() * len(options))]


FILLER = ("north", "amber", "delta", "harbor", "maple", "orbit", "cedar", "lumen", "quartz", "river", "sable", "tempo",
           "violet", "willow", "zephyr", "copper", "drift", "ember", "fable", "grove")  # fmt: skip
_TEXTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("reason why cause", ("no longer needed", "ordered by mistake", "found it cheaper elsewhere", "arrived damaged",
     "changed my plans", "wrong size", "duplicate order", "the delivery takes too long", "medical reasons")),
    ("command cmd script", ("ls -la", "git status", "pytest -q", "npm run build", "git log --oneline -5", "df -h",
     "grep -rn TODO src", "make lint", "cat package.json", "python manage.py check")),
    ("pattern regex glob", ("**/*.py", "TODO", "def test_", "*.md", "import os", "class .*Error", "*.json")),
    ("query q search question keywords prompt", ("wireless headphones", "late fee", "opening hours", "travel insurance",
     "password reset", "winter tyres", "gluten free bread", "night train", "standing desk", "noise complaint")),
    ("title subject summary headline topic", ("Question about an invoice", "Login does not work", "Late delivery",
     "Change of address", "Feedback on last visit", "Weekly plan", "Missing part", "Warranty claim")),
    ("content body text message note notes comment description details thought input", ("Please call before delivery.",
     "The door code has changed.", "Leave it with the neighbour.", "Two parts were missing.", "Meet at the side door.",
     "It arrived a day late.", "The invoice lists the wrong company.", "The second box was open.")),
    ("language lang", ("en", "de", "fr", "es", "pt", "ja")), ("currency", ("USD", "EUR", "GBP", "PLN", "BRL")),
    ("status state", ("open", "active", "pending")), ("type category kind", ("standard", "express", "basic",
                                                                             "premium")),
    ("unit units", ("metric", "imperial")), ("color colour", ("red", "blue", "black", "green")),
    ("size", ("S", "M", "L", "XL")), ("origin from", ("LIS", "BER", "CDG", "AMS", "WAW", "ARN")),
    ("destination to", ("JFK", "NRT", "IST", "MAD", "OSL", "DUB")), ("airport", ("LIS", "BER", "CDG", "JFK")),
    ("product item", ("desk lamp", "kettle", "running shoes", "backpack", "office chair", "water bottle")),
)  # fmt: skip
_TEXT_OF = {word: options for words, options in _TEXTS for word in words.split()}


_FOLDERS = (
    "src",
    "docs",
    "tests",
    "config",
    "lib",
    "scripts",
    "data",
    "web",
    "src/models",
    "src/api",
    "app",
    "tools",
    "notes",
)
_STEMS = ("app", "setup", "parser", "deploy", "sales", "index", "user", "orders", "login", "report", "cache", "client",
          "schema",
          "invoice", "search", "worker", "metrics", "routes", "theme", "backup")  # fmt: skip
_ENDINGS = (".py", ".md", ".ts", ".sh", ".csv", ".html", ".go", ".yaml", ".json", ".txt", ".rs", ".sql")


def named_text(name: str, rng: Random, who: Person) -> str:
    """A string that suits a name."""
    words = words_of(name) if name else ["note"]
    last = words[-1]
    if last in ("email", "mail", "recipient"):
        return who.email
    if last in ("phone", "telephone", "mobile"):
        return who.phone
    if last in ("city", "town", "location", "place"):
        return who.city
    if last in ("street", "address", "line1"):
        street = f"{new_street(who.country.locale, rng)}"
        return f"{street}, {who.city}" if last == "address" else street
    if last in ("zip", "postcode", "zipcode"):
        return f"{int(rng.random() * 90_000) + 10_000}"
    if last in ("country",):
        return who.country.locale[-2:].upper()
    if last in ("name", "customer", "user", "username", "author", "owner", "assignee"):
        first, family = ("first" in words or "given" in words), ("last" in words or "family" in words)
        return who.given if first else who.family if family else who.name
    if last in ("date", "day", "until", "since", "deadline") or (last == "at" and len(words) > 1):
        return (who.today + timedelta(days=1 + int(rng.random() * 45))).isoformat()
    if last in ("time",):
        return f"{int(rng.random() * 12) + 8:02d}:{15 * int(rng.random() * 4):02d}"
    if words[0] == "id" and len(words) > 1:
        return f"{words[1][:3].upper()}-{int(rng.random() * 90_000) + 10_000}"
    if last in ("id", "number", "code", "ref", "reference", "key", "no", "token"):
        prefix = (words[-2] if len(words) > 1 else "ref")[:3].upper()
        return f"{prefix}-{int(rng.random() * 90_000) + 10_000}"
    if last in ("expression", "formula", "equation"):
        sums = ("{} * {} + {}", "({} - {}) * {}", "{} + {} * {}", "{} * {} - {}", "({} + {}) / {}")
        return str(_pick(rng, sums)).format(*(int(rng.random() * 95) + 3 for _ in range(3)))
    if last in ("path", "file", "filename", "filepath", "notebook"):
        return f"{_pick(rng, _FOLDERS)}/{_pick(rng, _STEMS)}{_pick(rng, _ENDINGS)}"
    if last in ("url", "uri", "link"):
        return f"https://www.example.com/{_pick(rng, FILLER)}/{int(rng.random() * 9000) + 1000}"
    options = next((_TEXT_OF[word] for word in reversed(words) if word in _TEXT_OF), None)
    return str(_pick(rng, options)) if options else f"{_pick(rng, FILLER)} {_pick(rng, FILLER)}"


_QUOTED = re.compile(r"""(?:e\.g\.|for example|such as|like|example:)[,:]?\s*["'`]([^"'`]{2,40})["'`]""", re.IGNORECASE)


def described_text(name: str, description: Any, rng: Random, who: Person) -> str:
    """A string that suits a name, or is in the way of the example that a description gives: `such as "#W123"`."""
    quoted = _QUOTED.search(description) if isinstance(description, str) else None
    return masked(quoted[1], rng, who) if quoted else named_text(name, rng, who)


_LETTERS = "ABCDEFGHKLMNPRSTUVWYZ"
_NAME = re.compile("x{2,}")


def masked(example: str, rng: Random, who: Person | None = None) -> str:
    """Another value of the same make: digits are drawn anew; letters stay, but for X, and runs of x, which are names.

    >>> masked("ORD-0", Random(1))[:4]
    'ORD-'
    """
    names = itertools.cycle(latin(who) if who is not None else ("x",))
    if who is not None:
        example = _NAME.sub(lambda _run: next(names), example)
    if who is not None and "X" in example:
        example = "".join(_pick(rng, tuple(_LETTERS)) if char == "X" else char for char in example)
    if not any(char.isdigit() for char in example):
        return example
    return "".join(str(int(rng.random() * 9) + 1) if char.isdigit() else char for char in example)
