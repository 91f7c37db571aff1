"""The rules of a system prompt: what must, must never and must first be done, each with a way to put it to the test."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from etl.simulator.meaning import Meaning

MOST = 40
"""Rules of one prompt that become values of the grid; the report says how many more there are."""
_LONGEST = 240
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[A-Z\"'*-])|\n+")
_BULLET = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,3}[.)]|#+|>)\s*")
_FORBID = re.compile(
    r"\b(?:never|do not|don't|must not|mustn't|cannot|can't|should not|shouldn't|may not)\s+(?:ever\s+)?", re.I
)
_REQUIRE = re.compile(r"\b(?:always|must|make sure to|be sure to|you need to|you have to|should always)\s+", re.I)
_CONFIRM = re.compile(r"\b(?:confirm(?:s|ed|ation)?|consent|explicit (?:approval|permission|yes))\b", re.I)
_STATE = re.compile(
    r"\b(?:has|have|is|are|was|were)\s+(?:already\s+|been\s+|already been\s+)*(\w+(?:ed|en|nt|id))\b|"
    r"\b(\w+ed)\s+\w+s?\b",
    re.I,
)
_CUSTOMER = re.compile(
    r"\b(?:the|a|any|your)?\s*(?:customer|user|caller|client|guest)s?\b(?!')|\bthem\b|\bpeople\b", re.I
)


class Rule(NamedTuple):
    """One rule."""

    name: str
    """Its own words, as they stand in `scenario.rule`."""
    kind: str
    """confirm (ask before writing), state (never do X to a record in a state), forbid (never X), require (always X)."""
    phrase: str
    """What is forbidden or required, as the person asking would say it."""
    tool: str | None = None
    """For a state rule: the tool it forbids."""
    state: str | None = None
    """For a state rule: the state of the record."""


def rules_of(system_prompt: str, meanings: Mapping[str, Meaning]) -> list[Rule]:
    """Every rule of a system prompt that can be put to the test, in order.

    >>> [rule.kind for rule in rules_of("Be kind. Never share internal notes. Always quote the order number.", {})]
    ['forbid', 'require']
    """
    found: dict[str, Rule] = {}
    for sentence in _SENTENCE.split(system_prompt):
        text = " ".join(_BULLET.sub("", sentence).replace("**", "").replace("`", "").split())
        if len(text.split()) >= 3 and len(text) <= _LONGEST and text not in found:
            rule = _rule(text, meanings)
            if rule is not None:
                found[text] = rule
    return list(found.values())


def _rule(text: str, meanings: Mapping[str, Meaning]) -> Rule | None:
    forbids, requires = _FORBID.search(text), _REQUIRE.search(text)
    if _CONFIRM.search(text) and (forbids or requires or "before" in text.lower() or "ask" in text.lower()):
        return Rule(text, "confirm", "") if any(meaning.writes for meaning in meanings.values()) else None
    cue = forbids or requires
    if cue is None:
        return None
    phrase = text[cue.end() :].strip(" .!;:,")
    words = phrase.split()
    if not 2 <= len(words) <= 16 or not words[0].isalpha() or words[0].lower() in _NO_VERBS:
        return None
    if forbids:
        tool, state = _state_rule(phrase, words[0].lower(), meanings)
        if tool is not None:
            return Rule(text, "state", phrase, tool, state)
    spoken = _CUSTOMER.sub(" me ", phrase)
    spoken = re.sub(r"\bme me\b", "me", " ".join(spoken.split()))
    return Rule(text, "forbid" if forbids else "require", spoken[:1].lower() + spoken[1:])


_NO_VERBS = frozenset(
    [
        "be",
        "have",
        "has",
        "the",
        "a",
        "an",
        "in",
        "on",
        "at",
        "to",
        "if",
        "that",
        "this",
        "only",
        "been",
        "not",
        "you",
        "your",
        "their",
    ]
)


def _state_rule(phrase: str, verb: str, meanings: Mapping[str, Meaning]) -> tuple[str | None, str | None]:
    """The tool that a prohibition names, and the state of the record that it speaks of."""
    words = set(re.findall(r"[a-z]+", phrase.lower()))
    for name, meaning in meanings.items():
        if (
            meaning.writes
            and meaning.id_name
            and meaning.verb == verb
            and set(meaning.entity.split()) & {word for known in words for word in (known, known.rstrip("s"))}
        ):
            found = _STATE.search(phrase)
            state = (found[1] or found[2]).lower() if found else None
            if state and state != meaning.done:
                return name, state
    return None, None
