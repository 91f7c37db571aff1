"""One node of a ChatGPT export as a message: content types, calls by recipient, reasoning that belongs to an answer."""

from __future__ import annotations

from typing import Any

from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import parsed
from etl.conversation import Message, ToolCall

ROLES = frozenset({"system", "user", "assistant", "tool"})
_TEXTS = ("text", "result", "content", "user_profile", "user_instructions", "model_set_context")
_HELD = frozenset({"id", "author", "create_time", "content", "reasoning_nodes"})
_ALL = "all"
_BEFORE = "reasoning_nodes"


def role_of(node: dict[str, Any]) -> str | None:
    """Who speaks in a node; None where it has no message."""
    message = node.get("message")
    author = message.get("author") if isinstance(message, dict) else None
    return identifier(author.get("role")) if isinstance(author, dict) else None


class Path:
    """The messages of one way through the tree."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.hidden: dict[str, Any] = {}
        """Nodes with an empty message: what they carry, by id."""
        self.interrupted = False
        self._thought: Message | None = None
        """Reasoning that its answer follows."""
        self._open: list[tuple[str, str]] = []
        """Calls since the last user turn that nothing answered yet: name and id."""

    def take(self, name: str, node: dict[str, Any], inherited: bool) -> str | None:
        """Add a node; what is wrong with it where it cannot be read."""
        message = node.get("message")
        if message is None:
            return None
        if not isinstance(message, dict):
            return f"node {name} has a message that is no object"
        role = role_of(node)
        if role not in ROLES:
            return f"node {name} is by {plain(role)[:60]!r}, which is no known role"
        made = _message(name, message, role)
        made.inherited = inherited
        if not (made.content or made.reasoning or made.parts or made.calls) and role in ("system", "user"):
            self.hidden[name] = made.extra
        else:
            self._add(made, _kind(message))
        return None

    def end(self) -> None:
        """Reasoning without an answer is a message of its own."""
        if self._thought is not None:
            self.messages.append(self._thought)
            self._thought = None

    def _add(self, made: Message, kind: str) -> None:
        if kind in ("thoughts", "reasoning_recap") and made.role == "assistant":
            if self._thought is None:
                self._thought = made
            else:
                self._thought = _joined(self._thought, made)
            return
        if self._thought is not None and made.role == "assistant":
            made = _joined(self._thought, made)
            self._thought = None
        self.end()
        if made.role == "user":
            self._open = []
        for call in made.calls or ():
            self._open.append((call.name, call.id or ""))
        if made.role == "tool":
            self._answer(made)
        self.interrupted = made.finish_reason == "interrupted"
        self.messages.append(made)

    def _answer(self, made: Message) -> None:
        """A result answers the first open call of its tool, else the only open call: exports name no call."""
        named = [waiting for waiting in self._open if waiting[0] == made.name]
        if named or len(self._open) == 1:
            waiting = (named or self._open)[0]
            self._open.remove(waiting)
            made.call_id = waiting[1]


def _joined(thought: Message, answer: Message) -> Message:
    """An answer with the reasoning before it, whose own keys are kept under `reasoning_nodes`."""
    answer.reasoning = "\n\n".join(text for text in (thought.reasoning, answer.reasoning) if text) or None
    answer.parts = [*(thought.parts or ()), *(answer.parts or ())] or None
    told = dict(thought.extra or {})
    before = told.pop(_BEFORE, [])
    answer.extra = {**(answer.extra or {}), _BEFORE: [*before, {"id": thought.id, "at": thought.at, **told}]}
    return answer


def _kind(message: dict[str, Any]) -> str:
    content = message.get("content")
    kind = content.get("content_type") if isinstance(content, dict) else None
    return kind if isinstance(kind, str) else "text"


def _message(name: str, message: dict[str, Any], role: str) -> Message:
    metadata = message["metadata"] if isinstance(message.get("metadata"), dict) else {}
    made = Message(role, id=identifier(message.get("id")) or name, at=message.get("create_time"))
    extra = {key: item for key, item in message.items() if key not in _HELD and item is not None and item != {}}
    left: dict[str, Any] = dict(metadata)
    if isinstance(metadata.get("model_slug"), str) and role == "assistant":
        made.model = left.pop("model_slug")
    details = metadata.get("finish_details")
    if isinstance(details, dict) and isinstance(details.get("type"), str):
        made.finish_reason = details["type"]
        if len(details) == 1:
            del left["finish_details"]
    if isinstance(message.get("metadata"), dict):
        extra.pop("metadata", None)
        if left:
            extra["metadata"] = left
    _content(message.get("content"), made, extra)
    author = message["author"]
    if role == "tool":
        made.name = identifier(author.get("name"))
        made.failed = _failed(_kind(message), metadata)
    told = {key: item for key, item in author.items() if key != "role" and item is not None and item != {}}
    if role == "tool" and made.name is not None:
        told.pop("name", None)
    if told:
        extra["author"] = told
    recipient = message.get("recipient")
    if role == "assistant" and isinstance(recipient, str) and recipient not in (_ALL, ""):
        _call(made, recipient, _kind(message))
        extra.pop("recipient", None)
    elif recipient == _ALL:
        extra.pop("recipient", None)
    hidden = metadata.get("is_visually_hidden_from_conversation") is True
    made.synthetic = role == "user" and (hidden or _kind(message) == "user_editable_context")
    made.extra = extra or None
    return made


def _content(content: Any, made: Message, extra: dict[str, Any]) -> None:
    """Text and parts of a content object of any type; keys that are neither stay under `content`."""
    if not isinstance(content, dict):
        made.content = plain(content)
        return
    kind = content.get("content_type")
    texts: list[str] = []
    parts: list[Any] = []
    left = {key: item for key, item in content.items() if item is not None}
    if kind in ("text", "multimodal_text"):
        left.pop("content_type", None)
        if isinstance(content.get("parts"), list):
            for part in left.pop("parts"):
                _part(part, texts, parts)
    if kind == "thoughts" and isinstance(content.get("thoughts"), list):
        made.reasoning = _thoughts(left.pop("thoughts"), parts)
    texts += [left.pop(key) for key in _TEXTS if isinstance(content.get(key), str)]
    text = "\n".join(text for text in texts if text)
    if kind == "reasoning_recap":
        left["content"] = text
    else:
        made.content = text
    made.parts = parts or None
    if left:
        extra["content"] = left


def _part(part: Any, texts: list[str], parts: list[Any]) -> None:
    """One part of a message: text, or what stands for an image, a recording, a file."""
    if isinstance(part, str):
        texts.append(part)
    elif isinstance(part, dict) and isinstance(part.get("text"), str):
        texts.append(part["text"])
        more = {key: item for key, item in part.items() if key != "text"}
        if more:
            parts.append(more)
    elif part is not None:
        parts.append(part)


def _thoughts(thoughts: list[Any], parts: list[Any]) -> str | None:
    """The reasoning of a node: each thought under its summary."""
    texts: list[str] = []
    for thought in thoughts:
        if not isinstance(thought, dict):
            parts.append(thought)
            continue
        told = [thought[key] for key in ("summary", "content") if isinstance(thought.get(key), str) and thought[key]]
        texts += ["\n".join(told)] if told else []
        held = {key for key in ("summary", "content") if isinstance(thought.get(key), str)}
        if thought.get("chunks") == [thought.get("content")] or thought.get("chunks") == []:
            held.add("chunks")
        more = {key: item for key, item in thought.items() if key not in held and key != "finished"}
        if more:
            parts.append({"type": "thought", **more})
    return "\n\n".join(texts) or None


def _call(made: Message, recipient: str, kind: str) -> None:
    """What is said to a tool is a call of it: an object as JSON text, code, or free text."""
    text = made.content
    arguments: Any = parsed(text) if text.lstrip()[:1] == "{" else None
    if not isinstance(arguments, dict):
        arguments = {"code": text} if kind == "code" else text
    free = isinstance(arguments, str)
    made.calls = [ToolCall(recipient, arguments, made.id, free_form=free, at=made.at)]
    made.content = ""


def _failed(kind: str, metadata: dict[str, Any]) -> bool | None:
    """What the export says of a run: None where it says nothing."""
    if kind == "system_error":
        return True
    outcome = metadata.get("aggregate_result")
    status = outcome.get("status") if isinstance(outcome, dict) else None
    if not isinstance(status, str):
        return None
    return False if status == "success" else True if status.startswith("failed") else None
