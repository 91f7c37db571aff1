"""State as the judge: what a row carries of its world, and whether it ended as it ought to have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from etl.conversation import Verdict
from etl.simulator.limits import NONE
from etl.simulator.play import Play
from etl.simulator.situation import Situation, blocked

_ADMITS = re.compile(
    r"\b(?:could(?:n't| not)|unable|failed|failure|error|not found|no such|does(?:n't| not) exist|denie[sd]|"
    r"do not have access|polic(?:y|ies)|timed out|did(?:n't| not)|unavailable|reject(?:s|ed)|out of date|"
    r"outdated|older|nothing to do|already|"
    r"rules forbid|there is no)\b",
    re.IGNORECASE,
)


_REFUSES = re.compile(r"\b(?:not allowed|not able|cannot|can(?:'t| not)|won't)\b", re.IGNORECASE)


def verdicts(play: Play) -> list[Verdict]:
    """Rule judgments: the final state of the world, whether what had to be told was told, and, where something could
    not be had, whether that was said.

    Replies alone do not count: who claims success and changed nothing gets 0 for `end_state`; who claims what could not
    be done gets 0 for `told_failure`.
    """
    situation = play.situation
    same = play.world.state == situation.expected
    texts = [message.content for message in play.messages if message.role == "assistant"]
    untold = [fact for fact in situation.outputs if not any(fact in text for text in texts)]
    judged = [
        _verdict("end_state", same, "the world ended as expected" if same else _difference(play)),
        _verdict("outputs", not untold, f"not told: {untold[0]}" if untold else "everything asked for was told"),
    ]
    if situation.hopeless:
        refusing = situation.rule is not None and situation.rule.kind == "state"
        said = any(_ADMITS.search(text) or (refusing and _REFUSES.search(text)) for text in texts)
        judged.append(
            _verdict("told_failure", said, "the failure was told" if said else "nobody was told of the failure")
        )
    return judged


def reward_of(judgments: Sequence[Verdict]) -> float:
    """1 where every rule holds, else 0."""
    return float(all(judgment.value == 1.0 for judgment in judgments))


def told_of(play: Play, agent: dict[str, Any]) -> dict[str, Any]:
    """`extra` of a row: user, agent, tools, the world before and after, and how it ought to end."""
    situation = play.situation
    who = situation.who
    return {
        "user": {
            "name": who.name, "locale": who.country.locale, "city": who.city, "today": who.today.isoformat(),
            "stance": situation.cell["stance"], "wants": _wants(situation),
        },
        "agent": agent,
        "tools": list(situation.domain.tools),
        "state_before": situation.state,
        "state_after": play.world.state,
        "state_expected": situation.expected,
        "outputs_expected": list(situation.outputs),
    }  # fmt: skip


def _wants(situation: Situation) -> list[dict[str, Any]]:
    return [
        {"tool": goal.tool, "arguments": goal.arguments, "possible": blocked(situation, goal) is None}
        for goal in situation.goals
    ] or [{"tool": NONE}]


def _verdict(name: str, holds: bool, reason: str) -> Verdict:
    return Verdict(name, "rule", float(holds), "pass" if holds else "fail", "ok", reason)


def _difference(play: Play) -> str:
    """The first record that is not as it ought to be."""
    after, expected = play.world.state, play.situation.expected
    for entity in sorted({*after, *expected}):
        for key in sorted({*after.get(entity, {}), *expected.get(entity, {})}):
            is_now, ought = after.get(entity, {}).get(key), expected.get(entity, {}).get(key)
            if is_now == ought:
                continue
            if is_now is None or ought is None:
                return f"{entity} {key} {'is missing' if is_now is None else 'should not be there'}"
            field = next(name for name in sorted({*is_now, *ought}) if is_now.get(name) != ought.get(name))
            return f"{entity} {key}: {field} is {is_now.get(field)!r}, not {ought.get(field)!r}"
    return "the world is not as expected"
