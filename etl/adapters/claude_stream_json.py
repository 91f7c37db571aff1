"""The output of `claude -p --output-format stream-json` (or `json`): what a run of Claude Code printed.

A file is a capture; its events carry the session. The main thread is a row, each sub-agent (`parent_tool_use_id`) one
of its own. Counts on single messages are those of their start unless partial messages were asked for: the totals of a
run are in its `result`. The prompt is not printed unless user messages were replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._blocks import plain
from etl.adapters._claude_messages import Transcript
from etl.adapters._claude_response import Response
from etl.adapters._claude_stream import SAID, lines_of, thread_of
from etl.adapters._session import SureAdapter, dict_of, list_of, real, summed, text_of, without
from etl.adapters._usage import tokens
from etl.conversation import Conversation, Identity, Ignored, Message, Outcome, Record, Unusable
from etl.identity import digest

_IGNORED = {
    "system/thinking_tokens": "an estimate of tokens while the model thinks",
    "system/status": "that a request is under way",
    "rate_limit_event": "what is left of the account's allowance",
    "keep_alive": "a sign of life",
    "tool_progress": "how long a call has been running",
    "control_request": "the program and its host about permissions and settings",
    "control_response": "the program and its host about permissions and settings",
}
_UNKNOWN = "unknown_type"
_KNOWN = frozenset({"system", "assistant", "user", "result", "stream_event"})


class ClaudeStreamJson(SureAdapter):
    """Captures of Claude Code's printed events."""

    name = "claude_stream_json"
    version = 2
    about = "claude -p --output-format stream-json (or json): JSON Lines of system, assistant, user and result events"
    ignores: ClassVar[dict[str, str]] = {**_IGNORED, f"{_UNKNOWN}:*": "a type of event not known here"}

    def looks(self, value: Any) -> float:
        """Whether it is an event; sure only where a run begins, speaks or ends."""
        return _looks(value)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The rows of each session in the file."""
        found: dict[str, list[Record]] = {}
        session: str | None = None
        for record in records:
            refused = _refused(record)
            if refused is not None:
                yield refused
                continue
            session = text_of(record.value, "session_id") or session
            found.setdefault(session or "", []).append(record)
        for name, run in found.items():
            yield from _Session(name or None, run).conversations()


def _refused(record: Record) -> Outcome | None:
    value = record.value
    kind = text_of(value, "type")
    if kind is None:
        return Unusable(record, "no_type", "an event of the stream is an object with a type; this is none")
    named = f"{kind}/{text_of(value, 'subtype')}" if kind == "system" else kind
    if named in _IGNORED:
        return Ignored(named)
    if kind not in _KNOWN:
        return Ignored(f"{_UNKNOWN}:{kind[:40]}")
    if kind in SAID and not dict_of(value, "message"):
        return Unusable(record, "no_message", f"an event of type {kind} without a message; the log is damaged here")
    return None


def _looks(value: Any) -> float:
    kind = text_of(value, "type")
    if kind is None or text_of(value, "session_id") is None or "sessionId" in value:
        return 0.0
    if kind in SAID:
        return 0.95 if dict_of(value, "message") and "parent_tool_use_id" in value else 0.0
    if kind == "system":
        return (0.95 if value["subtype"] == "init" and "tools" in value else 0.5) if text_of(value, "subtype") else 0.0
    if kind == "result":
        return 0.95 if text_of(value, "subtype") and "is_error" in value else 0.0
    if kind == "stream_event":
        return 0.92 if text_of(value.get("event"), "type") and "parent_tool_use_id" in value else 0.0
    return 0.5 if kind == "rate_limit_event" else 0.0


class _Session:
    """The events of one session in a capture."""

    def __init__(self, name: str | None, records: list[Record]) -> None:
        self._records = records
        self._name = name
        self._attempt = digest(records[0].raw)
        self._results = [record.value for record in records if record.value["type"] == "result"]
        self._threads: dict[str, list[Record]] = {"": []}
        for record in records:
            self._threads.setdefault(thread_of(record.value), []).append(record)

    def conversations(self) -> Iterator[Conversation]:
        """The main thread, then the sub-agents; a record belongs to the thread that it names."""
        launched: dict[str, str] = {}
        for thread, records in self._threads.items():
            if not records:
                continue  # only what a sub-agent said was captured
            made = self._thread(thread, records)
            for message in made.messages:
                for call in message.calls or ():
                    if call.id is not None and isinstance(call.arguments, dict):
                        launched[call.id] = text_of(call.arguments, "subagent_type") or ""
            if thread:
                made.parent = Identity(made.native_id or "", attempt=self._attempt)
                made.agent = launched.get(thread) or made.agent
                made.extra = {"tool_use_id": thread}
            yield made

    def _thread(self, thread: str, records: list[Record]) -> Conversation:
        spoken = [record for record in records if record.value["type"] != "result"]
        lines = lines_of([record for record in spoken if text_of(record.value, "subtype") != "init"])
        transcript = Transcript(lines)
        for line in lines:
            transcript.add(line, False)
        made = Conversation(transcript.messages(), records, branch=thread)
        made.native_id = self._name or f"h_{self._attempt}"
        made.attempt, made.conversation_id = self._attempt, self._name
        made.agent, made.flags = "claude-code", transcript.flags
        real_ones = [response for response in transcript.responses if not response.synthetic]
        made.model = next((response.model for response in reversed(real_ones) if response.model), None)
        self._counts(made, real_ones)
        if not thread:
            self._main(made)
        if not any(message.role == "user" and not message.synthetic for message in made.messages):
            made.flags.add("content_not_captured")
        return made

    def _counts(self, made: Conversation, responses: list[Response]) -> None:
        """Output on messages and their sum, where they are not those of the start."""
        begun = {response.name for response in responses if response.finish_reason is None}
        for message in made.messages:
            if message.role == "assistant" and message.id in begun:
                message.output_tokens = None
        counted = [response.tokens for response in responses if response.tokens is not None]
        for response in responses:
            if response.tokens is not None and response.finish_reason is None:
                response.tokens.output_tokens = None
        if (begun or len(counted) < len(responses)) and made.flags is not None:
            made.flags.add("usage_partial")
        made.usage = summed(counted)

    def _main(self, made: Conversation) -> None:
        inits = [record.value for record in self._records if text_of(record.value, "subtype") == "init"]
        extra: dict[str, Any] = {}
        for init in inits:
            made.model = made.model or text_of(init, "model")
            said = without(init, "type", "subtype", "session_id", "uuid", "model")
            extra = {**said, **extra}
        if self._results:
            self._end(made, extra)
        else:
            made.status = "unknown"
            made.flags = {*(made.flags or ()), "incomplete"}
        made.extra = extra or None

    def _end(self, made: Conversation, extra: dict[str, Any]) -> None:
        """How it ended, what it used and what it last said, as the results tell."""
        last = self._results[-1]
        used = [found for value in self._results if (found := tokens(value.get("usage"))) is not None]
        total = summed(used)
        if total is not None:
            total.cost_usd = real(last.get("total_cost_usd"))
            made.usage = total
            made.flags = {*(made.flags or ())} - {"usage_partial"}
        subtype, text = text_of(last, "subtype"), text_of(last, "result")
        made.finish_reason = text_of(last, "stop_reason") if subtype == "success" else subtype
        if subtype == "error_max_turns":
            made.status = "truncated"
        elif last.get("is_error") is True or (subtype is not None and subtype != "success"):
            made.status = "error"
            made.error = text or "; ".join(plain(error) for error in list_of(last, "errors")) or subtype
        elif subtype == "success":
            made.status = "completed"
        for value in self._results:
            said = text_of(value, "result")
            if said and not any(message.content.strip() == said.strip() for message in made.messages):
                made.messages.append(Message("assistant", said, model=made.model))
        held = ("type", "subtype", "session_id", "uuid", "result", "usage", "total_cost_usd", "is_error", "stop_reason")
        told = [more for value in self._results if (more := without(value, *held))]
        if told:
            extra["results"] = told
