"""Tasks of Cline and Roo Code: `api_conversation_history.json`, and beside it `ui_messages.json` and its metadata.

The history is the conversation; the chat view tells what its requests used, and is a conversation of its own only
where no history lies beside it (also as the lines of `cline --json`). The task is known by the first message of its
history: neither file names it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._cline_api import History
from etl.adapters._cline_text import TOOLS, is_harness
from etl.adapters._cline_ui import View, used_by
from etl.adapters._session import Naming, canonical, dict_of, list_of, sessions, stored, summed, text_of, without
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.errors import SourceError
from etl.framing import LIMITS, frame
from etl.identity import digest
from etl.opening import blocks

_HISTORY = "api_conversation_history.json"
_ALONE = "metadata_without_task"
_ROO = frozenset({"apply_diff", "switch_mode", "update_todo_list", "codebase_search", "insert_content"})
_STREAM = "task_started"


class Cline(Adapter):
    """Task folders of Cline and Roo Code."""

    name = "cline"
    version = 2
    about = "Cline and Roo Code tasks: api_conversation_history.json, ui_messages.json, task_metadata.json"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {
        _ALONE: "metadata or a chat view in which nobody says anything, without the history of its task beside it",
    }

    def score(self, sample: Sample) -> float:
        """The share of values that are messages or items of a view; sure where one has what no other log has."""
        values = sample.objects()
        if len(values) == 1 and not sample.array and _is_metadata(values[0]):
            return 0.93
        looks = [_looks(value) for value in values]
        if not looks or max(looks) < 0.9:
            return 0.0
        return max(looks) * sum(1 for look in looks if look > 0) / len(sample.values)

    def share(self, start: Sample) -> float:
        """As many as look so; one object alone may be what is told of a task."""
        values = start.objects()
        return len(start.values) if len(values) < 2 else sum(1 for value in values if _looks(value) > 0)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each message or item, under the task of the folder."""
        naming = Naming()
        beside = _task_beside(file)
        for record in records:
            value = record.value
            if not isinstance(value, dict) or not (_is_item(value) or _is_message(value) or _is_metadata(value)):
                yield Unusable(record, "no_message", "a task holds messages with a role, or items with a type")
                continue
            if beside is not None and naming.key is None and not _is_message(value):
                yield from naming.begin(beside)  # a history is known by itself
            yield from naming.take(record, value.get("ts"))
        yield from naming.end()

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Ignored]:
        """A row for each task."""
        for key, events in sorted(sessions(family).items()):
            values = [stored(event) for event in events]
            made = Conversation([], [event.record for event in events], native_id=key, conversation_id=key)
            if _tell(made, values):
                yield made
            else:
                yield from (Ignored(_ALONE, 1, event.record) for event in events)


def _tell(made: Conversation, values: list[Any]) -> bool:
    """Fill a conversation from all that is stored of a task; False where nobody says anything."""
    items = [value for value in values if _is_item(value)]
    messages = [value for value in values if _is_message(value)]
    metadata: dict[str, Any] = next((value for value in values if _is_metadata(value)), {})
    uses = list_of(metadata, "model_usage")
    made.extra = without(metadata, *(("model_usage",) if len(uses) == 1 else ())) or None
    if messages:
        history = History(messages)
        talk, made.provider = history.talk, history.provider
        made.agent = "roo-code" if history.tools & _ROO or _has_mode(messages) else "cline"
        talk.tokens = talk.tokens or used_by(items)
        done = next((call for m in reversed(talk.messages) for call in m.calls or ()), None)
        last = next((m for m in reversed(talk.messages) if not m.synthetic), None)
        if done is not None and last is not None and last.calls and done.name == "attempt_completion":
            made.status = "completed"
    else:
        view = View(items)
        talk, made.agent = view.talk, "cline"
        made.status = "completed" if view.ended else None
    if not talk.messages:
        return False
    made.usage = summed(talk.tokens)
    talk.tell(made)
    if uses:
        made.model = made.model or text_of(uses[-1], "model_id")
        made.provider = made.provider or text_of(uses[-1], "model_provider_id")
    ends = [value["ts"] for value in (*items, *messages) if type(value.get("ts")) is int]
    made.started_at, made.ended_at = (min(ends), max(ends)) if ends else (None, None)
    return True


def _has_mode(messages: list[Any]) -> bool:
    """Roo Code tells the model its mode."""
    first = messages[0].get("content")
    texts = [text_of(block, "text") or "" for block in first] if isinstance(first, list) else [str(first)]
    return any("<slug>" in text and "# Current Mode" in text for text in texts)


def _task_beside(file: FileContext) -> str | None:
    """The name of the task that a file lies in: a hash of the first message of the history in its folder."""
    if file.path is None or "!" in file.uri.removeprefix(str(file.path)):
        return None
    path = file.path.parent / _HISTORY
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        return None
    return _task_in(path, changed)


@functools.lru_cache(maxsize=256)
def _task_in(path: Path, changed: int) -> str | None:
    try:
        first = next(iter(frame(blocks(path), LIMITS)), None)
    except SourceError:
        return None
    if not isinstance(first, Record) or not isinstance(first.value, dict) or not _is_message(first.value):
        return None
    return "h_" + digest(canonical(first.value).encode())


def _is_item(value: Any) -> bool:
    kind = text_of(value, "type")
    return kind == _STREAM or (kind in ("ask", "say") and text_of(value, kind) is not None)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("role") in ("user", "assistant") and "content" in value


def _is_metadata(value: Any) -> bool:
    return isinstance(value, dict) and "files_in_context" in value and "model_usage" in value


def _looks(value: dict[str, Any]) -> float:
    if _is_item(value):
        return 0.95 if type(value.get("ts")) is int and "role" not in value else 0.6
    if not _is_message(value) or value.keys() & {"tool_calls", "sessionId", "uuid", "timestamp"}:
        return 0.0
    if type(value.get("ts")) is int and (dict_of(value, "modelInfo") or dict_of(value, "metrics")):
        return 0.95
    content = value["content"]
    texts = [text_of(block, "text") or "" for block in content] if isinstance(content, list) else [content]
    texts = [text for text in texts if isinstance(text, str)]
    if value["role"] == "user" and any(is_harness(text) for text in texts):
        return 0.95
    if value["role"] == "assistant" and any(f"</{name}>" in text for text in texts for name in TOOLS):
        return 0.6
    return 0.3
