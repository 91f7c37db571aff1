"""Answers of model APIs without what was asked: streams as they came over the wire (server-sent events, or their events
as lines or one array), and bodies.

One stream is one row; several in one file are told apart by the ids they name,
else by where each begins and ends. A call whose request lies beside its stream in one record is read by `api_calls`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_alone import alone
from etl.adapters._api_calls import Exchange
from etl.adapters._api_events import DONE, Streamed, body_of, codec_of, framed, is_text, streams
from etl.adapters._api_form import obj
from etl.conversation import Ignored, Outcome, Record, Unusable
from etl.framing import LIMITS, Framed, Limits, frame

_LOOKED_AT = 64


class ApiStreams(Adapter):
    """Answers without what was asked."""

    name = "api_streams"
    about = "streams of model APIs, saved as they came: server-sent events (curl -N), their events as lines or an array"

    ignores: ClassVar[dict[str, str]] = {
        "between_streams": "a ping or an end mark that belongs to no stream",
    }

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """The data of each server-sent event; JSON in any layout."""
        first = next(blocks, b"")
        whole = chain([first], blocks)
        return framed(whole, limits) if is_text(first) else frame(whole, limits)

    def score(self, sample: Sample) -> float:
        """The share of events that are of a known stream."""
        values = list(sample.values)
        if not values and is_text(sample.head):
            found = framed(iter((sample.head,)), LIMITS)
            values = [each.value for each, _ in zip(found, range(_LOOKED_AT), strict=False) if isinstance(each, Record)]
        events = [event for value in values for event in (value if type(value) is list else [value])]
        if not any(codec_of(event) or body_of(event) for event in events):
            return 0.0
        return 0.96 * sum(_is_event(event) for event in events) / len(events)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A row for every stream."""
        for found in streams(records):
            if isinstance(found, Streamed):
                yield _row(found)
            elif found.value == DONE or obj(found.value).get("type") == "ping":
                yield Ignored("between_streams")
            elif type(found.value) is list:
                yield _row_of_list(found)
            else:
                yield Unusable(found, "no_stream", "the event is of no stream that began before it")


def _is_event(event: object) -> bool:
    """Whether a value can stand in a file of events: one of a known stream, or what may come between."""
    told = codec_of(event) or body_of(event)
    return told is not None or event == DONE or type(obj(event).get("type")) is str


def _row(stream: Streamed, whole: Record | None = None) -> Outcome:
    """The row of a stream. Where nothing names the response, two streams that say the same stay two."""
    said = stream.records[0].value
    if not stream.whole:
        said = [record.value for record in stream.records if record.value != DONE]
    records = tuple(stream.records) if whole is None else (whole,)
    made = alone(Exchange(records, None, said, stream.codec, captured=False))
    if stream.id is None:
        made.native_id, made.branch = None, ""
    return made


def _row_of_list(record: Record) -> Outcome:
    """The stream that a record is which is a list of events."""
    events = [Record(event, record.raw, record.line, record.offset) for event in record.value]
    found = [stream for stream in streams(events) if isinstance(stream, Streamed)]
    if len(found) != 1:
        why = "no event of a known stream" if not found else "events of several streams"
        return Unusable(record, "no_stream", f"the list holds {why}; a record is one stream, or one event")
    return _row(found[0], record)
