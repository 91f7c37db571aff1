"""Call logs of agents in which a request and its response are lines of their own, with nothing that joins them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from etl.adapters._api_calls import Exchange
from etl.adapters._api_form import Body, arr, obj, without
from etl.conversation import Record, Tokens

_WAITING = 64
"""Requests that wait for a response, at most."""


class Lines:
    """Request lines that wait for their responses. As many responses in a row as there were requests answer these in
    order (agents at once, which is flagged); fewer answer the last ones, since a request may have failed.
    """

    def __init__(self) -> None:
        self._asked: list[Record] = []
        self._answered: list[Record] = []

    def take(self, record: Record) -> Iterator[Exchange]:
        """One more line; the calls that it shows to be complete."""
        if record.value["type"] == "response":
            self._answered.append(record)
            return
        if self._answered:
            yield from self._pairs()
        self._asked.append(record)
        if len(self._asked) > _WAITING:
            yield _lines(self._asked.pop(0), None)

    def end(self) -> Iterator[Exchange]:
        """The last calls, and the requests that nothing answered."""
        yield from self._pairs()
        for asked in self._asked:
            yield _lines(asked, None)

    def _pairs(self) -> Iterator[Exchange]:
        answered, self._answered = self._answered, []
        alone = max(len(answered) - len(self._asked), 0)
        first = len(self._asked) - (len(answered) - alone)
        asked, self._asked = self._asked[first:], self._asked[:first]
        for response in answered[:alone]:
            yield _lines(None, response)
        for request, response in zip(asked, answered[alone:], strict=True):
            made = _lines(request, response)
            if len(asked) > 1:
                made.flags.add("ambiguous_parent")
            yield made


def when(value: Any) -> Any:
    """The value where it can be a time."""
    return value if type(value) in (str, int, float) else None


def is_line(value: Body) -> bool:
    """A request or a response as a line of its own."""
    kind = value.get("type")
    if kind == "request":
        return type(value.get("request_params")) is dict or type(value.get("messages")) is list
    return kind == "response" and (type(value.get("response")) is dict or type(value.get("outputs")) is list)


def _lines(asked: Record | None, answered: Record | None) -> Exchange:
    """A request line and the response line that follows it; either may be missing."""
    records = tuple(record for record in (asked, answered) if record is not None)
    made = Exchange(records, api="openai_chat", line=asked is not None)
    if asked is not None:
        value = asked.value
        made.request = value.get("request_params")
        if type(made.request) is not dict:
            made.request = without(value, "type", "timestamp")
        else:
            made.log = without(value, "type", "timestamp", "request_params")
        made.at = when(value.get("timestamp"))
    else:
        made.captured = False
    if answered is not None:
        value = answered.value
        made.response = _line_response(value)
        made.ended_at = when(value.get("timestamp"))
        cost = value.get("cost")
        made.usage = Tokens(cost_usd=cost) if type(cost) in (int, float) else None
        told = ("type", "timestamp", "response", "outputs", "cost", "input_tokens", "output_tokens", "model")
        made.log = {**made.log, **without(value, *told)}
        if asked is None:
            made.at = made.ended_at
    return made


def _line_response(value: Body) -> Any:
    """The response as the provider gave it; else what the agent made of it, in the provider's form."""
    if type(value.get("response")) is dict:
        return value["response"]
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": output.get("message"), **without(output, "message")},
        }
        for index, output in enumerate(map(obj, arr(value.get("outputs"))))
    ]
    usage = {"prompt_tokens": value.get("input_tokens"), "completion_tokens": value.get("output_tokens")}
    return {"model": value.get("model"), "choices": choices, "usage": usage}
