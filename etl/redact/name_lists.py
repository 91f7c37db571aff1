"""Names of people and places, from the data of mimesis and Faker: given names and surnames of some 80 countries.

Both make up people for tests, and are kept. Larger lists exist, scraped from people who were not asked.
"""

from __future__ import annotations

import functools
import importlib
import json
import pkgutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import resources
from typing import Any, NamedTuple


class NameLists(NamedTuple):
    """All in lower case."""

    given: Counter[str]
    """Given names, and in how many languages each is one."""
    surnames: frozenset[str]
    places: frozenset[str]
    """Cities, and states of countries."""


@functools.cache
def name_lists() -> NameLists:
    """The lists, read once per process."""
    given: defaultdict[str, set[str]] = defaultdict(set)
    surnames: set[str] = set()
    places: set[str] = set()
    for kind, language, name in (*_of_mimesis(), *_of_faker()):
        if kind == "given":
            given[name].add(language)
        else:
            (surnames if kind == "surname" else places).add(name)
    counts = Counter({name: len(languages) for name, languages in given.items()})
    return NameLists(counts, frozenset(surnames), frozenset(places))


def _of_mimesis() -> Iterator[tuple[str, str, str]]:
    """Kind, language and name, of the files of data."""
    for locale in resources.files("mimesis").joinpath("datasets").iterdir():
        for file, key, kind in (
            ("person.json", "names", "given"),
            ("person.json", "surnames", "surname"),
            ("address.json", "city", "place"),
            ("address.json", "state", "place"),
        ):
            path = locale.joinpath(file)
            if path.is_file():
                for name in _flat(json.loads(path.read_text(encoding="utf-8")).get(key, ())):
                    yield kind, locale.name[:2], name.lower()


def _of_faker() -> Iterator[tuple[str, str, str]]:
    """The same of the providers of people: `first_names_female`, `last_names` and their like."""
    from faker.providers import person

    for module in pkgutil.iter_modules(person.__path__):
        provider = importlib.import_module(f"{person.__name__}.{module.name}").Provider
        for attribute, values in vars(provider).items():
            kind = "given" if "first_name" in attribute else "surname" if "last_name" in attribute else None
            if kind is not None and not callable(values):
                for name in _flat(values):
                    yield kind, module.name[:2], name.lower()


def _flat(names: Any) -> Iterator[str]:
    """The names of a list, of lists by gender, of pairs (a way of writing, a name), of names with weights."""
    if isinstance(names, str):
        yield names
    elif isinstance(names, dict):
        for key, value in names.items():
            yield from _flat(key if isinstance(value, int | float) else value)
    elif isinstance(names, list | tuple):
        for name in names:
            yield from _flat(name)
