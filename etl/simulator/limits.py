"""The dimensions of the grid, their values, and what cannot go together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from etl.simulator.meaning import Meaning
from etl.simulator.rules import Rule

NONE, SEVERAL = "none", "several"
CONDITIONS = (
    "success", "timeout", "malformed_result", "stale_result", "permission_denied", "not_found", "rate_limited",
    "already_done",
)  # fmt: skip
WORLD_STATES = ("exists", "missing", "already_done", "partial", "duplicate")
STANCES = ("ordinary", "hurried", "unsure", "ambiguous", "mistaken", "conflicting", "boundary", "adversarial", "retry")
HISTORIES = ("fresh", "repeat_visit", "prior_failure", "prior_partial", "contradicts_earlier")
LENGTHS = ("short", "medium", "long")
TURNS = {"short": (1, 1), "medium": (2, 3), "long": (4, 6)}
"""User turns, at least and at most."""
DIMENSIONS = ("tool", "tool_condition", "world_state", "stance", "history", "rule", "length")

Cell: TypeAlias = dict[str, str]


class Limit(NamedTuple):
    """What cannot go together: `holds` is false for values of `keys` that no situation can have."""

    keys: tuple[str, ...]
    holds: Callable[[Mapping[str, str]], bool]
    why: str


class Limits:
    """What cannot go together in one domain."""

    def __init__(self, meanings: Mapping[str, Meaning], rules: Mapping[str, Rule]) -> None:
        self._meanings, self._rules = meanings, rules

    def all(self) -> list[Limit]:
        """Every constraint."""
        return [
            Limit(("tool", "tool_condition"), self._condition_fits, "the tool cannot meet this condition"),
            Limit(("tool", "world_state"), self._state_fits, "the tool names no record that could be in this state"),
            Limit(("tool_condition", "world_state"), self._condition_meets_state,
                  "a record is not found exactly where it is missing"),
            Limit(("tool", "tool_condition", "world_state"), self._done_meets_act,
                  "what is done already cannot be done again"),
            Limit(("tool", "stance"), self._stance_fits, "there is no record to be vague or wrong about"),
            Limit(("stance", "world_state"), self._belief_fits,
                  "nobody mistakes a record that is not there for another"),
            Limit(("tool", "stance", "length"), self._stance_has_room, "it takes a second turn to settle this"),
            Limit(("tool", "history"), self._history_fits, "nothing of the kind can have happened before"),
            Limit(("rule", "tool"), self._rule_fits, "the rule does not speak of this tool"),
            Limit(("rule", "stance"), self._rule_has_room, "one test of limits at a time"),
            Limit(("rule", "tool_condition", "world_state"), self._rule_meets_world,
                  "the rule asks for a call that would work"),
            Limit(("rule", "length"), self._confirm_has_room, "it takes a second turn to confirm"),
            Limit(("rule", "history"), self._state_rule_history, "one history at a time"),
        ]  # fmt: skip

    def _of(self, cell: Mapping[str, str]) -> Meaning | None:
        return self._meanings.get(cell["tool"])

    def _has_record(self, cell: Mapping[str, str]) -> bool:
        known = self._of(cell)
        return known is not None and known.id_name is not None

    def _has_story(self, cell: Mapping[str, str]) -> bool:
        """A record with states of its own: a file has none."""
        known = self._of(cell)
        return known is not None and known.id_name is not None and known.entity not in ("file", "page")

    def _kind(self, cell: Mapping[str, str]) -> str:
        known = self._of(cell)
        return known.kind if known else cell["tool"]

    def _condition_fits(self, cell: Mapping[str, str]) -> bool:
        met, tool = cell["tool_condition"], cell["tool"]
        if tool == NONE:
            return met == "success"
        if met == "stale_result":
            return self._kind(cell) in ("read", "search", "compute")
        if met == "not_found":
            return self._has_record(cell)
        return self._kind(cell) == "act" and self._has_story(cell) if met == "already_done" else True

    def _state_fits(self, cell: Mapping[str, str]) -> bool:
        state = cell["world_state"]
        if state == "exists":
            return True
        if state == "missing":
            return self._has_record(cell)
        return self._has_story(cell) and (state != "already_done" or self._kind(cell) in ("read", "act"))

    def _condition_meets_state(self, cell: Mapping[str, str]) -> bool:
        met, state = cell["tool_condition"], cell["world_state"]
        return (met == "not_found") == (state == "missing") and (met != "already_done" or state == "already_done")

    def _done_meets_act(self, cell: Mapping[str, str]) -> bool:
        acts_again = self._kind(cell) == "act" and cell["world_state"] == "already_done"
        return not acts_again or cell["tool_condition"] == "already_done"

    def _stance_fits(self, cell: Mapping[str, str]) -> bool:
        return cell["stance"] not in ("ambiguous", "mistaken", "conflicting") or self._has_story(cell)

    def _belief_fits(self, cell: Mapping[str, str]) -> bool:
        stance, state = cell["stance"], cell["world_state"]
        return not (stance in ("mistaken", "conflicting") and state == "missing") and (stance, state) != (
            "mistaken",
            "duplicate",
        )

    def _stance_has_room(self, cell: Mapping[str, str]) -> bool:
        needs = cell["stance"] in ("ambiguous", "conflicting") or (
            cell["stance"] == "mistaken" and self._kind(cell) != "read"
        )
        return not needs or cell["length"] != "short"

    def _history_fits(self, cell: Mapping[str, str]) -> bool:
        if cell["tool"] == NONE:
            return cell["history"] in ("fresh", "repeat_visit")
        return cell["history"] != "prior_partial" or self._has_story(cell)

    def _rule_fits(self, cell: Mapping[str, str]) -> bool:
        rule = self._rules.get(cell["rule"])
        known = self._of(cell)
        if rule is None or rule.kind in ("forbid", "require"):
            return True
        return rule.tool == cell["tool"] if rule.kind == "state" else known is not None and known.writes

    def _rule_has_room(self, cell: Mapping[str, str]) -> bool:
        rule = self._rules.get(cell["rule"])
        if rule is None:
            return True
        if rule.kind == "state":
            return cell["stance"] in ("ordinary", "hurried", "unsure", "retry")
        return rule.kind == "confirm" or cell["stance"] not in ("boundary", "adversarial")

    def _rule_meets_world(self, cell: Mapping[str, str]) -> bool:
        rule = self._rules.get(cell["rule"])
        works = cell["tool_condition"] == "success" and cell["world_state"] == "exists"
        return rule is None or rule.kind != "state" or works

    def _confirm_has_room(self, cell: Mapping[str, str]) -> bool:
        rule = self._rules.get(cell["rule"])
        return rule is None or rule.kind != "confirm" or cell["length"] != "short"

    def _state_rule_history(self, cell: Mapping[str, str]) -> bool:
        rule = self._rules.get(cell["rule"])
        return rule is None or rule.kind != "state" or cell["history"] != "prior_partial"
