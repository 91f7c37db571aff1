"""One response of the model, out of the several lines in which Claude Code writes it.

Each line has one content block (or a few) and repeats the usage, which grows from line to line: the largest counts.
"""

from __future__ import annotations

from typing import Any

from etl.adapters._blocks import Blocks, call, read
from etl.adapters._claude_lines import Line
from etl.adapters._claude_text import content_of, is_synthetic, text_of
from etl.adapters._usage import tokens
from etl.conversation import Message, Tokens, ToolCall

_MODELLED = frozenset({"role", "content", "id", "type", "model", "usage", "stop_reason"})
_GROWING = {"text": "text", "thinking": "thinking"}


class Response:
    """Lines of one `message.id`, put together as they come."""

    def __init__(self, name: str | None, inherited: bool) -> None:
        self.name = name
        self.inherited = inherited
        self.synthetic = False
        self.lines: list[tuple[Line, dict[str, Any]]] = []
        """Each line with its keys that nothing else holds."""
        self.tokens: Tokens | None = None
        self.finish_reason: str | None = None
        self.model: str | None = None
        self._usage: dict[str, Any] | None = None
        self._blocks: list[tuple[Any, Line, ToolCall | None]] = []

    def add(self, line: Line, extra: dict[str, Any]) -> list[ToolCall]:
        """Take a further line; gives the calls that are new in it."""
        self.lines.append((line, extra))
        self.synthetic = self.synthetic or is_synthetic(line.value)
        message = line.value.get("message")
        if isinstance(message, dict):
            self.model = text_of(message, "model") or self.model
            self.finish_reason = text_of(message, "stop_reason") or self.finish_reason
            self._count(message.get("usage"), line.value.get("costUSD"))
        content = content_of(line.value)
        if isinstance(content, str):
            content = [{"type": "text", "text": content}] if content else []
        new = []
        for block in content if isinstance(content, list) else [content] if content is not None else []:
            made = self._take(block, line)
            if made is not None:
                new.append(made)
        return new

    def _take(self, block: Any, line: Line) -> ToolCall | None:
        """Add a block that was not there yet, or that goes on where an earlier one stopped."""
        if self._blocks and any(source is not line and known == block for known, source, _ in self._blocks):
            return None
        if self._blocks and isinstance(block, dict):
            known, source, _ = self._blocks[-1]
            key = _GROWING.get(str(block.get("type")))
            if key and source is not line and isinstance(known, dict) and known.get("type") == block.get("type"):
                before, now = known.get(key), block.get(key)
                if isinstance(before, str) and isinstance(now, str) and before and now.startswith(before):
                    self._blocks[-1] = (block, line, None)
                    return None
        made = None
        if isinstance(block, dict) and str(block.get("type")).endswith("tool_use"):
            made = call(block)
            if made is not None:
                if self._is_again(made, block, line):
                    return None
                made.at = line.value.get("timestamp")
                if block["type"] != "tool_use":
                    made.actor = "server"
        self._blocks.append((block, line, made))
        return made

    def _is_again(self, made: ToolCall, block: Any, line: Line) -> bool:
        """Whether a call was there already; then its later arguments count."""
        for index, (_, source, earlier) in enumerate(self._blocks):
            if earlier is not None and made.id is not None and earlier.id == made.id and source is not line:
                earlier.name, earlier.arguments = made.name, made.arguments
                self._blocks[index] = (block, line, earlier)
                return True
        return False

    def _count(self, usage: Any, cost: Any) -> None:
        found = tokens(usage)
        if found is None or not isinstance(usage, dict):
            return
        details = usage.get("output_tokens_details")
        thinking = details.get("thinking_tokens") if isinstance(details, dict) else None
        if isinstance(thinking, int) and not isinstance(thinking, bool) and thinking >= 0:
            found.reasoning_tokens = thinking
        if isinstance(cost, (int, float)) and not isinstance(cost, bool) and found.cost_usd is None:
            found.cost_usd = float(cost)
        if self.tokens is None or _weight(found) >= _weight(self.tokens):
            self.tokens, self._usage = found, usage

    def messages(self) -> list[Message]:
        """The assistant message, and a tool message for each result that came with it from the provider."""
        blocks = read([block for block, _, _ in self._blocks])
        first = self.lines[0][0]
        message = Message("assistant", blocks.text, blocks.reasoning, id=self.name or first.uuid)
        message.calls = [made for _, _, made in self._blocks if made is not None] or None
        message.at, message.model = first.value.get("timestamp"), self.model
        message.finish_reason, message.parts = self.finish_reason, blocks.parts
        message.inherited, message.synthetic = self.inherited, self.synthetic
        if self.tokens is not None and not self.synthetic:
            message.input_tokens, message.output_tokens = self.tokens.input_tokens, self.tokens.output_tokens
        message.extra = self._extra(blocks) or None
        answers = [
            Message("tool", found.text, call_id=found.call_id, at=message.at, inherited=self.inherited,
                    parts=found.parts, failed=found.failed, extra={"content": found.rest} if found.rest else None)
            for found in blocks.results or ()
        ]  # fmt: skip
        return [message, *answers]

    def _extra(self, blocks: Blocks) -> dict[str, Any]:
        """What the lines say beside the message: once where they agree, else with the line that says it."""
        extra: dict[str, Any] = {}
        parts: list[dict[str, Any]] = []
        for line, said in self.lines:
            part: dict[str, Any] = {"uuid": line.uuid, "timestamp": line.value.get("timestamp")}
            message = line.value.get("message")
            if isinstance(message, dict):
                more = {k: v for k, v in message.items() if k not in _MODELLED and v is not None}
                if more:
                    said["message"] = more
            part |= {key: value for key, value in said.items() if extra.setdefault(key, value) != value}
            parts.append(part)
        if len(parts) > 1:
            extra["lines"] = parts
        elif parts[0]["uuid"] and self.name:
            extra["uuid"] = parts[0]["uuid"]
        usage = _counted(self._usage) if self._usage else None
        if usage:
            extra["usage"] = usage
        if blocks.rest:
            extra["content"] = blocks.rest
        return extra


def _weight(found: Tokens) -> tuple[int, int]:
    return (found.output_tokens or 0, found.input_tokens or 0)


def _counted(usage: dict[str, Any]) -> dict[str, Any]:
    """What of a usage the message's own numbers do not hold; zeros say nothing."""
    kept = {key: _trimmed(value) for key, value in usage.items() if key not in ("input_tokens", "output_tokens")}
    return {key: value for key, value in kept.items() if value}


def _trimmed(value: Any) -> Any:
    return {key: item for key, item in value.items() if item} if isinstance(value, dict) else value
