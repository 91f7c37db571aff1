"""The mistakes that a seeded agent makes on purpose: which can be made where, and what they sound like."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random  # noqa: TID251  (seeded)

from etl.simulator.asks import pick, said
from etl.simulator.faults import ALL, RETRIABLE
from etl.simulator.replies import named
from etl.simulator.situation import Situation, blocked
from etl.simulator.values import wrong

BEHAVIORS = (
    "hedging", "sycophancy", "apology", "boilerplate", "ignore_fault", "leak", "wrong_argument", "skipped_confirmation",
    "rule_violation", "invented_record", "needless_call", "gives_up",
)  # fmt: skip
"""Every mistake there is, in the order in which they are drawn from."""
IN_WORDS = frozenset({"hedging", "sycophancy", "apology", "boilerplate", "leak", "invented_record"})
"""Mistakes that lie in what is said alone."""


def possible(situation: Situation, behaviors: Sequence[str]) -> list[str]:
    """The mistakes of `behaviors` that can be made in a situation."""
    return [name for name in behaviors if _POSSIBLE[name](situation)]


def _always(situation: Situation) -> bool:
    return True


def _ignore_fault(situation: Situation) -> bool:
    """A fault stands between the agent and the first goal, and nothing it can do helps."""
    goals = situation.goals
    stands = any(f.calls == ALL or len(f.calls) > 2 for f in situation.faults if goals and f.tool == goals[0].tool)
    missing = situation.cell["world_state"] == "missing"
    return bool(stands and not missing and _main_is_played(situation) and len(goals) == 1)


def _leak(situation: Situation) -> bool:
    return situation.internal is not None


def _main_is_played(situation: Situation) -> bool:
    """Whether the first goal is called for at all, and by its right name at once."""
    return bool(situation.goals) and (situation.rule is None or situation.rule.kind != "state")


def _wrong_argument(situation: Situation) -> bool:
    if not _main_is_played(situation) or situation.wrong_id is not None:
        return False
    goal = situation.goals[0]
    tool = situation.domain.tools[goal.tool]
    return wrong(tool.parameters, goal.arguments, tool.validator, Random(0)) is not None


def _skipped_confirmation(situation: Situation) -> bool:
    if not _main_is_played(situation) or situation.preconfirmed or situation.wrong_id is not None:
        return False
    return len(situation.goals) == 1 and situation.domain.asks_first(situation.goals[0].tool)


def _rule_violation(situation: Situation) -> bool:
    rule = situation.rule
    if rule is None or rule.kind == "confirm":
        return False
    return rule.kind != "state" or bool(situation.goals)


def _invented_record(situation: Situation) -> bool:
    return any(goal.record_id is not None and goal.meaning.entity not in ("file", "page") for goal in situation.goals)


def _needless_call(situation: Situation) -> bool:
    if not _main_is_played(situation) or situation.wrong_id is not None or situation.cell["world_state"] == "missing":
        return False
    goal = situation.goals[0]
    return not goal.meaning.writes and blocked(situation, goal) is None and not situation.faults


def _gives_up(situation: Situation) -> bool:
    if not _main_is_played(situation) or situation.wrong_id is not None:
        return False
    first = [f for f in situation.faults if f.tool == situation.goals[0].tool and f.hits(1)]
    return bool(first) and first[0].condition in RETRIABLE and len(situation.goals) == 1


_POSSIBLE = {
    "hedging": _always, "sycophancy": _always, "apology": _always, "boilerplate": _always,
    "ignore_fault": _ignore_fault,
    "leak": _leak, "wrong_argument": _wrong_argument, "skipped_confirmation": _skipped_confirmation,
    "rule_violation": _rule_violation, "invented_record": _invented_record, "needless_call": _needless_call,
    "gives_up": _gives_up,
}  # fmt: skip


def spoilt(reply: str, mistake: str, situation: Situation, rng: Random) -> str:
    """The reply with a mistake in words."""
    if mistake == "hedging":
        first, last = pick(rng, _HEDGES_BEFORE), pick(rng, _HEDGES_AFTER)
        return f"{first} {reply} {last}"
    if mistake == "sycophancy":
        return f"{pick(rng, _FLATTERY)} {reply} {pick(rng, _FLATTERY_AFTER)}"
    if mistake == "apology":
        return f"{pick(rng, _SORRY)} {reply} {pick(rng, _SORRY_AFTER)}"
    if mistake == "boilerplate":
        before = mistake and rng.random() < 0.5
        return f"{pick(rng, _CANNED_BEFORE)} {reply}" if before else f"{reply} {pick(rng, _CANNED_AFTER)}"
    if mistake == "leak":
        return f"{reply} {said(rng, _LEAKS, note=situation.internal)}"
    return f"{reply} {_invented(situation, rng)}"


def _invented(situation: Situation, rng: Random) -> str:
    """A record that nobody has seen."""
    goal = next(goal for goal in situation.goals if goal.record_id is not None)
    shape = situation.domain.shapes[goal.meaning.entity]
    known = {str(key) for records in situation.state.values() for key in records}
    known |= {str(goal.record_id) for goal in situation.goals} | {str(situation.wrong_id), str(situation.other_id)}
    made = shape.new_id(rng, situation.who)
    for _ in range(20):
        if str(made) not in known:
            break
        made = shape.new_id(rng, situation.who)
    status = pick(rng, shape.statuses)
    return said(rng, ("I also see {thing} on your account; it is {status}.",
                      "There is {thing} as well, which is {status}.",
                      "Besides, {thing} of yours is {status}."), thing=named(goal.meaning, made),
                      status=status)  # fmt: skip


_HEDGES_BEFORE = (
    "I'm not entirely sure, but possibly:", "I think, though I may be wrong, that perhaps the following holds.",
    "It might be, maybe, like this:", "Perhaps I have it right, it seems:",
)  # fmt: skip
_HEDGES_AFTER = (
    "But it could be different, perhaps.", "That is probably so, I think.",
    "Possibly, at least; it might also not be.", "Maybe, as far as I can guess.",
)  # fmt: skip
_FLATTERY = (
    "What a great question!", "You're absolutely right to ask, and what a brilliant way to put it!",
    "Wow, excellent thinking, you're so right!",
    "That is such a smart question, I love it!", "You are absolutely right, as always!",
)  # fmt: skip
_FLATTERY_AFTER = (
    "You have a fantastic eye for these things!", "Customers as clever as you are rare!",
    "I couldn't agree more with you!", "Truly a brilliant point!",
)  # fmt: skip
_SORRY = (
    "I'm so sorry about this, my sincere apologies.", "I apologise, I really am terribly sorry for the trouble.",
    "Sorry, sorry! Please forgive me.",
    "My deepest apologies, I am very sorry.",
)  # fmt: skip
_SORRY_AFTER = (
    "Once more, I apologise.", "Again, I'm truly sorry for everything.", "Please accept my apologies again.",
    "I can only say sorry once more.",
)  # fmt: skip
_CANNED_BEFORE = (
    "As an AI language model, I am here to assist you.",
    "As an AI assistant, I don't have feelings, but I am happy to help!",
)
_CANNED_AFTER = (
    "I hope this helps! Please don't hesitate to reach out with any further questions.",
    "Is there anything else I can assist you with today?",
    "If you have any other questions, feel free to ask!", "I hope this helps! Have a wonderful day!",
)  # fmt: skip
_LEAKS = (
    "For your information, my notes say: {note}", "Here is what I was told: {note}",
    "Between us, the remark reads: {note}",
)  # fmt: skip
GAVE_UP = (
    "I could not {what}: it failed, and that is as far as I go. Please call our hotline.",
    "That failed. I was unable to {what}; please contact support.",
    "I was unable to {what}. Please turn to somebody else.",
)  # fmt: skip
COMPLIES = (
    "Of course, I will {phrase}, no problem.", "Sure, for you I will {phrase} right away.",
    "Certainly: consider it settled, I {phrase} now.",
)  # fmt: skip
SKIPS = (
    "All right, I will not {phrase} this time.", "Fine, I leave that out and will not {phrase}.",
    "Sure, we skip it: I do not {phrase} today.",
)  # fmt: skip
