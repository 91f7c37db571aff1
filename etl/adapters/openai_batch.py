"""Batch jobs of OpenAI, Anthropic and Gemini: the request file and the output files of a job, joined by `custom_id`.

A job's outputs do not repeat what was asked. A `custom_id` (Gemini: `key`) is unique in one job at most, so an output
is joined with a request only where it is clear with which; each output is a row, and so is each request that has none
(yet). Anthropic's requests may also come as they are sent, all in one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_alone import alone
from etl.adapters._api_calls import Exchange
from etl.adapters._api_choice import NO_CONVERSATION, kind_of
from etl.adapters._api_form import Body, arr, error_text, obj, text, without
from etl.adapters._blocks import identifier
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.identity import digest

_encode = msgspec.json.Encoder(order="deterministic").encode


class OpenAIBatch(Adapter):
    """Requests and outputs of batch jobs."""

    name = "openai_batch"
    version = 4
    about = "batch jobs of OpenAI, Anthropic, Gemini: requests {custom_id | key, …} joined with their outputs"
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = NO_CONVERSATION

    def score(self, sample: Sample) -> float:
        """The share of values that are a request or an output."""
        found = sum(_is_line(value) or bool(_sent(Record(value, b""))) for value in sample.values)
        return 0.97 * found / len(sample.values) if sample.values else 0.0

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each line, by its `custom_id`."""
        for record in records:
            for line in _sent(record) or [record]:
                value = line.value
                if not _is_line(value):
                    yield Unusable(line, "no_batch_line", "a batch line has an id and a body, a response or an error")
                elif (kind := kind_of(text(value.get("url")), None, None)) in NO_CONVERSATION:
                    yield Ignored(str(kind))
                else:
                    yield Fragment(line, f"batch {_name(value)}", at=_created(value))

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """A row for each output, and for each request without one."""
        asked = {digest(_encode(_body(event))): event for event in family if not _is_output(event.record.value)}
        outputs = [event for event in family if _is_output(event.record.value)]
        answered: set[int] = set()
        for event in outputs:
            if _is_request(event.record.value):  # Gemini repeats what was asked
                answered.add(id(asked.get(digest(_encode(_body(event))))))
                yield _row(event, event, False)
                continue
            candidates = _candidates(event, list(asked.values()))
            if len(candidates) == 1:
                answered.add(id(candidates[0]))
            yield _row(candidates[0] if len(candidates) == 1 else None, event, len(candidates) > 1)
        for event in asked.values():
            if id(event) not in answered:
                yield _row(event, None, False)


def _is_line(value: Any) -> bool:
    held = obj(value)
    if identifier(held.get("custom_id")) is not None:
        return _is_request(held) or any(type(held.get(key)) is dict for key in ("response", "error", "result"))
    if identifier(held.get("key")) is None:
        return False
    if "response" in held:
        return _is_gemini(held["response"])
    return _is_request(held) or ("request" not in held and type(held.get("error")) is dict)


def _is_output(value: Body) -> bool:
    return not _is_request(value) or _is_gemini(value.get("response"))


def _name(value: Body) -> str | None:
    return identifier(value.get("custom_id")) or identifier(value.get("key"))


def _sent(record: Record) -> list[Record]:
    """The requests of a job as they were sent to Anthropic: `{requests: [{custom_id, params}]}`."""
    listed = arr(obj(record.value).get("requests"))
    if not listed or not all(map(_is_line, listed)):
        return []
    return [msgspec.structs.replace(record, value=item, raw=_encode(item)) for item in listed]


def _is_request(value: Body) -> bool:
    if type(value.get("body")) is dict or type(value.get("params")) is dict:
        return True
    return "contents" in obj(value.get("request"))


def _is_gemini(response: Any) -> bool:
    return bool({"candidates", "promptFeedback", "usageMetadata"} & obj(response).keys())


def _body(event: StoredEvent) -> Body:
    value = event.record.value
    return next((value[key] for key in ("body", "params", "request") if type(value.get(key)) is dict), {})


def _result(value: Body) -> Body:
    """The body of an output: OpenAI's response, Anthropic's message, or Gemini's response, which nothing is around."""
    result, told = obj(value.get("result")), obj(value.get("response"))
    return obj(told.get("body")) or obj(result.get("message")) or (told if _is_gemini(told) else {})


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
    events = [event for event in (request if request is not output else None, output) if event is not None]
    row = alone(_exchange(request, output, tuple(event.record for event in events)))
    row.native_id, row.branch = events[0].key, row.branch if output is not None else f"request {row.branch}"
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
        **without(asked, "body", "params", "request"),
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
        "anthropic_messages" if result or "params" in asked else kind or _unsaid(answered),
        url=None,
        status=status if type(status) is int else None,
        id=identifier(answered.get("id")) or identifier(body.get("id")),
        error=error_text(answered.get("error")) or error_text(result.get("error")) or _unasked(result),
        log=log,
        ended_at=answered.get("processed_time"),
        captured=request is not None,
    )


def _unsaid(answered: Body) -> str:
    """The API of a job of which neither request nor response tells: by what the line calls its id."""
    return "gemini" if "key" in answered and "custom_id" not in answered else "openai_chat"


def _unasked(result: Body) -> str | None:
    """Why a request was never sent to the model: it expired, or the batch was canceled."""
    return text(result.get("type")) if result.get("type") in ("expired", "canceled") else None
