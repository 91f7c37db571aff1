"""Which spans of a family speak: the model calls, and agents and chains where no model of theirs was captured."""

from __future__ import annotations

from collections.abc import Iterator

from etl.adapters._otlp_dialects import Readings
from etl.adapters._otlp_facts import Facts
from etl.adapters._otlp_family import Family
from etl.adapters._otlp_span import Span
from etl.adapters._otlp_threads import Call
from etl.adapters._otlp_turn import Turn


def speakers(family: Family, readings: Readings) -> Iterator[Call]:
    """Every span that speaks for a model response.

    A span whose descendants speak is only an envelope around them: what it repeats, sums included, counts once, below.
    An agent that speaks while its models do not gives its first history and its last answer to these.
    """
    turns: dict[tuple[str, str], Turn] = {}
    for span in family.in_order():
        if span.kind in ("model", "agent"):
            turns[span.trace, span.id] = readings.turn(span)
    speaking = _speaking(family, turns)
    envelopes = {(above.trace, above.id) for place in speaking for above in family.ancestors(family.spans[place])}
    lent = _lent(family, turns)
    for span in family.in_order():
        place = (span.trace, span.id)
        if place not in turns or place in envelopes or not (place in speaking or span.is_agent()):
            continue
        turn = lent.get(place, turns[place])
        facts = _completed(readings.facts(span), turn)
        agent = _agent_around(span, family)
        name = (agent.id, readings.facts(agent).agent or agent.name) if agent is not None else (span.parent or "", "")
        for part, asked in enumerate(turn.batch or [turn]):
            for choice in range(max(1, len(asked.answers))):
                yield Call(span, asked, facts, choice, name, part)


def _speaking(family: Family, turns: dict[tuple[str, str], Turn]) -> set[tuple[str, str]]:
    """The spans that can speak: models, agents with words, and what merely goes around calls where there are none.

    A chain or a workflow is the outermost one with the form of a conversation, in a trace in which nobody logged a
    model or an agent: what a step of a pipeline was given and gave back is no conversation by itself.
    """
    speaking: set[tuple[str, str]] = set()
    heard: set[str] = set()
    for place, turn in turns.items():
        span = family.spans[place]
        if span.kind == "model" or (turn.said() and span.is_agent()):
            speaking.add(place)
            heard.add(span.trace)
    for span in family.in_order():
        place = (span.trace, span.id)
        said = turns.get(place)
        if span.trace in heard or said is None or not (said.said() and said.shaped):
            continue
        if not any((above.trace, above.id) in speaking for above in family.ancestors(span)):
            speaking.add(place)
    return speaking


def _agent_around(span: Span, family: Family) -> Span | None:
    """The nearest agent above a span; where none says that it is one, the outermost chain or workflow."""
    above = family.ancestors(span)
    if not above:
        return None
    around = [each for each in above if each.kind == "agent"]
    return next((each for each in around if each.is_agent()), around[-1] if around else None)


def _completed(facts: Facts, turn: Turn) -> Facts:
    """Facts that only the response itself tells."""
    facts.response_id = facts.response_id or turn.response_id
    facts.usage = facts.usage or turn.usage
    if not facts.finish_reasons and turn.finish is not None:
        facts.finish_reasons = [turn.finish]
    return facts


def _lent(family: Family, turns: dict[tuple[str, str], Turn]) -> dict[tuple[str, str], Turn]:
    """The words of agents for their models that have none: history to the first, answer to the last."""
    lent: dict[tuple[str, str], Turn] = {}
    for span in reversed(family.in_order()):
        if not family.children(span):
            continue
        turn = turns.get((span.trace, span.id))
        if turn is None or not turn.said():
            continue
        models = sorted((below for below in _own(span, family) if below.kind == "model"), key=Span.at)
        places = [(model.trace, model.id) for model in models]
        if not models or any(turns[place].said() or place in lent for place in places):
            continue
        for place in places:
            made = Turn(tools=turn.tools, dialect=turn.dialect, cut=turn.cut, lent=True)
            if place == places[0]:
                made.inputs = turn.inputs
            if place == places[-1]:
                made.answers = turn.answers[:1]
            lent[place] = made
    return lent


def _own(span: Span, family: Family) -> Iterator[Span]:
    """What lies below a span and below no other agent."""
    foreign: set[str] = set()
    for below in family.below(span):
        above = family.parent(below)
        if below.is_agent() or (above is not None and above.id in foreign):
            foreign.add(below.id)
        else:
            yield below
