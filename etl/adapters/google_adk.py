"""Google ADK: sessions with their events (JSON, or its databases), evaluation sets and their results, in either case.

An event of a session is one content of a user, an agent or a tool; pieces of a stream (`partial`) that a whole event
follows are left out, and sub-agents' names stand with their messages. A case of an evaluation set is the conversation
that was expected; a result of one is what the agent did, with a verdict for every metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import FileContext, Sample
from etl.adapters._adk import Session, either, invocation, listed, session, told
from etl.adapters._adk_stored import TABLES, event_row, is_row, joined, place_of, session_row
from etl.adapters._chat import parsed
from etl.adapters._claude_lines import is_global
from etl.adapters._records import RecordAdapter, numbered, part
from etl.adapters._rollouts import text
from etl.adapters._sqlite import has_column, records
from etl.conversation import Conversation, Ignored, Outcome, Record, Unusable, Verdict
from etl.decode import encode
from etl.framing import Framed, Limits
from etl.identity import digest

_STATUS = {1: "PASSED", 2: "FAILED", 3: "NOT_EVALUATED"}
_QUERY = frozenset({"query", "reference"})
_EVENT = frozenset({"author", "content", "actions"})


class GoogleAdk(RecordAdapter):
    """Sessions, evaluation sets and evaluation results of Google's Agent Development Kit."""

    name = "google_adk"
    version = 2
    about = "Google ADK: sessions with events, session databases, evaluation sets and their results"
    expects = "a session, an evaluation set or a result is a JSON object"
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "later_query": "a query of the oldest evaluation files after the first: it is in the row of the first",
        "silent_session": "a session of a database in which nothing has happened yet",
    }

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Rows of a session database, or JSON."""
        return records(blocks, limits, dict(zip(TABLES, (session_row, event_row), strict=True)))

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of the keys that only ADK has together."""
        events = listed(value, "events")
        if events and either(value, "app_name") is not None and either(value, "user_id") is not None:
            return 0.95 if all(isinstance(event, dict) and "author" in event for event in events[:8]) else 0.0
        cases = listed(value, "eval_cases")
        if either(value, "eval_set_id") is not None and (cases or listed(value, "eval_case_results")):
            return 0.95
        if _is_case(value):
            return 0.9
        turns = value.get("data")
        if isinstance(turns, list) and turns and all(isinstance(turn, dict) and _is_turn(turn) for turn in turns[:8]):
            return 0.9
        return 0.9 if _is_turn(value) else 0.0

    def score(self, sample: Sample) -> float:
        """As its records say, where a result may be the JSON text of itself; by the tables of a database."""
        if has_column(sample.head, "sessions", "app_name") and has_column(sample.head, "events", "invocation_id"):
            return 0.95
        return super().score(sample._replace(values=[_opened(value) for value in sample.values]))

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """Session by session and case by case; queries of the oldest form are one case together."""
        yield from numbered(self._outcomes(records))

    def _outcomes(self, records: Iterable[Record]) -> Iterator[Outcome]:
        queries: list[Record] = []
        stored: dict[tuple[str, str, str], list[Record]] = {}
        for record in records:
            value = _opened(record.value)
            if is_row(value):
                stored.setdefault(place_of(value), []).append(record)
            elif isinstance(value, dict) and _is_turn(value):
                queries.append(record)
            elif isinstance(value, dict):
                yield from self.read(record, value)
            else:
                yield Unusable(record, "not_an_object", f"{self.expects}; this is none")
        for rows in stored.values():
            yield from _stored(rows)
        if queries:
            turns = [_opened(record.value) for record in queries]
            yield _made(queries, _oldest(turns), {}, None)
            if len(queries) > 1:
                yield Ignored("later_query", len(queries) - 1)

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """The conversations of a session, an evaluation set, or its results."""
        cases, results = listed(value, "eval_cases"), listed(value, "eval_case_results")
        if not cases and not results:
            yield _case(record, value, {}) if _is_case(value) else _one(record, value)
            return
        shared = {key: item for key, item in value.items() if item is not cases and item is not results}
        for name, units, read in (("eval_cases", cases, _case), ("eval_case_results", results, _result)):
            for unit in units:
                own = part(record, {**shared, name: [unit]})
                if isinstance(unit, dict):
                    yield read(own, unit, shared)
                else:
                    yield Unusable(own, "no_messages", f"one of `{name}` is no object")


def _opened(value: Any) -> Any:
    return parsed(value) if isinstance(value, str) and value[:1] == "{" else value


def _is_case(value: dict[str, Any]) -> bool:
    turns = listed(value, "conversation")
    return (
        either(value, "eval_id") is not None
        and any(key.startswith("conversation") for key in value)
        and all(isinstance(turn, dict) and isinstance(either(turn, "user_content"), dict) for turn in turns[:8])
    )


def _is_turn(value: dict[str, Any]) -> bool:
    return value.keys() >= _QUERY and ("expected_tool_use" in value or "expected_intermediate_agent_responses" in value)


def _one(record: Record, value: dict[str, Any]) -> Outcome:
    turns = value.get("data")
    if isinstance(turns, list) and turns and all(isinstance(turn, dict) and _is_turn(turn) for turn in turns):
        rest = {key: item for key, item in value.items() if key not in ("data", "name")}
        return _made([record], _oldest(turns), rest, text(value.get("name")))
    return _session((record,), value)


def _stored(rows: list[Record]) -> Iterator[Outcome]:
    """The session whose rows these are."""
    value = joined(rows)
    read = _session(rows, value) if value["events"] else Ignored("silent_session", len(rows))
    if isinstance(read, Unusable):
        yield from (Unusable(row, read.reason, read.message) for row in rows)
    else:
        yield read


def _session(records: Sequence[Record], value: dict[str, Any]) -> Outcome:
    """A session grows: it is known by a global id, or by its first event with its time."""
    read = session(listed(value, "events"))
    if isinstance(read, str):
        return Unusable(records[0], "bad_event", read)
    if not read.messages:
        return Unusable(records[0], "no_messages", "no event of the session says anything")
    app, user, name = (either(value, key) for key in ("app_name", "user_id", "id"))
    first = listed(value, "events")[0]
    key = [app, user, name] if isinstance(name, str) and is_global(name) else [app, user, name, first]
    held = ("events", "id", "app_name", "appName", "last_update_time", "lastUpdateTime")
    rest = {key: item for key, item in value.items() if key not in held and item not in (None, {}, [])}
    return Conversation(
        read.messages,
        records,
        native_id=f"adk:{digest(encode(key).encode('utf-8', 'surrogatepass'))}",
        conversation_id=text(name),
        task_from_prompt=True,
        agent=text(app),
        model=read.model,
        usage=read.usage,
        finish_reason=read.finish_reason,
        error=read.error,
        ended_at=either(value, "last_update_time") or None,
        extra={**rest, **({"events": read.events} if read.events else {})} or None,
        n_records=len(listed(value, "events")),
    )


def _case(record: Record, case: dict[str, Any], shared: dict[str, Any]) -> Outcome:
    """What a case expects."""
    turns = listed(case, "conversation")
    read = [invocation(turn) for turn in turns if isinstance(turn, dict)]
    messages = [message for turn in read for message in turn.messages]
    if not messages:
        return Unusable(record, "no_messages", "the case has no conversation: a user simulator was to make one up")
    name, suite = text(either(case, "eval_id")), text(either(shared, "eval_set_id"))
    rest = {key: item for key, item in case.items() if key not in ("conversation", "eval_id", "evalId")}
    rest = {key: item for key, item in rest.items() if item not in (None, {}, [])}
    if any(turn.rest for turn in read):
        rest["invocations"] = [turn.rest for turn in read]
    more = {key: item for key, item in shared.items() if item not in (None, "", [], {})}
    return Conversation(
        messages,
        (record,),
        local_id="/".join(filter(None, (suite, name))) or None,
        task=None if name is None else (f"adk:{suite or ''}", name),
        agent=text(either(either(case, "session_input") or {}, "app_name")),
        started_at=either(case, "creation_timestamp") or None,
        extra={**rest, **({"eval_set": more} if more else {})} or None,
    )


def _result(record: Record, result: dict[str, Any], shared: dict[str, Any]) -> Outcome:
    """What the agent did in a case, and how every metric found it."""
    turns = [turn for turn in listed(result, "eval_metric_result_per_invocation") if isinstance(turn, dict)]
    actual = [either(turn, "actual_invocation") for turn in turns]
    read = [invocation(turn) for turn in actual if isinstance(turn, dict)]
    messages = [message for turn in read for message in turn.messages]
    logged = either(result, "session_details")
    whole = session(listed(logged, "events")) if isinstance(logged, dict) else None
    if isinstance(whole, Session) and len(whole.messages) > len(messages):
        # The session has what tools gave, too, which invocations often lack.
        messages, logged = whole.messages, {key: item for key, item in logged.items() if key != "events"}
    session_id, name = text(either(result, "session_id")), text(either(result, "eval_id"))
    suite = text(either(shared, "eval_set_id")) or text(either(result, "eval_set_id"))
    status = either(result, "final_eval_status")
    judged = [_verdict(item) for item in listed(result, "overall_eval_metric_results") if isinstance(item, dict)]
    held = {"overall_eval_metric_results", "eval_id", "session_id", "final_eval_status", "session_details"}
    rest = told({key: item for key, item in result.items() if _snake(key) not in held})
    if isinstance(logged, dict):
        rest["session_details"] = {**told(logged), **({"events": whole.events} if isinstance(whole, Session) else {})}
    per_turn = [{key: item for key, item in turn.items() if _snake(key) != "actual_invocation"} for turn in turns]
    rest = {key: item for key, item in rest.items() if _snake(key) != "eval_metric_result_per_invocation"}
    if per_turn:
        rest["invocations"] = [told({**more, **turn.rest}) for more, turn in zip(per_turn, read, strict=False)]
    about = told(shared)
    return Conversation(
        messages,
        (record,),
        native_id=f"adk:result:{session_id}" if session_id and is_global(session_id) else None,
        local_id="/".join(filter(None, (suite, name, session_id))) or None,
        conversation_id=session_id,
        task=None if name is None else (f"adk:{suite or ''}", name),
        group=None if name is None else encode([either(shared, "eval_set_result_id"), suite, name]),
        judgments=[Verdict("final_eval_status", "rule", label=_word(status)), *judged],
        flags=None if messages else {"content_not_captured"},
        extra={**rest, "eval_set_result": about} if about else rest or None,
    )


def _verdict(metric: dict[str, Any]) -> Verdict:
    score, status, threshold = metric.get("score"), either(metric, "eval_status"), metric.get("threshold")
    return Verdict(
        text(either(metric, "metric_name")) or "metric",
        "rule",
        float(score) if isinstance(score, (int, float)) else None,
        _word(status),
        reason=None if threshold is None else f"threshold {threshold}",
    )


def _word(status: Any) -> str | None:
    """The status of an evaluation: a number, or the word for it."""
    return _STATUS.get(status) if type(status) is int else text(status)


def _snake(key: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in key)


def _oldest(turns: list[dict[str, Any]]) -> list[Any]:
    """Queries with their reference answers, of ADK's first evaluation files, as invocations."""
    made = []
    for turn in turns:
        uses = [use for use in listed(turn, "expected_tool_use") if isinstance(use, dict)]
        calls = [{"name": use.get("tool_name"), "args": use.get("tool_input")} for use in uses]
        answers = [
            {"name": use.get("tool_name"), "response": use["mock_tool_output"]}
            for use in uses
            if use.get("mock_tool_output") is not None
        ]
        between = [
            [item.get("author"), [{"text": item.get("text")}]]
            for item in listed(turn, "expected_intermediate_agent_responses")
            if isinstance(item, dict)
        ]
        rest = {key: item for key, item in turn.items() if key not in (*_QUERY, "expected_tool_use") and item}
        rest.pop("expected_intermediate_agent_responses", None)
        made.append(
            {
                "user_content": {"role": "user", "parts": [{"text": turn.get("query")}]},
                "final_response": {"role": "model", "parts": [{"text": turn.get("reference")}]}
                if turn.get("reference")
                else None,
                "intermediate_data": {"tool_uses": calls, "tool_responses": answers, "intermediate_responses": between},
                **rest,
            }
        )
    return made


def _made(records: list[Record], turns: list[Any], rest: dict[str, Any], name: str | None) -> Outcome:
    read = [invocation(turn) for turn in turns]
    more = [turn.rest for turn in read] if any(turn.rest for turn in read) else None
    extra = {key: item for key, item in {**rest, "invocations": more}.items() if item not in (None, {}, [])}
    messages = [message for turn in read for message in turn.messages]
    return Conversation(messages, records, local_id=name, task_from_prompt=True, extra=extra or None)
