"""One call of a model API as the fragment that is stored: what it added, and hashes that say what it continues.

`_api_chain.py` makes the hashes. Fragments without a call in them (bridges) hold together what keys tell apart: the
further answers of a call, a response id that is named, a request and a response that are records of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from etl.adapters._api_bodies import Read, read_body
from etl.adapters._api_chain import Chain, Memory, Said, is_object, said, state_number
from etl.adapters._api_choice import CODECS, NO_CONVERSATION, kind_of, model_in, provider_at, streamed
from etl.adapters._api_form import Answered, Body, Choice, Codec, error_text, obj, packed
from etl.adapters._api_secrets import clean_url, without_credentials
from etl.adapters._usage import tokens
from etl.conversation import Fragment, Ignored, Message, Outcome, Record, Tokens, Unusable

_encode = msgspec.json.Encoder(order="deterministic").encode
_USAGES = ("usage", "usageMetadata")
_FIRST_EVENTS = 16
"""How many events of a stream are asked whose it is: pings and comments of gateways may come first."""


class Exchange(msgspec.Struct, gc=False):
    """What an envelope says of one call. Bodies may be values, text, bytes, streams."""

    records: Sequence[Record]
    """The record that it is (part of); where request and response are records of their own, both."""
    request: Any = None
    response: Any = None
    api: str | None = None
    """Name of a codec, where the envelope tells."""
    url: str | None = None
    status: int | None = None
    at: Any = None
    ended_at: Any = None
    id: str | None = None
    """Where the envelope has an id of its own that names the call for good."""
    model: str | None = None
    provider: str | None = None
    scope: str | None = None
    """Calls of two scopes (users, keys, sessions) are never one conversation."""
    usage: Tokens | None = None
    error: str | None = None
    tools: Any = None
    log: Body = msgspec.field(default_factory=dict)
    """What else the envelope says."""
    flags: set[str] = msgspec.field(default_factory=set)
    captured: bool = True
    """False where the envelope left the messages out, or put a placeholder in their place."""
    unit: Any = None
    """The part of the record that the call is, where a record holds many."""
    line: bool = False
    """Whether the request is a record of its own, which may be read before there is a response."""


def outcomes(exchange: Exchange, memory: Memory) -> Iterator[Outcome]:
    """The fragments of one call; a named rule for what is no conversation; a reject for what no codec reads."""
    request, response = read_body(exchange.request), read_body(exchange.response)
    url = clean_url(exchange.url) if exchange.url else None
    kind = exchange.api or kind_of(url, request.value, telling(response))
    if kind in NO_CONVERSATION:
        for _ in exchange.records:
            yield Ignored(kind)
        return
    codec = CODECS.get(kind or "")
    if codec is None or not _speaks(exchange, request, response):
        for record in exchange.records:
            yield Unusable(record, "unknown_api", "no known request or response of a model API; see what wrote it")
        return
    call = _Call(exchange, codec, request, response, url, memory)
    yield from call.fragments()


def telling(response: Read) -> Any:
    """Something to tell the API by: the body, or the first event of a stream that tells."""
    if type(response.value) is dict:
        return response.value
    events = [event for event in response.events or () if type(event) is dict]
    return next((event for event in events[:_FIRST_EVENTS] if streamed(event)), events[0] if events else None)


def _speaks(exchange: Exchange, request: Read, response: Read) -> bool:
    """Whether there is a body to read, or at least the word that there was one."""
    if type(request.value) is dict or type(response.value) is dict or response.events:
        return True
    return not exchange.captured or bool(exchange.error)


class _Call:
    """One call on its way to fragments."""

    def __init__(
        self, exchange: Exchange, codec: Codec, request: Read, response: Read, url: str | None, memory: Memory
    ) -> None:
        self._exchange = exchange
        self._codec = codec
        self._memory = memory
        self._url = url
        self._asked = codec.asked(obj(request.value))
        self._answer = _answer(codec, response)
        self._sent = obj(request.value)
        if obj(obj(response.value).get("error")):
            self._answer.rest["error"] = response.value["error"]
        self.flags = set(exchange.flags)
        if not response.whole or (response.events is not None and not self._answer.done):
            self.flags.add("truncated_source")
        if request.text is not None or not request.whole:
            self.flags.add("content_not_captured")
            exchange.log = {**exchange.log, "request_text": request.text}
        if response.text is not None:
            self._answer.rest["text"] = response.text

    def fragments(self) -> Iterator[Fragment]:
        """The call itself; and bridges: empty fragments that hold together what is told apart by its key."""
        name = self._name()
        history = self._memory.history(self._codec, self._asked.items)
        path, states, chain = history.path, history.states, history.chain
        answers = [[said(message) for message in choice.messages] for choice in self._answer.choices]
        keys = [self._key(chain, name, messages) for messages in answers or [[]]]
        key, previous = keys[0], self._asked.previous or self._answer.previous
        kit, kits = self._memory.kit(key, self._asked.tools or self._exchange.tools)
        told: Body = {
            "call": name, "kit": kit, "api": self._codec.name, "path": [message.name for message in path],
            "states": states, "asked": chain.now(),
            "outs": [state_number(chain.after(messages)) for messages in answers],
            "answers": [_told(choice) for choice in self._answer.choices], **self._facts(previous),
        }  # fmt: skip
        payload = {name: value for name, value in told.items() if value not in (None, [], {})}
        # Names the record: a copy of it is the same call, a second log of the call is not.
        payload["record"] = self._line() if self._exchange.line else _digest(_encode(payload))
        if said_first := self._memory.new(key, path):
            payload["said"] = said_first
        if kits:
            payload["kits"] = kits
        others_of = {*keys, *self._elsewhere(chain, path, answers)} - {key}
        link = self._link(name, bool(others_of))
        at = self._exchange.at if self._exchange.at is not None else self._answer.at
        record, *others = self._exchange.records
        yield Fragment(record, key, link, at, payload)
        bridge = {"bridge": name}
        for other in others:
            yield Fragment(other, key, link, at, {**bridge, "record": _digest(other.raw)})
        if previous:
            yield Fragment(record, key, f"{self._codec.name} {previous}", at, {**bridge, "to": previous}, bridge=True)
        for other_key in sorted(others_of):
            yield Fragment(record, other_key, link, at, bridge, bridge=True)

    def _link(self, name: str, bridged: bool) -> str | None:
        """What holds events of different keys together: the line of the request, the id of the response, the call."""
        if self._exchange.line:
            return f"line {self._line()}"
        if self._answer.id and (self._codec.name == "openai_responses" or bridged):
            return f"{self._codec.name} {self._answer.id}"
        return f"{self._codec.name} {name}" if bridged else None

    def _elsewhere(self, chain: Chain, path: Sequence[Said], answers: Sequence[Sequence[Said]]) -> Iterator[str]:
        """Keys of conversations that this call can belong to though its history begins otherwise: its answer may take
        the place of the first one (see `_api_repeats.py`), or be repeated without its calls.
        """
        if not self._asked.items or self._asked.thread or not self._exchange.captured:
            return
        for answer in answers:
            if chain.opening is None and any(message.form.get("calls") for message in answer):
                shown = [said(Message("assistant", message.form.get("content", ""))) for message in answer]
                if any(each.atoms for each in shown) or _malformed(answer):
                    yield self._chain_key(chain, chain.after(shown).hexdigest())
            elif chain.before is not None and _complained(path[chain.begun :]):
                yield self._chain_key(chain, chain.after(answer, chain.before).hexdigest())

    def _name(self) -> str:
        """The envelope's id of the call, the provider's of the response, or else a hash of all of it."""
        exchange = self._exchange
        name = exchange.id or self._answer.id
        if name:
            return name
        if exchange.unit is not None:
            return f"call:{_digest(_encode(exchange.unit))}"
        return f"call:{_digest(b' '.join(record.raw for record in exchange.records))}"

    def _line(self) -> str:
        """Names a request that is a record of its own."""
        return _digest(self._exchange.records[0].raw)

    def _key(self, chain: Chain, name: str, answer: Sequence[Said]) -> str:
        if not self._exchange.captured or not (self._asked.items or self._asked.thread):
            return f"call {_digest(_encode((self._scope(), name)))}"
        if self._asked.thread:
            return f"thread {_digest(_encode((self._scope(), self._asked.thread)))}"
        return self._chain_key(chain, chain.opened(answer))

    def _chain_key(self, chain: Chain, opening: str) -> str:
        return f"chain {_digest(_encode((self._scope(), self._asked.previous, opening)))}"

    def _scope(self) -> tuple[str, str]:
        return self._exchange.scope or "", self._asked.user or ""

    def _facts(self, previous: str | None) -> Body:
        """Everything about the call but its messages."""
        exchange, answer = self._exchange, self._answer
        error = answer.error or exchange.error
        if error is None and exchange.status is not None and exchange.status >= 400:
            error = f"HTTP status {exchange.status}"
        log = {**exchange.log, "url": self._url, "http_status": exchange.status}
        usage = answer.usage or exchange.usage or tokens(exchange.log.get("usage"))
        if answer.usage is not None and exchange.usage is not None and answer.usage.cost_usd is None:
            answer.usage.cost_usd = exchange.usage.cost_usd
        if usage is not None and not _adds_up(usage, answer.rest):
            self.flags.add("usage_mismatch")
        # What a response repeats of its request is told once.
        rest = {key: value for key, value in answer.rest.items() if self._sent.get(key) != value}
        if answer.usage is not None:
            rest = {key: value for key, value in rest.items() if key not in _USAGES or not _is_plain(value)}
        return {
            "model": answer.model or self._asked.model or exchange.model or model_in(self._url),
            "asked_model": self._asked.model,
            "provider": exchange.provider or provider_at(self._url) or self._codec.provider, "at": exchange.at,
            "ended_at": exchange.ended_at, "created": answer.at, "error": error, "done": answer.done,
            "usage": _counted(usage), "response_id": answer.id, "previous": previous, "thread": self._asked.thread,
            "request": without_credentials(self._asked.rest), "response": without_credentials(rest),
            "log": _said_only(log),
            "flags": sorted(self.flags), "captured": exchange.captured,
            "line": self._exchange.line or None,
            "notes": sorted({note for record in exchange.records for note in record.notes}),
            "mended": [list(pair) for record in exchange.records for pair in record.mended],
        }  # fmt: skip


_PLAIN_COUNTS = frozenset({
    "prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens", "cached_tokens",
    "reasoning_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cost", "inputTokens", "outputTokens",
    "totalTokens", "cacheReadInputTokens", "cacheReadInputTokenCount", "cacheWriteInputTokens",
    "cacheWriteInputTokenCount", "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount",
    "cachedContentTokenCount",
})  # fmt: skip


def _is_plain(logged: Any) -> bool:
    """Whether usage says nothing that the columns do not: all its other numbers are zero."""
    return type(logged) is dict and all(
        key in _PLAIN_COUNTS or not value or (type(value) is dict and _is_plain(value)) for key, value in logged.items()
    )


def _adds_up(usage: Tokens, rest: Body) -> bool:
    """Whether the counts agree with the provider's own total, where it gives one; some leave cached input out of it."""
    logged = obj(rest.get("usage")) or obj(rest.get("usageMetadata"))
    whole = next((logged[key] for key in ("total_tokens", "totalTokens", "totalTokenCount") if key in logged), None)
    if type(whole) is not int or usage.input_tokens is None or usage.output_tokens is None:
        return True
    cached = (usage.cached_tokens or 0) + (usage.cache_write_tokens or 0)
    return whole in (usage.input_tokens + usage.output_tokens, usage.input_tokens - cached + usage.output_tokens)


def _counted(usage: Tokens | None) -> Body | None:
    if usage is None:
        return None
    return {name: value for name in usage.__struct_fields__ if (value := getattr(usage, name)) is not None}


_EMPTY: tuple[Any, ...] = (None, "", {}, [])


def _said_only(log: Body) -> Body:
    """An envelope's own keys, those that say something, without credentials."""
    return {
        key: value
        for key, value in without_credentials(log).items()
        if value not in _EMPTY and not (type(value) is dict and all(item in _EMPTY for item in value.values()))
    }


def _answer(codec: Codec, response: Read) -> Answered:
    """The response, its stream put together; a body that is no object says why there is none."""
    if type(response.value) is dict:
        return codec.answered(response.value)
    if response.events:
        errors = [event for event in response.events if type(event) is dict and set(event) == {"error"}]
        joined = codec.joined(response.events)
        if errors and "error" not in joined:
            joined["error"] = errors[0]["error"]
        answered = codec.answered(joined)
        if not answered.choices and answered.error is None:
            answered.error = error_text(response.events)
        return answered
    return Answered([], done=False)


_COMPLAINTS = 3
"""Times in a row that an answer is asked for again, at most."""


def _malformed(answer: Sequence[Said]) -> bool:
    """Whether a client can have found fault with an answer: several calls, or arguments that are no object."""
    calls = [call for message in answer for call in message.form.get("calls") or ()]
    return len(calls) > 1 or any(
        type(call.get("arguments")) is not dict and not is_object(call.get("arguments")) for call in calls
    )


def _complained(path: Sequence[Said]) -> bool:
    """Whether a history after its first answer is nothing but answers and complaints."""
    turns = sum(message.role == "assistant" for message in path)
    return 0 < turns <= _COMPLAINTS and path[-1].role == "user" and all(message.role != "tool" for message in path)


def _told(choice: Choice) -> Body:
    made: Body = {"messages": [packed(message) for message in choice.messages]}
    if choice.finish_reason:
        made["finish"] = choice.finish_reason
    if choice.rest:
        made["rest"] = choice.rest
    return made


def _digest(raw: bytes) -> str:
    return blake2b(raw, digest_size=12).hexdigest()
