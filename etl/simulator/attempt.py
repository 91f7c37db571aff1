"""One attempt of the seeded agent, from the ask to the answer."""

from __future__ import annotations

from random import Random  # noqa: TID251  (seeded)
from typing import Any

from etl.simulator import mistakes, phrases, replies
from etl.simulator.asks import pick, said
from etl.simulator.closing import Closing
from etl.simulator.faults import RETRIABLE
from etl.simulator.limits import TURNS
from etl.simulator.mistakes import IN_WORDS
from etl.simulator.outcome import Outcome
from etl.simulator.play import Play
from etl.simulator.situation import Goal, Situation, told_later
from etl.simulator.values import UnmakeableError, wrong
from etl.simulator.world import Result


class Attempt:
    """One attempt of the seeded agent."""

    def __init__(self, situation: Situation, rng: Random, mistake: str | None) -> None:
        self.situation, self.rng, self.mistake = situation, rng, mistake
        self.play = Play(situation)
        self.done: list[str] = []
        self.read: dict[str, Any] = {}
        self.told_facts: set[str] = set()
        """Names of the facts told so far."""
        self._answers: dict[tuple[str, str], Result] = {}
        """What readings gave, by tool and record, since the last write."""
        self._news: list[str] = []
        """What is to be told with the next question."""
        self.sentences: list[str] = []
        """The answers so far, without any mistake in words."""
        least, most = TURNS[situation.cell["length"]]
        self.turns = least + int(rng.random() * (most - least + 1))

    def run(self) -> None:
        """From the ask to the last word."""
        situation, rng = self.situation, self.rng
        self.play.user(situation.ask)
        if not situation.goals:
            self._tell([replies.off_topic(rng)], extra=True)
            self._go_on([])
            return
        now = [goal for goal in situation.goals if not goal.later]
        outcomes = self._goals(now)
        replies_now = [self.reply(outcome, main=n == 0) for n, outcome in enumerate(outcomes) if not outcome.told]
        self._tell(replies_now, extra=True)
        for goal in situation.goals:
            if goal.later:
                self.play.user(told_later(situation, goal, rng))
                outcome = self._goals([goal])[0]
                self._tell([self.reply(outcome, main=False)], extra=False)
                outcomes.append(outcome)
        self._go_on(outcomes)

    def _plant(self, name: str) -> bool:
        """Whether to make this mistake now; it is then made."""
        if self.mistake != name or name in self.done:
            return False
        self.done.append(name)
        return True

    # What to do ------------------------------------------------------------------------------------------------------

    def _goals(self, goals: list[Goal]) -> list[Outcome]:
        situation, rng = self.situation, self.rng
        if not goals[0].later and situation.vague:
            self._find_out(goals[0])
        elif not goals[0].later and situation.cell["stance"] == "conflicting" and situation.other_id is not None:
            ids = [str(goals[0].record_id), str(situation.other_id)]
            self.play.say(replies.asks_which(ids, goals[0].meaning, rng))
            self.play.user(said(rng, phrases.SETTLES, id=goals[0].record_id))
        plain = [goal for goal in goals if not goal.meaning.writes]
        if (
            len(plain) == len(goals) > 1
            and self.mistake not in ("wrong_argument", "needless_call")
            and rng.random() < 0.7
        ):
            return self._at_once(goals)
        outcomes: list[Outcome] = []
        for goal in goals:
            if outcomes and self._must_ask(goal):
                # What is known by now is told before the next thing is asked.
                self._news = [self.reply(outcome, main=n == 0) for n, outcome in enumerate(outcomes)]
                outcomes = [outcome._replace(told=True) for outcome in outcomes]
            outcomes.append(self._goal(goal))
        return outcomes

    def _must_ask(self, goal: Goal) -> bool:
        """Whether leave is needed for a goal that the ask itself does not give."""
        situation = self.situation
        return situation.domain.asks_first(goal.tool) and not (situation.preconfirmed and not goal.later)

    def _find_out(self, goal: Goal) -> None:
        """Which record is meant: looked for, or asked."""
        situation, rng, meaning = self.situation, self.rng, goal.meaning
        finder = situation.domain.finder_of(meaning.entity)
        if finder is not None and finder != goal.tool and rng.random() < 0.5:
            try:
                arguments = situation.domain.arguments[finder].draw(rng, situation.who)
            except UnmakeableError:
                arguments = None
            if arguments is not None:
                found = replies.rows_in(self.play.call([(finder, arguments)], self._lead())[0].value)
                id_name = situation.domain.shapes[meaning.entity].id_name
                ids = [str(row[id_name]) for row in found if row.get(id_name) is not None]
                if ids == [str(goal.record_id)]:
                    return
                if str(goal.record_id) in ids:
                    self.play.say(replies.asks_which(ids, meaning, rng))
                    self.play.user(said(rng, phrases.GIVES_ID, id=goal.record_id))
                    return
        self.play.say(replies.asks_id(meaning, rng))
        self.play.user(said(rng, phrases.GIVES_ID, id=goal.record_id))

    def _at_once(self, goals: list[Goal]) -> list[Outcome]:
        """Several readings in one message; what failed is tried once more."""
        results = self.play.call([(goal.tool, goal.arguments) for goal in goals], self._lead())
        outcomes = [self._tried(goal, result) for goal, result in zip(goals, results, strict=True)]
        for outcome in outcomes:
            self._know(outcome)
        return outcomes

    def _know(self, outcome: Outcome) -> None:
        """Remember an answer, so that nothing is asked twice; what is written makes old answers worthless."""
        if outcome.goal.meaning.writes:
            self._answers.clear()
        elif outcome.result is not None and outcome.result.said.condition == "success":
            self._answers[outcome.goal.tool, str(outcome.goal.record_id)] = outcome.result

    def _goal(self, goal: Goal) -> Outcome:
        situation, meaning = self.situation, goal.meaning
        main = not goal.later and goal is situation.goals[0]
        rule = situation.rule
        forbidden = main and rule is not None and rule.kind == "state"
        if meaning.writes and goal.record_id is not None and (forbidden or self._reads_first(goal, main)):
            status = self._read_first(goal)
            if forbidden and not self._plant("rule_violation"):
                return Outcome(goal, None, refused=status or (rule.state if rule and rule.state else "closed"))
        elif forbidden and not self._plant("rule_violation"):
            return Outcome(goal, None, refused=rule.state if rule and rule.state else "closed")
        if self._must_ask(goal):
            if not (main and self._plant("skipped_confirmation")):
                self._ask_leave(goal, main)
        elif main and situation.wrong_id is not None:
            self._with_wrong_id(goal)
        return self._called(goal, main)

    def _reads_first(self, goal: Goal, main: bool) -> bool:
        """Whether a careful agent looks before it writes, here."""
        state = self.situation.cell["world_state"]
        calm = state == "exists" and not (main and self.situation.wrong_id is not None)
        return calm and not goal.later and self.rng.random() < 0.4

    def _read_first(self, goal: Goal) -> str | None:
        """The record before it is written to; its status, as the result tells it."""
        domain, meaning = self.situation.domain, goal.meaning
        reader = domain.reader_of(meaning.entity)
        if reader is None or any(fault.tool == reader for fault in self.situation.faults):
            return None
        id_name = domain.meanings[reader].id_name
        try:
            arguments = domain.arguments[reader].draw(self.rng, self.situation.who, {str(id_name): goal.record_id})
        except UnmakeableError:
            return None
        known = self._answers.get((reader, str(goal.record_id)))
        result = known or self.play.call([(reader, arguments)], self._lead())[0]
        shape = domain.shapes[meaning.entity]
        status = result.value.get(shape.status) if isinstance(result.value, dict) and shape.status else None
        return None if status is None else str(status)

    def _ask_leave(self, goal: Goal, main: bool) -> None:
        situation, rng = self.situation, self.rng
        if main and situation.wrong_id is not None:
            self.play.say(replies.asks_leave(goal.meaning, situation.wrong_id, rng))
            self.play.user(said(rng, phrases.CORRECTS_AND_CONFIRMS, id=goal.record_id))
            return
        news, self._news = self._news, []
        self.sentences += news
        self.play.say(" ".join([*news, replies.asks_leave(goal.meaning, goal.record_id, rng)]))
        self.play.user(pick(rng, phrases.CONFIRMS))

    def _with_wrong_id(self, goal: Goal) -> None:
        """The call as the mistaken person asked for it, and their correction."""
        situation, rng, meaning = self.situation, self.rng, goal.meaning
        arguments = {**goal.arguments, str(meaning.id_name): situation.wrong_id}
        if situation.domain.tools[goal.tool].validator.is_valid(arguments):
            outcome = self._tried(
                goal._replace(arguments=arguments, record_id=situation.wrong_id), self.once(goal.tool, arguments)
            )
            assert outcome.result is not None
            self.play.say(
                replies.failure_reply(outcome.result.said.condition, meaning, situation.wrong_id, rng, outcome.tries)
            )
        else:
            self.play.say(replies.asks_id(meaning, rng))
        self.play.user(said(rng, phrases.CORRECTS_ID, id=goal.record_id))

    def _called(self, goal: Goal, main: bool) -> Outcome:
        if main and self.mistake == "wrong_argument":
            tool = self.situation.domain.tools[goal.tool]
            bad = wrong(tool.parameters, goal.arguments, tool.validator, self.rng)
            if bad is not None and self._plant("wrong_argument"):
                self.once(goal.tool, bad)
        result = self.once(goal.tool, goal.arguments)
        if main and not result.said.failed and result.said.condition == "success" and self._plant("needless_call"):
            self.once(goal.tool, goal.arguments)
        if main and result.said.condition in RETRIABLE and self._plant("gives_up"):
            return Outcome(goal, result, 1)
        outcome = self._tried(goal, result)
        self._know(outcome)
        ended = outcome.result
        wanting = ended is not None and (ended.said.failed or ended.said.condition == "stale_result")
        if main and wanting and self._plant("ignore_fault"):
            return outcome._replace(claimed=True)
        return outcome

    def _tried(self, goal: Goal, result: Result) -> Outcome:
        """The result, or that of a second try where another try may help."""
        if result.said.condition not in RETRIABLE:
            return Outcome(goal, result, 1)
        return Outcome(goal, self.once(goal.tool, goal.arguments, retry=True), 2)

    def once(self, tool: str, arguments: Any, *, retry: bool = False) -> Result:
        lead = pick(self.rng, ("", "", "Let me try that again.", "Once more.")) if retry else self._lead()
        return self.play.call([(tool, arguments)], lead)[0]

    def _lead(self) -> str:
        return pick(self.rng, ("", "", "", "Let me check.", "One moment.", "I'll look into it.", "Let me see."))

    # What to say -----------------------------------------------------------------------------------------------------

    def reply(self, outcome: Outcome, *, main: bool) -> str:
        goal, rng = outcome.goal, self.rng
        meaning, domain = goal.meaning, self.situation.domain
        if outcome.refused is not None:
            return replies.refuses(self.situation.cell["rule"], meaning, goal.record_id, outcome.refused, rng)
        assert outcome.result is not None
        condition, value = outcome.result.said.condition, outcome.result.value
        if outcome.claimed:
            return replies.claim(meaning, domain, goal.record_id, rng, avoid=self._status_of(goal))
        if "gives_up" in self.done and main:
            what = f"{meaning.verb} {replies.named(meaning, goal.record_id)}" if meaning.id_name else "do that"
            return said(rng, mistakes.GAVE_UP, what=what)
        if condition != "success":
            return replies.failure_reply(condition, meaning, goal.record_id, rng, outcome.tries)
        if meaning.writes:
            return replies.write_reply(meaning, goal.record_id, value, rng)
        if meaning.kind == "search" or isinstance(value, list):
            return replies.search_reply(meaning, value, rng)
        self.read = value if isinstance(value, dict) else {}
        answer = replies.fact_of(meaning, domain, value)
        others = [fact for fact in replies.facts_in(value, meaning.id_name) if fact != answer]
        more = rng.sample(others, min(len(others), int(rng.random() * 3)))
        for fact in (*more, *([answer] if answer else ())):
            self.told_facts.add(fact.name)
        text = replies.read_reply(meaning, goal.record_id, answer, more, rng)
        belief = self.situation.belief
        if main and belief is not None and answer is not None:
            text += " " + replies.correction(belief, answer.value, rng)
        return text

    def _status_of(self, goal: Goal) -> str:
        shape = self.situation.domain.shapes.get(goal.meaning.entity)
        records = [record for held in self.situation.state.values() for record in held.values()]
        return str(records[0].get(shape.status)) if shape and shape.status and records else ""

    def _tell(self, sentences: list[str], *, extra: bool) -> None:
        """The answer, with what is to be said of the rest of the ask, and with a mistake in words where one is due."""
        situation, rng = self.situation, self.rng
        parts = list(sentences)
        self.sentences += sentences
        if extra and situation.extra is not None:
            parts.append(self._on_extra(situation.extra[1]))
        text = " ".join(parts)
        if self.mistake in IN_WORDS and self._plant(self.mistake):
            text = mistakes.spoilt(text, self.mistake, situation, rng)
        self.play.say(text)

    def _on_extra(self, what: str) -> str:
        rule = self.situation.rule
        kind = rule.kind if rule is not None else ""
        if kind not in ("forbid", "require"):
            return replies.declines(what, self.rng)
        if self._plant("rule_violation"):
            texts = mistakes.COMPLIES if kind == "forbid" else mistakes.SKIPS
            return said(self.rng, texts, phrase=replies.to_agent(what))
        return replies.stays_with_rule(what, self.rng) if kind == "forbid" else replies.keeps_to(what, self.rng)

    def _go_on(self, outcomes: list[Outcome]) -> None:
        Closing(self, outcomes).run()
