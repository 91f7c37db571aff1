"""Checkpoints of fx: one JSON object a session, `{schema_version, session_id, through_seq, state: {history, …}}`.

A turn of the history has what a person asked, the steps of the answer (text, calls, results) and its end. A file is
written anew as the session grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import plain
from etl.adapters._session import dict_of, list_of, text_of, without
from etl.adapters._talk import Talk
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, ToolCall, Unusable

_SILENT = "silent_session"
_STATE = ("id", "history", "preferences", "created_at_ms", "updated_at_ms")
_TURN = ("kind", "user", "assistant", "execution", "tool_call", "terminal_reason", "summary", "completed_tool_names")
_RESULT = ("tool_call_id", "tool_name", "status", "output", "created_at_ms", "output_bytes", "stored_output_bytes")
_REFUSED = frozenset({"denied", "rejected"})


class Fx(Adapter):
    """Session checkpoints of fx."""

    name = "fx"
    version = 1
    about = "fx checkpoints: {session_id, through_seq, state: {history: [{kind, user, execution, assistant}]}} a file"
    scores_share = True
    ignores: ClassVar[dict[str, str]] = {_SILENT: "a session in which nobody says anything"}

    def score(self, sample: Sample) -> float:
        """The share of values that are checkpoints."""
        hits = sum(1 for value in sample.objects() if _is_checkpoint(value))
        return 0.95 * hits / len(sample.values) if hits else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation a record."""
        for record in records:
            value = record.value
            if not isinstance(value, dict) or not isinstance(dict_of(value, "state").get("history"), list):
                yield Unusable(
                    record, "no_history", "a checkpoint is an object whose state has a history; this is none"
                )
                continue
            made = _conversation(record, value)
            yield made if made.messages else Ignored(_SILENT)


def _is_checkpoint(value: dict[str, Any]) -> bool:
    told = isinstance(dict_of(value, "state").get("history"), list)
    return told and "session_id" in value and bool(value.keys() & {"through_seq", "log_generation"})


def _conversation(record: Record, value: dict[str, Any]) -> Conversation:
    state = dict_of(value, "state")
    preferences = dict_of(state, "preferences")
    talk = Talk(text_of(preferences, "model"))
    for turn in list_of(state, "history"):
        if isinstance(turn, dict):
            _turn(talk, turn)
    name = text_of(value, "session_id") or text_of(state, "id")
    made = Conversation([], [record], native_id=name, conversation_id=name, agent="fx")
    made.started_at, made.ended_at = state.get("created_at_ms"), state.get("updated_at_ms")
    rest = {**without(value, "session_id", "state"), **without(state, *_STATE)}
    made.extra = {**rest, **without({"preferences": without(preferences, "model")})} or None
    return talk.tell(made)


def _turn(talk: Talk, turn: dict[str, Any]) -> None:
    kind, user = text_of(turn, "kind"), dict_of(turn, "user")
    extra = {**without({"turn": without(turn, *_TURN)}), **without(user, "text", "images")}
    if kind == "compacted_summary":
        talk.flags.add("compacted")
        talk.say(Message("user", plain(turn.get("summary")), synthetic=True, extra=extra or None))
        return
    if user:
        talk.ask(plain(user.get("text")), parts=list_of(user, "images") or None, extra=extra)
    execution = dict_of(turn, "execution")
    for step in list_of(execution, "tool_steps"):
        if isinstance(step, dict):
            _step(talk, step)
    more = without(execution, "schema_version", "tool_steps")
    if more and talk.messages:
        talk.note({"execution": more})
    last = text_of(turn, "assistant")
    if last is not None:
        talk.close()
        talk.speak(last)
        talk.close()
    waiting = dict_of(turn, "tool_call")
    if waiting:
        talk.call(_call(waiting))
        talk.close()
    if kind == "interrupted":
        talk.flags.add("interrupted")
        talk.ended = ("aborted", None)
        talk.note({"terminal_reason": turn.get("terminal_reason")})


def _step(talk: Talk, step: dict[str, Any]) -> None:
    """What the model says and calls at once, and what comes back."""
    calls = [_call(item) for item in list_of(step, "tool_calls") if isinstance(item, dict)]
    message = talk.say(Message("assistant", plain(step.get("assistant")), calls=calls or None, model=talk.model))
    message.extra = without(step, "assistant", "tool_calls", "tool_results") or None
    for item in list_of(step, "tool_results"):
        if isinstance(item, dict):
            answer = Message("tool", plain(item.get("output", item.get("preview"))), at=item.get("created_at_ms"))
            answer.call_id, status = text_of(item, "tool_call_id"), text_of(item, "status")
            answer.failed = None if status is None else status != "success"
            answer.condition = "permission_denied" if status in _REFUSED else None
            answer.cancelled = status in ("cancelled", "canceled")
            answer.extra = {key: v for key, v in without(item, *_RESULT).items() if v is not False} or None
            if item.get("truncated") is True:
                talk.flags.add("truncated_source")
            talk.say(answer)


def _call(item: dict[str, Any]) -> ToolCall:
    arguments = item.get("arguments_json", item.get("arguments"))
    return ToolCall(text_of(item, "name") or "tool", arguments, text_of(item, "id"))
