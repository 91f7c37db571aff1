"""One of several writers of one lake: `python -m tests.lake.contend LAKE NAME ROUNDS`; starts at a line on stdin."""

from __future__ import annotations

import sys

from etl.lake import Lake, RowCounts
from tests.lake.rows import event, reject, rollout, source_file, stage

IDS = 24
"""Rollouts of all writers together: each round, each writer brings half of them."""


def rows(name: str, round_: int) -> list[dict[str, object]]:
    """The rows that a writer brings in a round: the same from every writer, later rounds with more records."""
    chosen = [i for i in range(IDS) if (i + round_ + len(name)) % 2 == 0]
    days = ["unknown", "2026-03-01", "2026-03-02"]
    return [
        rollout(
            f"r{i}", n_records=round_ + 2, row_hash=f"{i}-{round_}", day=days[(i + round_) % 3] if i % 2 else days[1]
        )
        for i in chosen
    ]


def main() -> None:
    root, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    print("ready", flush=True)
    sys.stdin.readline()
    lake = Lake.create(root)
    total = RowCounts(0, 0, 0, 0)
    for round_ in range(rounds):
        batch_id = f"{name}-{round_}"
        lake.sweep()
        with lake.batch(batch_id):
            events = [event(str(i), day="2026-03-01") for i in range(round_, round_ + 5)]
            lake.commit_events(stage(lake, batch_id, "events", events))
            made = rows(name, round_)
            counts = lake.commit_rollouts(stage(lake, batch_id, "rollouts", made[:5], made[5:]))
            total = RowCounts(*(before + now for before, now in zip(total, counts, strict=True)))
            lake.replace_rejects(stage(lake, batch_id, "rejects", [reject("1")]), {("support", "/logs/a.jsonl")})
            lake.upsert_sources(stage(lake, batch_id, "sources", [source_file("/logs/a.jsonl", size=round_)]))
    print(*total, flush=True)


if __name__ == "__main__":
    main()
