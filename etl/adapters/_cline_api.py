"""The API history of a Cline or Roo Code task as messages: `[{role, content, ts?, modelInfo?, metrics?}]`.

Calls are blocks, or XML in the model's text; results are blocks, or text in a user's place that answers in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etl.adapters._blocks import Blocks, Result, read
from etl.adapters._cline_text import Piece, outcome, said, written
from etl.adapters._session import dict_of, real, text_of, whole, without
from etl.adapters._talk import Talk
from etl.conversation import Message, Tokens, ToolCall

_HELD = ("role", "content", "ts", "modelInfo", "metrics")


class History:
    """The messages of a task's API history, one after the other."""

    def __init__(self, values: Sequence[dict[str, Any]]) -> None:
        self.talk = Talk()
        self.provider: str | None = None
        self.tools: set[str] = set()
        """Names of all tools that were called."""
        self._values = values
        self._open: list[ToolCall] = []
        self._made = 0
        for index, value in enumerate(values):
            if value.get("isSummary") is True:
                self.talk.flags.add("compacted")
            if value.get("role") == "assistant":
                self._answered(value, self._names_after(index))
            else:
                self._asked(value)

    def _names_after(self, index: int) -> frozenset[str]:
        """The tools whose results come next."""
        after = self._values[index + 1] if index + 1 < len(self._values) else {}
        texts = [_text(block) for block in _blocks(after.get("content"))] if after.get("role") == "user" else []
        return frozenset(piece.tool for text in texts if text for piece in said(text) if piece.tool)

    def _answered(self, value: dict[str, Any], answered: frozenset[str]) -> None:
        model = dict_of(value, "modelInfo")
        self.talk.model = text_of(model, "modelId") or self.talk.model
        self.provider = text_of(model, "providerId") or self.provider
        content, named = _own_ids(value.get("content"))
        blocks = read(content)
        if not blocks.calls:
            self._spell_out(blocks, answered)
        for call in blocks.calls or ():
            self._made += 1
            call.id = call.id or f"call_{self._made}"
            self.tools.add(call.name)
        self._open = list(blocks.calls or ())
        extra = {**without(value, *_HELD), **without({"modelInfo": without(model, "modelId", "providerId")})}
        if blocks.rest:
            extra["content"] = blocks.rest
        if named:
            extra["call_ids"] = named
        metrics = dict_of(value, "metrics")
        message = self.talk.answer(blocks, value.get("ts"), extra=extra)
        message.id = text_of(value, "id")
        if message.id is not None and message.extra is not None:
            message.extra = without(message.extra, "id") or None
        used = _metrics(metrics)
        if used is not None:
            self.talk.tokens.append(used)
            message.input_tokens, message.output_tokens = used.input_tokens, used.output_tokens
        elif metrics:
            message.extra = {**(message.extra or {}), "metrics": metrics}

    def _spell_out(self, blocks: Blocks, answered: frozenset[str]) -> None:
        """Calls in the text become calls, thinking in it reasoning."""
        found = written(blocks.text, answered)
        if found.reasoning:
            blocks.reasoning = "\n".join(filter(None, (blocks.reasoning, found.reasoning)))
        if found.calls or found.reasoning:
            blocks.text = found.text
        if found.calls:
            blocks.calls = [ToolCall(name, parameters) for name, parameters in found.calls]

    def _asked(self, value: dict[str, Any]) -> None:
        """Results first, as they answer what was said before; then what a person and the program say, in order."""
        at = value.get("ts")
        extra = without(value, *_HELD) or None
        answer: Message | None = None
        for block in _blocks(value.get("content")):
            text = _text(block)
            if text is None:
                answer = self._other(block, at, answer)
                continue
            for piece in said(text):
                if piece.tool is not None:
                    answer = self._result(piece.text, piece.tool, at)
                elif answer is not None and not piece.synthetic and not _is_tagged(text):
                    answer.content = f"{answer.content}\n\n{piece.text}" if answer.content else piece.text
                    _judge(answer)
                else:
                    answer = None
                    self._say(piece, at, extra)
                    extra = None
        if extra and self.talk.messages:
            self.talk.note(extra)

    def _say(self, piece: Piece, at: Any, extra: dict[str, Any] | None) -> None:
        if piece.synthetic or (extra is not None and extra.get("isSummary") is True):
            self.talk.say(Message("user", piece.text, at=at, synthetic=True, extra=extra))
        elif piece.text or not self.talk.messages:
            self.talk.ask(piece.text, at, extra=extra)

    def _other(self, block: Any, at: Any, answer: Message | None) -> Message | None:
        """A result as a block; an image, which belongs to the result or the words before it."""
        blocks = read([block])
        for found in blocks.results or ():
            self._block_result(found, at)
        if blocks.results:
            return None
        if answer is not None:
            answer.parts = [*(answer.parts or []), *(blocks.parts or [])]
        elif blocks.parts:
            last = self.talk.messages[-1] if self.talk.messages else None
            if last is not None and last.role == "user":
                last.parts = [*(last.parts or []), *blocks.parts]
            else:
                self.talk.say(Message("user", parts=blocks.parts, at=at))
        return answer

    def _block_result(self, found: Result, at: Any) -> None:
        call = next((call for call in self._open if call.id == found.call_id), None)
        self._open = [each for each in self._open if each is not call]
        header = said(found.text)[0] if found.text else Piece("")
        message = Message("tool", header.text if header.tool else found.text, call_id=found.call_id, at=at)
        message.parts, message.failed = found.parts, found.failed
        message.extra = {"content": found.rest} if found.rest else None
        _judge(message)
        self.talk.say(message)

    def _result(self, text: str, tool: str, at: Any) -> Message:
        call = next((call for call in self._open if call.name == tool), None) or next(iter(self._open), None)
        self._open = [each for each in self._open if each is not call]
        message = Message("tool", text, call_id=None if call is None else call.id, name=None, at=at)
        if call is None or call.name != tool:
            message.extra = {"tool": tool}
        if call is None:
            self._made += 1
            message.call_id = f"result_{self._made}"
        _judge(message)
        return self.talk.say(message)


def _own_ids(content: Any) -> tuple[Any, dict[str, Any]]:
    """Calls under the id that results name, and the provider's ids of them (`call_id`) by it."""
    named = {
        block["id"]: block["call_id"]
        for block in _blocks(content)
        if text_of(block, "id") is not None and block.get("call_id") not in (None, block["id"])
    }
    if not named:
        return content, {}
    return [without(b, "call_id") if text_of(b, "id") in named else b for b in content], named


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [] if content is None else [content]


def _text(block: Any) -> str | None:
    """The text of a block that is only text."""
    if isinstance(block, str):
        return block
    kind = block.get("type", "text") if isinstance(block, dict) else None
    return block["text"] if kind == "text" and isinstance(block.get("text"), str) else None


def _is_tagged(text: str) -> bool:
    return text.lstrip().startswith(("<task>", "<user_message>", "<feedback>", "<answer>", "<new_message>"))


def _judge(message: Message) -> None:
    """What the words of a result say of how the call went, where no flag does."""
    if message.failed is None or message.failed:
        failed, condition, error = outcome(message.content)
        message.failed = True if message.failed else failed
        message.condition, message.error = condition, error


def _metrics(metrics: dict[str, Any]) -> Tokens | None:
    """`{tokens: {prompt, completion, cached}, cost}`: what was cached is beside the prompt."""
    counts = dict_of(metrics, "tokens")
    fresh, out, cached = (whole(counts.get(key)) for key in ("prompt", "completion", "cached"))
    total = None if fresh is None else fresh + (cached or 0)
    found = Tokens(total, out, cached, None, None, real(metrics.get("cost")))
    return found if any((total, out, cached)) else None
