"""Calls of model APIs as pairs of request and response, under any of the usual names; HAR files; recordings.

Every call repeats the conversation so far. Calls that continue one another become one conversation, wherever and
whenever they were logged (`_api_calls.py` says by what they are known, `_api_threads.py` how they are joined,
`_api_rows.py` what becomes of them). The API is told by the address or by the shape of the bodies (`_api_choice.py`).

Images, sound and documents in base64 are kept whole, in `message_info.parts`. Of the headers of HTTP those are kept
that say something about a call (`_api_pairs.py`); credentials in headers, addresses and bodies are replaced by a label
before anything is stored (`_api_secrets.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_calls import outcomes
from etl.adapters._api_chain import Memory
from etl.adapters._api_choice import NO_CONVERSATION
from etl.adapters._api_pairs import exchanges, looks
from etl.adapters._api_rows import conversations
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable


class ApiCalls(Adapter):
    """Request and response of model APIs: pairs, HAR, recordings of HTTP, SWE-agent's and OpenHands' call logs."""

    name = "api_calls"
    version = 5
    about = "calls of model APIs: {request, response} pairs, HAR, recordings; Helicone, Portkey, Cloudflare, Vertex AI"
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        **NO_CONVERSATION, "no_model_call": "an HTTP exchange of a HAR file that is no call of a model API",
    }  # fmt: skip

    def score(self, sample: Sample) -> float:
        """The share of the values that are a pair, sure where a body is one of a known API."""
        scores = [looks(value) for value in sample.values]
        return sum(scores) / len(scores) if scores else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The fragments of every call."""
        memory = Memory()
        for found in exchanges(records):
            if isinstance(found, Unusable | Ignored):
                yield found
            else:
                yield from outcomes(found, memory)

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The conversations that the calls of a family are."""
        yield from conversations(family)
