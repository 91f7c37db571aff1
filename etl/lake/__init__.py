"""The lake: partitioned Parquet in Delta tables, staged out of sight and committed whole, by compare-and-swap.

A run opens a batch, its workers stage files, and the run commits them table by table:

    lake = Lake.create("./lake")
    lake.sweep()
    with lake.batch(batch_id):
        writer = StagingWriter(lake.root, batch_id, "rollouts")   # also in worker processes
        writer.write(redacted)
        counts = lake.commit_rollouts(writer.close())

Readers list the live files and open them inside `reading`, which lists and opens again when a commit came in between.

Each name is loaded when it is first used: a night without news opens no table.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from etl.late import late

if TYPE_CHECKING:
    from etl.lake.batch import guest
    from etl.lake.counts import RowCounts
    from etl.lake.errors import reading
    from etl.lake.forget import Conversation, Forgotten
    from etl.lake.known import KnownFile
    from etl.lake.labels import Label
    from etl.lake.lake import Lake, Migration
    from etl.lake.log import LiveFile
    from etl.lake.parquet import open_parquet
    from etl.lake.partition import check_source
    from etl.lake.staging import StagedFile, StagingWriter
    from etl.lake.sweep import Swept
    from etl.lake.verify import Finding

__all__ = [
    "Conversation",
    "Finding",
    "Forgotten",
    "KnownFile",
    "Label",
    "Lake",
    "LiveFile",
    "Migration",
    "RowCounts",
    "StagedFile",
    "StagingWriter",
    "Swept",
    "check_source",
    "guest",
    "open_parquet",
    "reading",
]

_HOMES = {
    "Conversation": "etl.lake.forget",
    "Finding": "etl.lake.verify",
    "Forgotten": "etl.lake.forget",
    "KnownFile": "etl.lake.known",
    "Label": "etl.lake.labels",
    "Lake": "etl.lake.lake",
    "LiveFile": "etl.lake.log",
    "Migration": "etl.lake.lake",
    "RowCounts": "etl.lake.counts",
    "StagedFile": "etl.lake.staging",
    "StagingWriter": "etl.lake.staging",
    "Swept": "etl.lake.sweep",
    "check_source": "etl.lake.partition",
    "guest": "etl.lake.batch",
    "open_parquet": "etl.lake.parquet",
    "reading": "etl.lake.errors",
}

if not TYPE_CHECKING:  # a name that is not there shall be seen
    __getattr__, __dir__ = late(sys.modules[__name__], _HOMES)
