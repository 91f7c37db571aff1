"""One call that nothing else belongs to, as a row of its own."""

from __future__ import annotations

import msgspec

from etl.adapters._api_calls import Exchange, outcomes
from etl.adapters._api_chain import Memory
from etl.adapters._api_rows import conversations
from etl.conversation import Conversation, Fragment, Record, StoredEvent

_encode = msgspec.json.Encoder(order="deterministic").encode


def alone(exchange: Exchange) -> Conversation:
    """The row of a call whose API is given; its records are those of the call."""
    stored = []
    for outcome in outcomes(exchange, Memory()):
        assert isinstance(outcome, Fragment), "the API of such a call is given"
        payload = _encode(outcome.payload)
        stored.append(StoredEvent(outcome.key, Record(msgspec.json.decode(payload), payload), outcome.link))
    row = next(conversations(stored))
    assert isinstance(row, Conversation), "a call with an answer or an error is a row"
    row.records = list(exchange.records)
    return row
