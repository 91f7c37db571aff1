"""Nodes of a verifiers trace on one way through it: messages, and the tokens that each of them adds."""

from __future__ import annotations

from typing import Any

from etl.adapters._chat import chat_messages
from etl.adapters._rollouts import TokenSequence, count, obj, reals
from etl.conversation import Message, Tokens

_NODE = frozenset({"parent", "message", "sampled", "timestamp", "tools"})
_TOKENS = ("token_ids", "mask", "logprobs")
_CALL = frozenset({"node", "model", "finish_reason", "usage"})
_USED = ("prompt_tokens", "completion_tokens", "cached_input_tokens", "reasoning_tokens", "cost")


def total(rewards: Any) -> float | None:
    """The sum of score times weight; None where nothing was scored."""
    listed = rewards.values() if isinstance(rewards, dict) else ()
    scored = [item for item in listed if isinstance(item, dict) and type(item.get("score")) in (int, float)]
    weights = [item["weight"] if type(item.get("weight")) in (int, float) else 1.0 for item in scored]
    return sum(item["score"] * weight for item, weight in zip(scored, weights, strict=True)) if scored else None


class Path:
    """The messages of one way."""

    def __init__(self, calls: dict[Any, dict[str, Any]]) -> None:
        self.messages: list[Message] = []
        self.tools: Any = None
        self.finish_reason: str | None = None
        self.compacted = False
        self._calls = calls
        self._spans: list[tuple[Message, dict[str, Any]]] = []
        self._used: list[dict[str, Any]] = []

    def take(self, number: int, node: Any, inherited: bool) -> str | None:
        """Adds a node; the reason where it holds no message."""
        read = chat_messages(node.get("message")) if isinstance(node, dict) else "bad_message"
        if isinstance(read, str):
            return read
        self.tools = self.tools or node.get("tools")
        call = self._calls.get(number, {})
        for message in read:
            message.at = node.get("timestamp")
            message.inherited = inherited
            message.synthetic = (message.role == "assistant" and node.get("sampled") is False) or _is_summary(node)
            message.model = call["model"] if isinstance(call.get("model"), str) else message.model
            message.finish_reason = call["finish_reason"] if isinstance(call.get("finish_reason"), str) else None
        self.compacted = self.compacted or _is_summary(node)
        last = read[-1]
        self.finish_reason = last.finish_reason or self.finish_reason
        rest = {key: item for key, item in node.items() if key not in _NODE and key not in _TOKENS}
        used = obj(call, "usage")
        if used and not inherited:
            self._used.append(used)
        if used:
            last.input_tokens, last.output_tokens = _read(used), count(used.get("completion_tokens"))
        more = {key: item for key, item in call.items() if key not in _CALL and item not in (None, {}, [])}
        odd = {key: item for key, item in used.items() if key not in _USED}
        rest.update({key: item for key, item in (("call", more), ("usage", odd)) if item})
        rest = {key: item for key, item in rest.items() if item not in (None, [], {})}
        if rest:
            last.extra = {**(last.extra or {}), **rest}
        self.messages += read
        self._spans.append((last, node))
        return None

    def usage(self) -> Tokens | None:
        """What the calls of this row's own turns used."""
        if not self._used:
            return None
        return Tokens(
            _sum([_read(used) for used in self._used]),
            _sum([count(used.get("completion_tokens")) for used in self._used]),
            _sum([count(used.get("cached_input_tokens")) for used in self._used]),
            None,
            _sum([count(used.get("reasoning_tokens")) for used in self._used]),
            _sum([used["cost"] for used in self._used if type(used.get("cost")) in (int, float)]),
        )

    def sequence(self) -> TokenSequence | None:
        """The tokens of the way as one sequence; where a sampled node has none that fit, they stay with the nodes."""
        ids: list[int] = []
        mask: list[int] = []
        logprobs: list[float] = []
        for _, node in self._spans:
            found = _tokens(node)
            if found is None or (node.get("sampled") and not found.token_ids):
                self._keep_tokens()
                return None
            ids += found.token_ids
            mask += found.loss_mask
            logprobs += found.logprobs or []
        return TokenSequence(ids, mask, logprobs) if ids else None

    def _keep_tokens(self) -> None:
        for message, node in self._spans:
            logged = {key: node[key] for key in _TOKENS if node.get(key)}
            if logged:
                message.extra = {**(message.extra or {}), **logged}


def _is_summary(node: dict[str, Any]) -> bool:
    """Whether a harness wrote the message in the place of earlier turns."""
    links = node.get("semantic_parents")
    return isinstance(links, list) and any(
        isinstance(link, dict) and link.get("type") == "compaction" for link in links
    )


def _tokens(node: dict[str, Any]) -> TokenSequence | None:
    """What one node adds: log probabilities are spread over the sampled tokens; None where they do not fit together."""
    ids, mask, said = node.get("token_ids") or [], node.get("mask") or [], reals(node.get("logprobs") or [])
    if not isinstance(ids, list) or not isinstance(mask, list) or said is None or len(mask) != len(ids):
        return None
    if not all(type(item) is int and 0 <= item < 1 << 31 for item in ids) or len(said) != sum(map(bool, mask)):
        return None
    sampled = iter(said)
    flags = [int(bool(item)) for item in mask]
    return TokenSequence(ids, flags, [next(sampled) if flag else 0.0 for flag in flags])


def _read(used: dict[str, Any]) -> int | None:
    """Tokens read: `prompt_tokens` leaves out what came from a cache."""
    fresh = count(used.get("prompt_tokens"))
    return None if fresh is None else fresh + (count(used.get("cached_input_tokens")) or 0)


def _sum(values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
