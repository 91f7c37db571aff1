"""The lake: partitioned Parquet in Delta tables, staged out of sight and committed whole, by compare-and-swap.

A run opens a batch, its workers stage files, and the run commits them table by table:

    lake = Lake.create("./lake")
    lake.sweep()
    with lake.batch(batch_id):
        writer = StagingWriter(lake.root, batch_id, "rollouts")   # also in worker processes
        writer.write(redacted)
        counts = lake.commit_rollouts(writer.close())

Readers list the live files and open them inside `reading`, which lists and opens again when a commit came in between.
"""

from etl.lake.batch import guest
from etl.lake.errors import reading
from etl.lake.forget import Conversation, Forgotten
from etl.lake.known import KnownFile
from etl.lake.labels import Label
from etl.lake.lake import Lake, Migration
from etl.lake.log import LiveFile
from etl.lake.parquet import open_parquet
from etl.lake.partition import check_source
from etl.lake.precedence import RowCounts
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
