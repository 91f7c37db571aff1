"""What was forgotten, as hashes: commits leave it out."""

from __future__ import annotations

import json
from typing import NamedTuple

import pyarrow as pa

from etl.lake.lookup import Lookup
from etl.lake.place import Place


class Tombstones(NamedTuple):
    """Hashes of what must not come back."""

    rollouts: list[str]
    """rollout_id"""
    conversations: list[str]
    """SHA-256 of source, a unit separator (0x1f) and the conversation's key."""
    rejects: list[str]
    """reject_id"""

    def condition(self, lookup: Lookup, table: str) -> str:
        """What the forgotten rows of a table meet, in SQL, over a table `forgotten` that is made here."""
        hashes = {"rollouts": self.rollouts, "events": self.conversations, "rejects": self.rejects}[table]
        lookup.table_of("forgotten", pa.table({"hash": pa.array(hashes, pa.string())}))
        name = {
            "rollouts": "rollout_id",
            "events": "sha256(source::VARCHAR || chr(31) || conversation_key)",
            "rejects": "reject_id",
        }[table]
        return f"{name} IN (FROM forgotten)"


def read_tombstones(place: Place) -> Tombstones | None:
    """All of a lake's; None where nothing was ever forgotten."""
    texts = place.read_tombstones()
    if not texts:
        return None
    found = [Tombstones(**json.loads(text)) for text in texts]
    return Tombstones(*(sorted({item for one in found for item in one[place]}) for place in range(3)))


def forgets(lake_root: str) -> bool:
    """Whether anything was ever forgotten in a lake."""
    return read_tombstones(Place(lake_root)) is not None


def leave_out_forgotten(lookup: Lookup, place: Place, table: str) -> None:
    """Drops the staged rows that were forgotten, before anybody looks at them."""
    if table != "sources" and (tombstones := read_tombstones(place)) is not None:
        lookup.leave_out_staged(tombstones.condition(lookup, table))
