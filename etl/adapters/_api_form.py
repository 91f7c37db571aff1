"""What every codec of a model API gives: the request and the response of one call in neutral form.

A codec reads one provider's bodies. It never raises on input: what has another type than documented is passed by, and
what no field holds stays in `rest`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from etl.conversation import Message, Tokens, ToolCall
from etl.decode import JsonError, decode

Body = dict[str, Any]
SYSTEM_ROLES = frozenset({"system", "developer"})
PIECE = "api_piece"
"""Key in `extra` of a message that is one item of a longer turn: rows join such items."""


class Asked(msgspec.Struct, gc=False):
    """A request."""

    items: list[Any]
    """The history as sent, system text first; each item is read by the codec's `message`."""
    tools: Any = None
    model: str | None = None
    previous: str | None = None
    """Id of the response that this call continues, where the history lies at the provider."""
    thread: str | None = None
    """Id of a conversation that is kept at the provider."""
    user: str | None = None
    """Whom the client names as its user: calls of two users are never one conversation."""
    rest: Body = msgspec.field(default_factory=dict)


class Choice(msgspec.Struct, gc=False):
    """One of the answers of a call; usually there is one."""

    messages: list[Message]
    finish_reason: str | None = None
    rest: Body | None = None


class Answered(msgspec.Struct, gc=False):
    """A response."""

    choices: list[Choice]
    id: str | None = None
    model: str | None = None
    at: Any = None
    usage: Tokens | None = None
    error: str | None = None
    done: bool = True
    """False where the provider says that more will come, or a stream ends without its end mark."""
    previous: str | None = None
    rest: Body = msgspec.field(default_factory=dict)


class Codec(NamedTuple):
    """One provider's way to write calls."""

    name: str
    provider: str | None
    """Where the body alone tells; a gateway or a cloud may serve the same bodies."""
    asked: Callable[[Body], Asked]
    message: Callable[[Any], list[Message]]
    answered: Callable[[Body], Answered]
    joined: Callable[[Sequence[Any]], Body]
    """The events of a stream as the body that a plain call would have given."""


def obj(value: Any) -> Body:
    """The value where it is an object, else an empty one."""
    return value if type(value) is dict else {}


def arr(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if type(value) is list else []


def text(value: Any) -> str | None:
    """The value where it is a text with something in it."""
    return value if type(value) is str and value else None


def count(value: Any) -> int | None:
    """The value where it is a number of tokens."""
    return value if type(value) is int and value >= 0 else None


def total(*counts: int | None) -> int | None:
    """The sum of what is known; None where nothing is."""
    known = [value for value in counts if value is not None]
    return sum(known) if known else None


def without(body: Body, *keys: str) -> Body:
    """The rest of a body; nulls and empty containers say nothing."""
    return {key: value for key, value in body.items() if key not in keys and value not in (None, {}, [])}


def error_text(value: Any) -> str | None:
    """The message of an error in any of the usual spellings: text, `{message}`, `{error: {message, type, code}}`.

    >>> error_text({"error": {"message": "Slow down", "type": "rate_limit_error"}})
    'rate_limit_error: Slow down'
    """
    if type(value) is list:
        return next((found for found in map(error_text, value) if found), None)
    if type(value) is not dict:
        return text(value)
    if value.get("error") is not None:
        return error_text(value["error"])
    said = next(
        (
            found
            for key in ("message", "Message", "detail", "error_message", "errorMessage")
            if (found := text(value.get(key)))
        ),
        None,
    )
    kind = next((found for key in ("type", "code", "status", "__type") if (found := text(value.get(key)))), None)
    if said is None:
        return kind
    return said if kind in (None, "error") or kind in said else f"{kind}: {said}"


def kept(message: Message, /, **more: Any) -> Message:
    """The message with these keys, where they say something, in `extra`."""
    found = {key: value for key, value in more.items() if value not in (None, {}, [])}
    if found:
        message.extra = {**(message.extra or {}), **found}
    return message


def piece(message: Message) -> Message:
    """The message as an item of a longer turn."""
    return kept(message, **{PIECE: True})


_FIELDS = tuple((name, getattr(Message(""), name)) for name in Message.__struct_fields__ if name != "role")
_CALL_FIELDS = tuple((name, getattr(ToolCall(""), name)) for name in ToolCall.__struct_fields__ if name != "name")


def packed(message: Message) -> Body:
    """A message as JSON says it: only what is not the default."""
    made = _told(message, {"role": message.role}, _FIELDS)
    if message.calls:
        made["calls"] = [_told(call, {"name": call.name}, _CALL_FIELDS) for call in message.calls]
    return made


def _told(value: Message | ToolCall, made: Body, fields: tuple[tuple[str, Any], ...]) -> Body:
    for name, default in fields:
        found = getattr(value, name)
        if found is not default and found != default:
            made[name] = found
    return made


def streamed_input(partial: str) -> Any:
    """Tool input that came in fragments: its object, or the text as far as it came."""
    if not partial:
        return {}
    try:
        return decode(partial.encode("utf-8", "surrogatepass")).value
    except JsonError:
        return partial


def unpacked(value: Body) -> Message:
    """The message that `packed` wrote."""
    message = Message(**{**value, "extra": dict(value["extra"]) if value.get("extra") else None})
    if message.calls:
        message.calls = [ToolCall(**call) for call in value["calls"]]
    return message
