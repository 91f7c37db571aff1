"""Batch jobs of OpenAI and Anthropic: the request file and the output files of a job, joined by `custom_id`.

A job's outputs do not repeat what was asked. A `custom_id` is unique in one job at most, so an output is joined with a
request only where it is clear with which; each output is a row, and so is each request that has none (yet).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_calls import Exchange, outcomes
from etl.adapters._api_chain import Memory
from etl.adapters._api_choice import NO_CONVERSATION, kind_of
from etl.adapters._api_form import Body, error_text, obj, text, without
from etl.adapters._api_rows import conversations
from etl.adapters._blocks import identifier
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.identity import digest

_encode = msgspec.json.Encoder(order="deterministic").encode


class OpenAIBatch(Adapter):
    """Requests and outputs of batch jobs."""

    name = "openai_batch"
    version = 3
    about = "batch jobs: {custom_id, method, url, body} requests joined with {custom_id, response, error} outputs"
    scores_share = True
    spans_files = True
    ignores: ClassVar[dict[str, str]] = NO_CONVERSATION

    def score(self, sample: Sample) -> float:
        """The share of values that are a request or an output."""
        return 0.97 * sum(_is_line(value) for value in sample.values) / len(sample.values) if sample.values else 0.0

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each line, by its `custom_id`."""
        for record in records:
            value = record.value
            if not _is_line(value):
                yield Unusable(
                    record, "no_batch_line", "a batch line has a custom_id and a body, a response or an error"
                )
                continue
            kind = kind_of(text(value.get("url")), None, None)
            if kind in NO_CONVERSATION:
                yield Ignored(kind)
            else:
                yield Fragment(record, f"batch {identifier(value['custom_id'])}", at=_created(value))

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """A row for each output, and for each request without one."""
        asked = {digest(_encode(_body(event))): event for event in family if _is_request(event.record.value)}
        outputs = [event for event in family if not _is_request(event.record.value)]
        answered: set[int] = set()
        for event in outputs:
            candidates = _candidates(event, list(asked.values()))
            if len(candidates) == 1:
                answered.add(id(candidates[0]))
            yield _row(candidates[0] if len(candidates) == 1 else None, event, len(candidates) > 1)
        for event in asked.values():
            if id(event) not in answered:
                yield _row(event, None, False)


def _is_line(value: Any) -> bool:
    return identifier(obj(value).get("custom_id")) is not None and (
        _is_request(value) or any(type(value.get(key)) is dict for key in ("response", "error", "result"))
    )


def _is_request(value: Body) -> bool:
    return type(value.get("body")) is dict or type(value.get("params")) is dict


def _body(event: StoredEvent) -> Body:
    value = event.record.value
    return value["body"] if type(value.get("body")) is dict else obj(value.get("params"))


def _result(value: Body) -> Body:
    """The body of an output: OpenAI's response, or Anthropic's message."""
    result = obj(value.get("result"))
    return obj(obj(value.get("response")).get("body")) or obj(result.get("message"))


def _created(value: Body) -> Any:
    created = _result(value).get("created", _result(value).get("created_at"))
    return created if type(created) in (int, float) else None


def _candidates(output: StoredEvent, asked: list[StoredEvent]) -> list[StoredEvent]:
    """The requests that an output can be of: all, or, where there are several, those of its model."""
    if len(asked) < 2:
        return asked
    model = text(_result(output.record.value).get("model")) or ""
    same = [event for event in asked if (named := text(_body(event).get("model"))) and model.startswith(named)]
    return same or asked


def _row(request: StoredEvent | None, output: StoredEvent | None, unsure: bool) -> Conversation:
    """One call as a row of its own."""
    events = [event for event in (request, output) if event is not None]
    made = _exchange(request, output, tuple(event.record for event in events))
    stored = []
    for outcome in outcomes(made, Memory()):
        assert isinstance(outcome, Fragment), "the API of a batch call is given"
        payload = _encode(outcome.payload)
        stored.append(StoredEvent(outcome.key, Record(msgspec.json.decode(payload), payload), outcome.link))
    row = next(conversations(stored))
    row.native_id, row.branch = events[0].key, row.branch if output is not None else f"request {row.branch}"
    row.records = [event.record for event in events]
    if unsure:
        row.flags = {*(row.flags or ()), "ambiguous_parent"}
    return row


def _exchange(request: StoredEvent | None, output: StoredEvent | None, records: tuple[Record, ...]) -> Exchange:
    asked = request.record.value if request is not None else {}
    answered = output.record.value if output is not None else {}
    told = obj(answered.get("response"))
    result = obj(answered.get("result"))
    body, sent = _result(answered), _body(request) if request is not None else None
    status = told.get("status_code")
    log = {
        **without(asked, "body", "params"),
        **without(answered, "response", "error", "result", "id"),
        "batch_request": answered.get("id"),
        "request_id": told.get("request_id"),
        "result_type": result.get("type"),
    }
    kind = kind_of(text(asked.get("url")), sent, body)
    return Exchange(
        records,
        sent,
        body or None,
        "anthropic_messages" if result or "params" in asked else kind or "openai_chat",
        url=None,
        status=status if type(status) is int else None,
        id=identifier(answered.get("id")) or identifier(body.get("id")),
        error=error_text(answered.get("error")) or error_text(result.get("error")) or _unasked(result),
        log=log,
        captured=request is not None,
    )


def _unasked(result: Body) -> str | None:
    """Why a request was never sent to the model: it expired, or the batch was canceled."""
    return text(result.get("type")) if result.get("type") in ("expired", "canceled") else None
