"""Copilot Chat of VS Code: sessions (`chatSessions/*.json`, newer ones a log of changes `*.jsonl`), exports, replays.

A session's log begins with its state; later lines set, append or delete what lies at a path. A replay is the chat debug
log: each prompt with the requests and calls that it took.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._session import canonical, dict_of, list_of, text_of
from etl.adapters._vscode_replay import Prompt
from etl.adapters._vscode_rows import Session
from etl.conversation import Conversation, Ignored, Outcome, Record, Unusable
from etl.decode import encode
from etl.framing import Framed, Limits, frame
from etl.identity import digest

_SILENT = "silent_session"
_MOST_ITEMS = 1 << 20


class VsCodeCopilot(Adapter):
    """Chats of VS Code with Copilot."""

    name = "vscode_copilot"
    version = 3
    about = "VS Code Copilot Chat: chatSessions (JSON, logs of changes), exports {requests}, replays {prompts, logs}"
    ignores: ClassVar[dict[str, str]] = {_SILENT: "a session in which nobody asks anything"}

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """JSON in any layout; of a replay a record for each prompt."""
        for framed in frame(blocks, limits):
            prompts = list_of(framed.value, "prompts") if isinstance(framed, Record) else []
            if not isinstance(framed, Record) or len(prompts) < 2:
                yield framed
                continue
            for prompt in prompts:
                value = {**framed.value, "prompts": [prompt]}
                raw = encode(value).encode("utf-8", "surrogatepass")
                yield Record(value, raw, framed.line, framed.offset, framed.notes, framed.mended)

    def score(self, sample: Sample) -> float:
        """The share of values that are sessions, replays, or changes of a session."""
        looks = [_looks(value) for value in sample.values]
        if not looks or looks[0] < 0.9:
            return 0.0
        return sum(looks) / len(looks)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation a session; of a replay one for each prompt."""
        log: list[Record] = []
        for record in records:
            value = record.value
            if _is_change(value):
                if value["kind"] == 0 and log:
                    yield from _session(log)
                    log = []
                log.append(record)
            elif isinstance(value, dict) and isinstance(value.get("prompts"), list):
                yield _replay(record, value)
            elif isinstance(value, dict) and isinstance(value.get("requests"), list):
                yield from _session([record])
            else:
                yield Unusable(record, "no_requests", "a session has requests, a change of one a kind and a place")
        if log:
            yield from _session(log)


def _is_change(value: Any) -> bool:
    if not isinstance(value, dict) or type(value.get("kind")) is not int:
        return False
    return (value["kind"] == 0 and isinstance(value.get("v"), dict)) or isinstance(value.get("k"), list)


def _session(records: list[Record]) -> Iterator[Outcome]:
    first = records[0].value
    state = first if not _is_change(first) else _replayed(records)
    made = Conversation([], records)
    name = text_of(state, "sessionId")
    if name is not None:
        made.native_id = made.conversation_id = name
    elif _is_change(first):
        made.native_id = made.conversation_id = "h_" + digest(canonical(first).encode())
    Session(state).tell(made)
    if made.messages:
        yield made
    else:
        yield Ignored(_SILENT, len(records))


def _replayed(records: list[Record]) -> dict[str, Any]:
    """The state that the changes of a log lead to; a change that fits nowhere changes nothing."""
    state: dict[str, Any] = {}
    for record in records:
        value = record.value
        if value["kind"] != 0:
            _change(state, value)
        elif isinstance(value.get("v"), dict):
            state = _copied(value["v"])
    return state


def _copied(value: Any) -> Any:
    """A copy whose lists and objects may be changed."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _change(state: dict[str, Any], change: dict[str, Any]) -> None:
    path = change["k"]
    holder: Any = state
    for key in path[:-1]:
        holder = _at(holder, key)
    if not path or holder is None:
        return
    key, value = path[-1], _copied(change.get("v"))
    if change["kind"] == 2:
        found = _at(holder, key)
        items = found if isinstance(found, list) else []
        if type(change.get("i")) is int and 0 <= change["i"] <= len(items):
            del items[change["i"] :]
        items += value if isinstance(value, list) else [] if value is None else [value]
        value = items
    elif change["kind"] == 3:
        if isinstance(holder, dict) and isinstance(key, str):
            holder.pop(key, None)
        return
    if isinstance(holder, dict) and isinstance(key, str):
        holder[key] = value
    elif isinstance(holder, list) and type(key) is int and 0 <= key <= min(len(holder), _MOST_ITEMS):
        holder[key : key + 1] = [value]


def _at(holder: Any, key: Any) -> Any:
    if isinstance(holder, dict) and isinstance(key, str):
        return holder.get(key)
    if isinstance(holder, list) and type(key) is int and 0 <= key < len(holder):
        return holder[key]
    return None


def _replay(record: Record, value: dict[str, Any]) -> Outcome:
    prompt: Any = next(iter(value["prompts"]), None)
    if not isinstance(prompt, dict):
        return Ignored(_SILENT)
    name = text_of(prompt, "promptId")
    made = Prompt(prompt).tell(Conversation([], [record], local_id=name, conversation_id=name))
    return made if made.messages else Ignored(_SILENT)


def _looks(value: Any) -> float:
    if _is_change(value):
        begins = value["kind"] == 0 and {"requests", "sessionId", "creationDate"} & value["v"].keys()
        return 0.95 if begins or value["kind"] in (1, 2, 3) else 0.0
    if not isinstance(value, dict):
        return 0.0
    prompts = list_of(value, "prompts")
    if prompts and isinstance(prompts[0], dict) and isinstance(prompts[0].get("logs"), list):
        return 0.95 if "prompt" in prompts[0] else 0.0
    if not isinstance(value.get("requests"), list):
        return 0.0
    if value.keys() & {"requesterUsername", "responderUsername", "initialLocation"}:
        return 0.95
    first: Any = next(iter(value["requests"]), None)
    asked = bool(dict_of(first, "message")) and ("response" in first or "requestId" in first)
    return 0.95 if ("sessionId" in value or "creationDate" in value) and (asked or not value["requests"]) else 0.0
