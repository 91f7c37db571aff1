"""Amazon Q Developer CLI, now Kiro CLI: conversations of `data.sqlite3`, and what `/save` writes.

A conversation is one value of JSON: pairs of what was sent (a prompt, or what tools gave back) and what was answered,
the tools, and what is to be sent next. Of the database no other table is read: it holds keys as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import FileContext, Sample
from etl.adapters._blocks import identifier
from etl.adapters._kiro_blocks import exit_code
from etl.adapters._records import ClaimAdapter, left
from etl.adapters._rollouts import items, obj, text
from etl.adapters._session import real
from etl.adapters._sqlite import MAGIC, has_column, names_tables, records
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, ToolCall, Unusable
from etl.decode import Decoded, decode, encode
from etl.framing import Framed, Limits
from etl.identity import digest

_TOLD = ("conversation_id", "history", "next_message", "tools", "transcript", "valid_history_range",
         "context_message_length", "tangent_state", "model_info", "model", "latest_summary")  # fmt: skip
_SENT = frozenset({"content", "timestamp", "env_context", "images", "additional_context"})
_REQUEST = ("message_id", "model_id", "request_start_timestamp_ms", "stream_end_timestamp_ms", "tool_use_ids_and_names")
_CONTENTS = ("Prompt", "ToolUseResults", "CancelledToolUses")
_SILENT = "silent_conversation"


class AmazonQ(ClaimAdapter):
    """The conversations of Amazon Q's and Kiro's command line."""

    name = "amazon_q"
    version = 2
    about = "Amazon Q Developer CLI and Kiro CLI: conversations of data.sqlite3, and JSON that /save writes"
    ignores: ClassVar[dict[str, str]] = {_SILENT: "a conversation in which nobody says anything"}

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Rows of the database, or JSON."""
        return records(blocks, limits, {"conversations": _row, "conversations_v2": _row})

    def score(self, sample: Sample) -> float:
        """By its tables, or by what a saved conversation says."""
        if not sample.head.startswith(MAGIC):
            return super().score(sample)
        if has_column(sample.head, "conversations_v2", "conversation_id"):
            return 0.95 if has_column(sample.head, "conversations_v2", "value") else 0.0
        first = has_column(sample.head, "conversations", "key") and has_column(sample.head, "conversations", "value")
        return 0.9 if first and names_tables(sample.head, "state") else 0.0

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of a conversation that says which part of its history is sent."""
        state = value.get("conversation") if "row_of" in value else value
        return 0.95 if isinstance(state, dict) and "valid_history_range" in state and _is_state(state) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A row for each conversation; the last of those that a database keeps twice."""
        found: dict[str, list[Record]] = {}
        for record in records:
            value = record.value if isinstance(record.value, dict) else {}
            state = obj(value, "conversation") if "row_of" in value else value
            if not _is_state(state):
                yield Unusable(record, "no_conversation", "a row is a conversation with a history; this is none")
            else:
                name = identifier(state.get("conversation_id")) or ""
                found.setdefault(name or digest(record.raw), []).append(record)
        for listed in found.values():
            yield _conversation(listed)


def _is_state(state: dict[str, Any]) -> bool:
    return isinstance(state.get("history"), list) and isinstance(state.get("conversation_id"), str)


def _row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of either table: the folder that it was held in, times, and the conversation."""
    told = row.get("value")
    held = decode(told.encode("utf-8", "surrogatepass")) if isinstance(told, str) else Decoded(None)
    times = {key: row[key] for key in ("created_at", "updated_at") if isinstance(row.get(key), (int, str))}
    folder = row.get("key")
    value = {"row_of": folder if isinstance(folder, str) else None, "conversation": held.value, **times}
    return Decoded(value, held.notes, held.mended)


def _conversation(records: list[Record]) -> Outcome:
    row: dict[str, Any] = records[-1].value
    state = obj(row, "conversation") if "row_of" in row else row
    told = _Told()
    for entry in state["history"]:
        told.entry(entry)
    if obj(state, "next_message"):
        told.sent(obj(state, "next_message"))
    if not told.messages:
        return Ignored(_SILENT, len(records))
    name = identifier(state["conversation_id"])
    return Conversation(
        told.messages,
        records,
        native_id=name,
        conversation_id=name,
        task_from_prompt=True,
        tools=_tools(obj(state, "tools")),
        agent="amazon_q",
        model=text(obj(state, "model_info").get("model_id")) or text(state.get("model")),
        started_at=row.get("created_at"),
        ended_at=row.get("updated_at"),
        flags={"compacted"} if state.get("latest_summary") else None,
        extra=_rest(row, state, told) or None,
    )


def _rest(row: dict[str, Any], state: dict[str, Any], told: _Told) -> dict[str, Any]:
    """What no column holds. The transcript is a copy of the history, but of what a summary took the place of."""
    rest = {"folder": row.get("row_of") if "row_of" in row else None, "environment": told.environment}
    rest |= left(state, _TOLD) or {}
    rest["model_info"] = left(obj(state, "model_info"), ("model_id",))
    if summary := state.get("latest_summary"):
        rest |= {"latest_summary": summary, "transcript": state.get("transcript")}
    rest["tangent_state"] = left(obj(state, "tangent_state"), ("main_history", "main_transcript"))
    return {key: item for key, item in rest.items() if item not in (None, "", [], {}, False)}


def _tools(origins: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The tools of all origins, with the schema that lies in a document of its own."""
    found = []
    for told in (obj(tool, "ToolSpecification") for origin in origins for tool in items(origins, origin)):
        if told:
            schema = obj(told, "input_schema")
            found.append({**(left(told, ("input_schema",)) or {}), "parameters": schema.get("json", schema)})
    return found or None


class _Told:
    """The messages of a history, being told."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.environment: dict[str, Any] = {}

    def entry(self, entry: Any) -> None:
        """A pair: fields by name, or (in older versions) a list of two."""
        if isinstance(entry, list):
            entry = dict(zip(("user", "assistant", "request_metadata"), entry, strict=False))
        if obj(entry, "user"):
            self.sent(obj(entry, "user"))
        if obj(entry, "assistant"):
            self._answered(obj(entry, "assistant"), obj(entry, "request_metadata"))

    def sent(self, user: dict[str, Any]) -> None:
        """What was sent: results of tools, then the prompt."""
        content, at = obj(user, "content"), user.get("timestamp")
        kind = next((name for name in _CONTENTS if name in content), None)
        held = obj(content, kind) if kind else {}
        listed = items(held, "tool_use_results")
        self.messages += [_result(item, at, kind == "CancelledToolUses") for item in listed]
        message = Message("user", text(held.get("prompt")) or "", at=at)
        pictures = [{"type": "image", "image": image} for image in items(user, "images")]
        message.parts = [*pictures, *([content] if content and not kind else [])] or None
        rest = left(user, _SENT) or {}
        if text(user.get("additional_context")):
            rest["additional_context"] = user["additional_context"]
        environment = obj(obj(user, "env_context"), "env_state")
        if environment and environment != self.environment:
            if self.environment:
                rest["environment"] = environment
            self.environment = self.environment or environment
        message.extra = rest or None
        if message.content or message.parts or not listed:
            self.messages.append(message)
        elif rest:
            last = self.messages[-1]
            last.extra = {**(last.extra or {}), **rest}

    def _answered(self, assistant: dict[str, Any], request: dict[str, Any]) -> None:
        kind = next((name for name in ("ToolUse", "Response") if name in assistant), None)
        held = obj(assistant, kind) if kind else {}
        message = Message("assistant", text(held.get("content")) or "", id=identifier(held.get("message_id")))
        calls = [call for call in items(held, "tool_uses") if isinstance(call, dict)]
        message.calls = [_call(call) for call in calls] or None
        message.parts = None if kind else [assistant]
        message.model = text(request.get("model_id"))
        begun, ended = real(request.get("request_start_timestamp_ms")), real(request.get("stream_end_timestamp_ms"))
        message.at = request.get("stream_end_timestamp_ms") if ended else None
        if begun and ended and ended >= begun:
            message.duration_ms = ended - begun
        rest = left(held, ("content", "message_id", "tool_uses")) or {}
        if asked := left(request, _REQUEST):
            rest["request"] = asked
        if renamed := [call for call in map(_renamed, calls) if call]:
            rest["original_calls"] = renamed
        message.extra = rest or None
        self.messages.append(message)


def _call(call: dict[str, Any]) -> ToolCall:
    return ToolCall(text(call.get("name")) or "", call.get("args"), identifier(call.get("id")))


def _renamed(call: dict[str, Any]) -> dict[str, Any] | None:
    """What was called under another name or with other arguments before it was mended."""
    kept = {key: call.get(f"orig_{key}") for key in ("name", "args")}
    other = {key: item for key, item in kept.items() if item not in (None, call.get(key))}
    return {"id": call.get("id"), **other} if other else None


def _result(item: Any, at: Any, cancelled: bool) -> Message:
    """A result: texts as they are, JSON as JSON."""
    held = item if isinstance(item, dict) else {}
    message = Message("tool", call_id=identifier(held.get("tool_use_id")), at=at, cancelled=cancelled)
    said = []
    for block in items(held, "content"):
        if isinstance(block, dict) and isinstance(block.get("Text"), str):
            said.append(block["Text"])
        elif isinstance(block, dict) and "Json" in block:
            said.append(encode(block["Json"]))
            code = exit_code(block["Json"])
            if code:
                message.failed, message.error = True, f"exit {code}"
        else:
            message.parts = [*(message.parts or ()), block]
    message.content = "\n".join(said)
    if isinstance(held.get("status"), str) and message.failed is None:
        message.failed = held["status"].lower() == "error"
    message.extra = left(held, ("tool_use_id", "content", "status")) or None
    return message
