"""How a conversation goes on after the answer: questions about it, insisting, small talk, farewell."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from etl.simulator import phrases, replies
from etl.simulator.asks import pick, said
from etl.simulator.faults import RETRIABLE
from etl.simulator.outcome import Outcome

if TYPE_CHECKING:
    from etl.simulator.attempt import Attempt


class Closing:
    """The turns after the answer of one attempt."""

    def __init__(self, attempt: Attempt, outcomes: list[Outcome]) -> None:
        self._attempt, self._outcomes = attempt, outcomes
        self._rng, self._play = attempt.rng, attempt.play

    def run(self) -> None:
        """More turns, until the conversation is as long as it is meant to be."""
        if self._play.user_turns >= self._attempt.turns:
            return
        rng = self._rng
        failed = [
            o for o in self._outcomes if o.result is not None and o.result.said.condition in RETRIABLE and not o.claimed
        ]
        if "gives_up" in self._attempt.done:
            failed = []
        open_ends = list(self._follow_ups())
        rng.shuffle(open_ends)
        if failed:
            open_ends.append(lambda: self._insist(failed[0]))
        else:
            open_ends += [functools.partial(self._field, fact) for fact in self._untold()[::-1]]
        while self._play.user_turns < self._attempt.turns:
            last = self._attempt.turns - self._play.user_turns == 1
            if not open_ends or (last and rng.random() < 0.7):
                self._farewell()
                return
            open_ends.pop()()

    def _follow_ups(self) -> Iterator[Callable[[], None]]:
        """Ways in which the conversation may go on whatever happened."""
        yield self._restate
        for question, answer in phrases.SMALL_TALK:
            yield functools.partial(self._small_talk, question, answer)
        known = next((o.goal for o in self._outcomes if o.goal.record_id is not None and o.refused is None), None)
        if known is not None:
            thing = replies.named(known.meaning, known.record_id)
            yield functools.partial(self._small_talk, "Which one are we talking about again?", f"About {thing}.")

    def _untold(self) -> list[replies.Fact]:
        """Facts of what was read that nobody spoke of yet."""
        facts = replies.facts_in(self._attempt.read)
        return [fact for fact in facts if fact.name not in self._attempt.told_facts and "id" not in fact.name.split()]

    def _field(self, fact: replies.Fact) -> None:
        self._play.user(said(self._rng, phrases.FOLLOW_FIELD, field=fact.name))
        self._play.say(said(self._rng, _FIELD_ANSWERS, name=fact.name, value=fact.value))

    def _small_talk(self, question: str, answer: str) -> None:
        self._play.user(question)
        self._play.say(answer)

    def _farewell(self) -> None:
        rng = self._rng
        met = [None if o.result is None else o.result.said.condition for o in self._outcomes if not o.claimed]
        well = bool(self._outcomes) and all(condition == "success" for condition in met)
        self._play.user(pick(rng, phrases.THANKS if well else phrases.GIVES_UP))
        if well:
            self._play.say(pick(rng, _FAREWELLS))
        else:
            tried = any(condition in RETRIABLE for condition in met)
            self._play.say(pick(rng, _FAREWELLS_AFTER_FAILURE if tried else _FAREWELLS_AFTER_ALL))

    def _insist(self, outcome: Outcome) -> None:
        """The person insists, the agent tries once more."""
        goal, rng = outcome.goal, self._rng
        self._play.user(said(rng, phrases.INSISTS, kin=pick(rng, phrases.KIN)))
        result = self._attempt.once(goal.tool, goal.arguments)
        text = self._attempt.reply(Outcome(goal, result, outcome.tries + 1), main=False)
        self._attempt.sentences = [text]
        self._play.say(text)

    def _restate(self) -> None:
        opener = pick(self._rng, ("In short:", "Once more:", "To sum it up:", "Here it is again:"))
        self._play.user(pick(self._rng, phrases.FOLLOW_RESTATE))
        self._play.say(" ".join([opener, *self._attempt.sentences]))


_FAREWELLS_AFTER_ALL = ("All right. Goodbye.", "Understood. Goodbye.", "OK, I leave it at that. Goodbye.")
_FAREWELLS = (
    "You're welcome.",
    "Glad that is settled.",
    "All right, goodbye.",
    "Gladly. Goodbye!",
    "You're welcome, bye.",
    "Good. Have a nice day.",
)
_FAREWELLS_AFTER_FAILURE = (
    "All right. It failed today; trying again later is worth it.", "Understood. I was unable to get it done today.",
    "OK. I could not do it now, another day it will be worth a try.",
)  # fmt: skip
_FIELD_ANSWERS = (
    "The {name} is {value}.",
    "{name}: {value}.",
    "It says {value} for the {name}.",
    "There I have {value}.",
    "On file the {name} is {value}.",
)
