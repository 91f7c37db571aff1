"""The simulated person that answers an agent which is not ours: from templates, by what the agent asks for."""

from __future__ import annotations

import re
from random import Random  # noqa: TID251  (seeded)

from etl.conversation import Tokens
from etl.simulator import phrases
from etl.simulator.asks import pick, said, spoken_value
from etl.simulator.play import Play
from etl.simulator.situation import Goal, Situation, told_later

_CONFIRM = re.compile(
    r"\b(confirm|proceed|go ahead|shall i|should i|would you like me to|do you want me to|"
    r"is that (?:right|all right|ok))\b",
    re.I,
)
_WHICH = re.compile(
    r"\b(which|what(?:'s| is)|need|provide|give me|tell me|share|could i have|can i have|may i have)\b", re.I
)
_CLOSED = re.compile(r"\b(anything else|further (?:questions|assistance))\b", re.I)


class TemplateUser:
    """Gives what is asked for, confirms, asks for what comes later, and stops when there is nothing more to say."""

    usage: Tokens | None = None

    def __init__(self, situation: Situation, seed: int) -> None:
        self._situation = situation
        self._rng = Random(seed)
        self._told: set[str] = set()
        self._later = [goal for goal in situation.goals if goal.later]

    def answer(self, play: Play) -> str | None:
        """What the person writes next; None where it is over."""
        text = play.messages[-1].content
        goals = [goal for goal in self._situation.goals if not goal.later]
        asked = text.rstrip().endswith("?") or bool(_WHICH.search(text) and "?" in text) or "please" in text.lower()
        if asked and not _CLOSED.search(text) and goals:
            if _CONFIRM.search(text) and "confirmed" not in self._told:
                self._told.add("confirmed")
                return self._confirmation(goals[0], text)
            if "told" not in self._told:
                self._told.add("told")
                return self._everything(goals)
            if _CONFIRM.search(text):
                return pick(self._rng, phrases.CONFIRMS)
        if self._later:
            return told_later(self._situation, self._later.pop(0), self._rng)
        return None

    def _confirmation(self, goal: Goal, text: str) -> str:
        wrong = self._situation.wrong_id
        if wrong is not None and str(wrong) in text:
            return said(self._rng, phrases.CORRECTS_AND_CONFIRMS, id=goal.record_id)
        return pick(self._rng, phrases.CONFIRMS)

    def _everything(self, goals: list[Goal]) -> str:
        """All that the person knows."""
        parts = []
        for goal in goals:
            if goal.record_id is not None:
                parts.append(said(self._rng, phrases.GIVES_ID, id=goal.record_id))
            rest = {name: value for name, value in goal.arguments.items() if name != goal.meaning.id_name}
            if rest:
                parts.append(
                    "; ".join(f"{name}: {spoken_value(value, self._situation.who)}" for name, value in rest.items())
                    + "."
                )
        return " ".join(parts) or "That is all I know."
