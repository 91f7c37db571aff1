"""Cassettes of VCR and its kin: HTTP exchanges recorded by tests, in YAML (or JSON, its other way to write them).

A cassette is a list of interactions; each is read by itself, so a cassette that was cut off gives all but the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_bodies import read_body
from etl.adapters._api_calls import outcomes
from etl.adapters._api_chain import Memory
from etl.adapters._api_choice import NO_CONVERSATION, kind_of
from etl.adapters._api_pairs import http_exchange
from etl.adapters._api_rows import conversations
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.framing import Broken, Framed, Limits, frame

_HEAD = re.compile(rb"\A(?:\xef\xbb\xbf|---[^\n]*\n|#[^\n]*\n|version:[^\n]*\n|\s)*interactions:[ \t]*\r?\n")
_FIRST = re.compile(rb"\s*?^( *)- ", re.MULTILINE)
_AFTER = re.compile(rb"^[A-Za-z]", re.MULTILINE)


class HttpCassettes(Adapter):
    """Recorded HTTP exchanges with model APIs."""

    name = "http_cassettes"
    version = 5
    about = "VCR cassettes: recorded HTTP exchanges with model APIs, in YAML"
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        **NO_CONVERSATION, "no_model_call": "an HTTP exchange that is no call of a model API",
    }  # fmt: skip

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Each interaction is a record; what is no YAML list of interactions is read as JSON."""
        first = next(blocks, b"")
        while first and len(first) < 256 and (more := next(blocks, b"")):
            first += more
        head = _HEAD.match(first)
        if head is None and not first.startswith(b"- request:"):
            yield from frame(_again(first, blocks), limits)
            return
        yield from _interactions(first + b"".join(blocks), head.end() if head else 0, limits)

    def score(self, sample: Sample) -> float:
        """Sure of a cassette in YAML; one in JSON is a file of calls like any other."""
        return 0.95 if _HEAD.match(sample.head) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The fragments of every call; what is no call of a model is passed over by name."""
        memory = Memory()
        for record in records:
            if not _is_interaction(record.value):
                yield Unusable(record, "no_interaction", "an interaction has a request with a uri, and a response")
                continue
            exchange = http_exchange((record,), record.value)
            request, response = read_body(exchange.request), read_body(exchange.response)
            kind = kind_of(exchange.url, request.value, response.value)
            if kind is None or not (request.value or response.value or response.events):
                yield Ignored("no_model_call")
            else:
                yield from outcomes(exchange, memory)

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The conversations that the calls of a family are."""
        yield from conversations(family)


def _is_interaction(value: Any) -> bool:
    request = value.get("request") if type(value) is dict else None
    return type(request) is dict and "uri" in request and "method" in request


def _again(first: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from blocks


def _interactions(data: bytes, start: int, limits: Limits) -> Iterator[Framed]:
    """The items of the list, each decoded by itself; the last one may be torn."""
    from etl.adapters._yaml import YamlError, decode_yaml

    end = _AFTER.search(data, start)
    closed = end is not None
    body_end = end.start() if end else len(data)
    first = _FIRST.match(data, start, body_end)
    item = re.compile(rb"^%s- " % (first.group(1) if first else b""), re.MULTILINE)
    places = [match.start() for match in item.finditer(data, start, body_end)]
    for place, following in zip(places, [*places[1:], body_end], strict=False):
        raw = data[place:following]
        line = data.count(b"\n", 0, place) + 1
        last = following == body_end and not closed
        if len(raw) > limits.record_bytes:
            yield Broken(
                "too_long",
                f"interaction of {len(raw)} bytes is longer than the limit",
                raw[:1024],
                line,
                place,
                length=len(raw),
            )
            continue
        try:
            value, fault = decode_yaml(raw, limits), ""
        except YamlError as error:
            value, fault = None, f" ({error})"
        if (
            type(value) is list
            and len(value) == 1
            and type(value[0]) is dict
            and not (last and ("response" not in value[0] or not raw.endswith(b"\n")))
        ):
            yield Record(value[0], raw.rstrip(), line, place)
        elif last:
            yield Broken("torn_tail", "the file ends in the middle of an interaction", raw, line, place, tail=True)
        else:
            yield Broken("not_yaml", f"no interaction in YAML{fault}; record it again", raw, line, place)
