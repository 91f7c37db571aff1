"""Azure API Management's log of calls to language models: `ApiManagementGatewayLlmLog`, from a workspace or a store.

A call is several rows with one `CorrelationId`: the counts in one, messages and answers in others, long ones in pieces
that `SequenceNumber` puts in order. Rows come as a query gives them, as CSV, or as `properties` of a record that a
diagnostic setting delivers. Each call is a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_alone import alone
from etl.adapters._api_calls import Exchange
from etl.adapters._api_form import Body, arr, obj, text, without
from etl.adapters._api_gateways import number
from etl.adapters._chat import parsed
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, StoredEvent, Tokens, Unusable

_COLUMNS = frozenset({"SequenceNumber", "RequestMessages", "ResponseMessages", "PromptTokens", "CompletionTokens"})
_HELD = frozenset({
    *_COLUMNS, "CorrelationId", "TimeGenerated", "TimeGenerated [UTC]", "RequestId", "ModelName", "DeploymentName",
    "TotalTokens", "TenantId", "Type", "SourceSystem", "_ResourceId", "_SubscriptionId", "_BilledSize", "_IsBillable",
    "time", "records", "properties",
})  # fmt: skip


class AzureLlmLog(Adapter):
    """Calls that a gateway of Azure logged."""

    name = "azure_llm_log"
    about = "Azure API Management: rows of ApiManagementGatewayLlmLog (queries, CSV, delivered logs), pieces joined"
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {"empty_page": "a page without rows"}

    def score(self, sample: Sample) -> float:
        """The share of values that hold a row."""
        if not sample.values:
            return 0.0
        return 0.97 * sum(any(map(_is_row, _rows(value))) for value in sample.values) / len(sample.values)

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every row, under its call."""
        for record in records:
            found = list(_rows(record.value))
            if not found:
                yield Ignored("empty_page")
            for row in found:
                if _is_row(row):
                    call = str(_field(row, "CorrelationId"))
                    yield Fragment(record, f"call {call}", at=_at(row), payload=row)
                else:
                    yield Unusable(record, "no_row", "no row of the log; see what wrote it")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The call that all rows of a family are of."""
        rows = sorted((event.record.value for event in family), key=_place)
        row = alone(_exchange(tuple(event.record for event in family), rows))
        row.native_id, row.branch = family[0].key, ""
        yield row


def _field(row: Body, name: str) -> Any:
    """A column; a delivered record has names that begin with a small letter."""
    return row.get(name, row.get(name[:1].lower() + name[1:]))


def _is_row(value: Any) -> bool:
    row = obj(value)
    return text(_field(row, "CorrelationId")) is not None and any(
        _field(row, name) is not None for name in ("RequestMessages", "ResponseMessages", "PromptTokens")
    )


def _rows(value: Any) -> Iterator[Any]:
    """The rows of a page, of a delivered record, or the value itself."""
    held = obj(value)
    if (listed := held.get("records", held.get("value"))) is not None and type(listed) is list:
        for each in listed:
            yield from _rows(each)
        return
    told = held.get("properties")
    inner = obj(parsed(told) if type(told) is str and told[:1] == "{" else told)
    yield {**inner, "TimeGenerated": held.get("time"), **without(held, *_HELD)} if _is_row(inner) else value


def _place(row: Body) -> int:
    place = number(_field(row, "SequenceNumber"))
    return int(place) if place is not None else 0


def _at(row: Body) -> Any:
    return _field(row, "TimeGenerated") or row.get("TimeGenerated [UTC]")


def _exchange(records: tuple[Record, ...], rows: list[Body]) -> Exchange:
    def first(name: str) -> Any:
        return next((found for row in rows if (found := _field(row, name)) not in (None, "", 0, "0")), None)

    asked, answered = (_messages(rows, f"{side}Messages") for side in ("Request", "Response"))
    counts = [number(first(name)) for name in ("PromptTokens", "CompletionTokens")]
    rest = {key: value for row in reversed(rows) for key, value in row.items()}
    usage = Tokens(*(int(count) if count is not None else None for count in counts))
    choices = [{"index": place, "message": {"role": "assistant", **said}} for place, said in enumerate(answered)]
    model = text(first("ModelName")) or text(first("DeploymentName"))
    return Exchange(
        records, {"model": text(first("DeploymentName")) or model, "messages": asked} if asked else None,
        {"model": model, "choices": choices, "id": text(first("RequestId"))} if choices else None, "openai_chat",
        at=min((str(at) for row in rows if (at := _at(row)) is not None), default=None), model=model, provider="azure",
        usage=usage if usage != Tokens() else None, captured=bool(asked),
        log={key: value for key, value in rest.items() if key[:1].upper() + key[1:] not in _HELD},
    )  # fmt: skip


def _messages(rows: list[Body], name: str) -> list[Body]:
    """The messages of all pieces: lists, JSON texts of their own, or one JSON text that was cut."""
    pieces = [piece for row in rows if (piece := _field(row, name)) not in (None, "", [], "[]")]
    texts = [piece for piece in pieces if type(piece) is str]
    whole = parsed("".join(texts)) if len(texts) == len(pieces) else None
    listed = arr(whole) or [each for piece in pieces for each in arr(parsed(piece) if type(piece) is str else piece)]
    return [each for each in listed if type(each) is dict]
