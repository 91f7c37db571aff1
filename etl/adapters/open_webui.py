"""Open WebUI chats: exports (a list of chats), one chat, and its database `webui.db`.

A chat is a tree of messages by id; the way to `currentId` is its row, answers of other models and regenerated ones
are rows of their own. The items of an answer (`output`) count before its text, in which the page shows them once more.
The database holds a chat as a whole and, since 2026, each of its messages in a row of its own too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_responses import RESPONSES
from etl.adapters._api_rows import joined_pieces
from etl.adapters._blocks import identifier, plain, read
from etl.adapters._branches import Tree
from etl.adapters._chat import parsed
from etl.adapters._open_webui_text import shown
from etl.adapters._records import left
from etl.adapters._rollouts import items, obj, text
from etl.adapters._run_usage import usage_of
from etl.adapters._sqlite import names_tables, records
from etl.adapters._tree_rows import Said, Talk, chat_key, rows
from etl.conversation import Ignored, Message, Outcome, Record, Tokens, ToolCall, Unusable, Verdict
from etl.decode import Decoded
from etl.framing import Framed, Limits

_ROLES = {"user": "user", "assistant": "assistant", "system": "system"}
_TABLES = ("chat", "chatidtag", "chat_message", "chat_file", "prompt", "modelfile", "channel", "knowledge", "feedback")
_COLUMNS = {"parent_id": "parentId", "model_id": "model", "status_history": "statusHistory", "created_at": "timestamp",
            "context_summary": "contextSummary"}  # fmt: skip
_HELD = frozenset({
    "id", "parentId", "childrenIds", "role", "content", "timestamp", "model", "output", "error", "annotation", "files",
    "usage", "info", "done", "chat_id", "user_id", "updated_at",
})  # fmt: skip
_INTERPRETER = "open_webui:code_interpreter"
_SILENT = "silent_chat"


class OpenWebUI(Adapter):
    """Chats of Open WebUI."""

    name = "open_webui"
    splits = True
    about = "Open WebUI chats: exports [{id, chat: {history: {messages, currentId}}}], webui.db; branches are rows"
    ignores: ClassVar[dict[str, str]] = {_SILENT: "a chat in which nobody says anything"}

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Rows of the database, or JSON."""
        return records(blocks, limits, {"chat_message": _message_row, "chat": _chat_row})

    def score(self, sample: Sample) -> float:
        """By the tables of a database; else the share of chats."""
        if names_tables(sample.head, "chat") and sum(names_tables(sample.head, name) for name in _TABLES) > 1:
            return 0.95
        if not sample.values:
            return 0.0
        return 0.95 * sum(1 for value in sample.objects() if _looks(value)) / len(sample.values)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The rows of every chat; messages that stand in rows of their own are added to it."""
        alone: dict[str, list[Record]] = {}
        for record in records:
            value = record.value
            if isinstance(value, dict) and _is_row(value):
                alone.setdefault(value["chat_id"], []).append(record)
            elif isinstance(value, dict) and _looks(value):
                yield from _chat(record, value, alone.pop(identifier(value.get("id")) or "", []))
            else:
                yield Unusable(record, "no_messages", "a chat is an object with `history.messages`; this is none")
        for name, found in alone.items():
            yield from _chat(None, {"id": name}, found)


def _looks(value: dict[str, Any]) -> bool:
    """A chat, whole or without what stands around it; or a message of one from a row of its own."""
    return _is_row(value) or _is_chat(value.get("chat")) or _is_chat(value)


def _is_row(value: dict[str, Any]) -> bool:
    told = value.get("message")
    return isinstance(value.get("chat_id"), str) and isinstance(told, dict) and "parentId" in told


def _is_chat(value: Any) -> bool:
    history = value.get("history") if isinstance(value, dict) else None
    if not isinstance(history, dict) or "currentId" not in history or not isinstance(history.get("messages"), dict):
        return False
    nodes = history["messages"]
    some = list(nodes.values())[:8]
    return not some or any(isinstance(node, dict) and {"role", "childrenIds"} & node.keys() for node in some)


def _opened(value: Any) -> Any:
    """A column of JSON."""
    found = parsed(value) if isinstance(value, str) and value[:1] in ("{", "[", '"') else None
    return value if found is None else found


def _chat_row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `chat` as an export has it; the settings of a person are no part of it."""
    told = {key: _opened(item) if key in ("chat", "meta", "tasks", "variables") else item for key, item in row.items()}
    return Decoded({key: item for key, item in told.items() if item is not None and not isinstance(item, bytes)})


def _message_row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `chat_message` by the names that messages of a chat have."""
    name, chat = row.get("id"), row.get("chat_id")
    if not isinstance(name, str) or not isinstance(chat, str):
        return None
    told = {_COLUMNS.get(key, key): _opened(item) for key, item in row.items() if item is not None}
    told = {key: item for key, item in told.items() if not isinstance(item, bytes)}
    message = {**told, "id": name.removeprefix(f"{chat}-"), "parentId": told.get("parentId")}
    return Decoded({"chat_id": chat, "message": message})


def _chat(record: Record | None, value: dict[str, Any], alone: list[Record]) -> Iterator[Outcome]:
    found = [*([record] if record is not None else []), *alone]
    nodes, unread = _nodes(value, alone)
    if not nodes:
        if record is None or unread:
            for each in found:
                yield Unusable(each, "no_messages", "no message of the chat can be read; see what wrote it")
        else:
            yield Ignored(_SILENT, len(found))
        return
    inner = value["chat"] if isinstance(value.get("chat"), dict) else value
    listed = {
        name: [each for each in map(identifier, items(node, "childrenIds")) if each] for name, node in nodes.items()
    }
    tree = Tree.of({name: identifier(node.get("parentId")) for name, node in nodes.items()}, listed)
    current = identifier(obj(inner, "history").get("currentId")) or identifier(value.get("current_message_id"))
    name = identifier(value.get("id")) or identifier(inner.get("id"))
    end = current if current in nodes else max(tree.leaves(), key=lambda leaf: _at(nodes[leaf]))
    talk = Talk(
        _key(name, nodes),
        tree,
        end,
        lambda node: _said(nodes[node]),
        lambda node: nodes[node].get("role") == "assistant",
    )
    made = rows(talk, found)
    if isinstance(made, str):
        for each in found:
            yield Unusable(each, "bad_message", made)
        return
    system = text(obj(inner, "params").get("system")) or text(inner.get("system"))
    for row in made:
        row.conversation_id, row.agent = name, "open-webui"
        if system is not None and not any(message.role == "system" for message in row.messages):
            row.messages.insert(0, Message("system", system, inherited=row is not made[0]))
    made[0].started_at, made[0].ended_at = value.get("created_at", inner.get("timestamp")), value.get("updated_at")
    made[0].extra = _extra(value, inner, unread)
    yield from made


def _nodes(value: dict[str, Any], alone: list[Record]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The messages by id, and what stands among them and is none; a row adds what the chat does not say of it."""
    inner = value["chat"] if isinstance(value.get("chat"), dict) else value
    nodes: dict[str, dict[str, Any]] = {}
    unread: dict[str, Any] = {}
    for name, node in obj(obj(inner, "history"), "messages").items():
        if isinstance(node, dict) and ("role" in node or node.get("content") or node.get("output")):
            nodes[name] = node
        elif node not in (None, {}):
            unread[name] = node
    for each in alone:
        told = each.value["message"]
        name = identifier(told.get("id")) or f"row {len(nodes)}"
        nodes[name] = {**told, **{key: item for key, item in nodes.get(name, {}).items() if item is not None}}
    return nodes, unread


def _key(name: str | None, nodes: dict[str, dict[str, Any]]) -> str:
    first = next(iter(nodes.values()))
    return chat_key("open_webui", name, [first.get("id"), first.get("timestamp"), first.get("content")])


def _at(node: dict[str, Any]) -> float:
    at = node.get("timestamp")
    return float(at) if isinstance(at, (int, float)) and abs(at) < 1 << 62 else 0.0


def _extra(value: dict[str, Any], inner: dict[str, Any], unread: dict[str, Any]) -> dict[str, Any] | None:
    """What stands around the messages. `messages` repeats the way to the current one."""
    rest = left(value, ("id", "chat", "created_at", "updated_at", "history", "messages", "current_message_id")) or {}
    if inner is not value:
        told = left(inner, ("history", "messages", "id", "timestamp")) or {}
        rest |= {key: item for key, item in told.items() if item not in ("", [], {}) and item != rest.get(key)}
    if unread:
        rest["unread_messages"] = unread
    return {key: item for key, item in rest.items() if item not in ("", [], {}, False)} or None


def _said(node: dict[str, Any]) -> Said | str:
    """The messages of a node: an answer is as many as the responses it was made of."""
    role = _ROLES.get(node["role"]) if isinstance(node.get("role"), str) else None
    if role is None:
        return f"its role {plain(node.get('role'))[:60]!r} is not known"
    messages = _answer(node) if role == "assistant" else _asked(role, node)
    first, last = messages[0], next((each for each in reversed(messages) if each.role == role), messages[-1])
    for message in messages:
        message.at = node.get("timestamp")
        message.model = text(node.get("model")) if message.role == "assistant" else None
    first.id = identifier(node.get("id"))
    files = items(node, "files")
    first.parts = [*(first.parts or ()), *files] or None
    usage = _usage(node)
    if usage is not None:
        last.input_tokens, last.output_tokens = usage.input_tokens, usage.output_tokens
    rest = {key: item for key, item in (left(node, _HELD) or {}).items() if item not in ("", [], {}, False)}
    if "files" in node and not files and node["files"] not in (None, []):
        rest["files"] = node["files"]
    if (info := {key: item for key, item in obj(node, "info").items() if key != "usage"}) and usage is None:
        rest["info"] = info
    if rest:
        first.extra = {**(first.extra or {}), **rest}
    failed = node.get("error")
    error = None if failed in (None, False, {}, "") else _error(failed)
    return Said(messages, usage, _verdicts(node), "error" if error is not None else _ended(node, role), error)


def _ended(node: dict[str, Any], role: str) -> str | None:
    """An answer that is not done was stopped, or the program was."""
    return "aborted" if role == "assistant" and node.get("done") is False else None


def _error(failed: Any) -> str:
    told = failed.get("content", failed.get("message", failed)) if isinstance(failed, dict) else failed
    return plain(told) if told is not True else "error"


def _asked(role: str, node: dict[str, Any]) -> list[Message]:
    content = read(node.get("content"))
    rest = {"blocks": content.rest} if content.rest else None
    return [Message(role, content.text, content.reasoning, parts=content.parts, extra=rest)]


def _answer(node: dict[str, Any]) -> list[Message]:
    """From the items of an answer where it has them, else from its text."""
    output = [item for item in items(node, "output") if isinstance(item, dict)]
    if not output:
        content = node.get("content")
        return shown(content) if isinstance(content, str) else _asked("assistant", node)
    made = joined_pieces([message for item in output for message in _item(item)])
    return made if made[0].role == "assistant" else [Message("assistant"), *made]


def _item(item: dict[str, Any]) -> list[Message]:
    """An item of the Responses API; code that Open WebUI ran is one of its own."""
    if item.get("type") == _INTERPRETER:
        call = ToolCall("code_interpreter", {"code": item.get("code")}, identifier(item.get("id")))
        made = [Message("assistant", calls=[call])]
        if item.get("output") is not None:
            made.append(Message("tool", plain(item["output"]), call_id=call.id))
        return made
    about = ("status", "start_tag", "end_tag", "attributes", "started_at", "ended_at", "duration")
    held = about if item.get("type") == "reasoning" else ("status",) if item.get("status") == "completed" else ()
    return RESPONSES.message({key: value for key, value in item.items() if key not in held})


def _usage(node: dict[str, Any]) -> Tokens | None:
    """Of all responses of an answer together; Ollama has names of its own."""
    for holder in (node.get("usage"), obj(node, "info").get("usage"), node.get("info")):
        if isinstance(holder, dict):
            found = usage_of(holder)
            counts = [holder.get(key) for key in ("prompt_eval_count", "eval_count")]
            if found is None and any(type(count) is int for count in counts):
                found = Tokens(*(count if type(count) is int and count >= 0 else None for count in counts))
            if found is not None:
                return found
    return None


def _verdicts(node: dict[str, Any]) -> list[Verdict] | None:
    """The thumb that a person gave an answer."""
    told = obj(node, "annotation")
    rating = told.get("rating")
    if not isinstance(rating, (int, float)):
        return None
    reason = "; ".join(filter(None, (text(told.get("reason")), text(told.get("comment")))))
    return [Verdict("rating", "human", float(rating), reason=reason or None)]
