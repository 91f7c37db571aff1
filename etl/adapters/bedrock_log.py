"""Model invocation logs of Amazon Bedrock, as they are delivered to S3 (gzip, one JSON object a line) or CloudWatch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_calls import Exchange, outcomes
from etl.adapters._api_chain import Memory
from etl.adapters._api_choice import NO_CONVERSATION
from etl.adapters._api_form import Body, count, error_text, obj, text, total, without
from etl.adapters._api_rows import conversations
from etl.adapters._chat import parsed
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Tokens, Unusable

_SCHEMA = "ModelInvocationLog"


class BedrockLog(Adapter):
    """Calls that Bedrock itself logged."""

    name = "bedrock_log"
    version = 4
    about = (
        "Amazon Bedrock model invocation logs (S3 or CloudWatch): ModelInvocationLog lines of Converse and InvokeModel"
    )
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        **NO_CONVERSATION, "delivery_test": "the file that Bedrock writes to see whether it may write",
    }  # fmt: skip

    def score(self, sample: Sample) -> float:
        """The share of values that name the schema."""
        return sum(_log(value) is not None for value in sample.values) / len(sample.values) if sample.values else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The fragments of every invocation."""
        memory = Memory()
        for record in records:
            value = _log(record.value)
            if value is not None:
                yield from outcomes(_exchange(record, value), memory)
            elif type(record.value) is str:
                yield Ignored("delivery_test")
            else:
                yield Unusable(record, "no_invocation", f"the record's schemaType is not {_SCHEMA}; see what wrote it")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The conversations that the invocations of a family are."""
        yield from conversations(family)


def _log(value: Any) -> Body | None:
    """The record itself, or the message of a CloudWatch event that has it as text."""
    found = obj(value)
    for key in ("message", "@message"):
        if type(found.get(key)) is str and _SCHEMA in found[key]:
            found = obj(parsed(found[key]))
        elif type(found.get(key)) is dict:
            found = found[key]
    return found if found.get("schemaType") == _SCHEMA else None


def _exchange(record: Record, value: Body) -> Exchange:
    asked, answered = obj(value.get("input")), obj(value.get("output"))
    operation, model = text(value.get("operation")) or "", text(value.get("modelId"))
    request, response = asked.get("inputBodyJson"), answered.get("outputBodyJson")
    log = without(value, "input", "output", "timestamp", "modelId", "requestId", "schemaType")
    log["input"] = without(asked, "inputBodyJson", *_COUNTS)
    log["output"] = without(answered, "outputBodyJson", "outputTokenCount")
    made = Exchange(
        (record,), request, response, at=value.get("timestamp"), id=text(value.get("requestId")), model=model,
        provider="bedrock", scope=text(obj(value.get("identity")).get("arn")), usage=_usage(asked, answered), log=log,
        captured=request is not None,
    )  # fmt: skip
    if operation.startswith("Converse"):
        made.api = "bedrock_converse"
    elif request is None and response is None:
        made.api = "prompted"  # bodies too large for the log lie in files of their own; what tells the API is there
    code = text(value.get("errorCode"))
    if code is not None:
        made.error = f"{code}: {error_text(response) or text(value.get('errorMessage')) or 'no message'}"
    return made


_COUNTS = ("inputTokenCount", "cacheReadInputTokenCount", "cacheWriteInputTokenCount")


def _usage(asked: Body, answered: Body) -> Tokens | None:
    """The counts beside the bodies: reads and writes of the cache are beside the input."""
    fresh, read, written = (count(asked.get(key)) for key in _COUNTS)
    whole = None if fresh is None else total(fresh, read, written)
    found = Tokens(whole, count(answered.get("outputTokenCount")), read, written)
    return found if found != Tokens() else None
