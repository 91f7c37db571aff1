"""The tables of a lake by name, and how their folders divide them: known before anything that reads one is loaded."""

from __future__ import annotations

PARTITIONS: dict[str, tuple[str, ...]] = {
    "rollouts": ("source", "day"),
    "rejects": ("source",),
    "sources": ("source",),
    "events": ("source", "day"),
}
"""The Hive partition keys of each table, outermost first."""
