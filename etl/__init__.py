"""Traffic into rollouts: logs in, rows in partitioned Parquet, SQL out.

>>> import etl
>>> report = etl.ingest(["sample_logs"], lake="lake")  # doctest: +SKIP
>>> etl.connect("lake").sql("SELECT count(*) FROM rollouts")  # doctest: +SKIP

The names below are the public surface; each is loaded when it is first used, so that importing `etl` costs nothing.
Who writes an adapter finds the rest of what it needs in `etl.adapter` and `etl.conversation`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from etl.late import late

if TYPE_CHECKING:
    from etl.adapter import Adapter
    from etl.covered import coverage
    from etl.detection import detect
    from etl.errors import EtlError
    from etl.exports.run import export
    from etl.lake import Lake
    from etl.pipeline import ingest
    from etl.query import connect, find, scan
    from etl.report import Report
    from etl.schema import Reject, Rollout, SourceFile
    from etl.simulator.agent import seeded_agent
    from etl.simulator.simulate import simulate
    from etl.simulator.tools import tool

__all__ = [
    "Adapter",
    "EtlError",
    "Lake",
    "Reject",
    "Report",
    "Rollout",
    "SourceFile",
    "connect",
    "coverage",
    "detect",
    "export",
    "find",
    "ingest",
    "scan",
    "seeded_agent",
    "simulate",
    "tool",
]

_HOMES = {
    "Adapter": "etl.adapter",
    "EtlError": "etl.errors",
    "Lake": "etl.lake",
    "Reject": "etl.schema",
    "Report": "etl.report",
    "Rollout": "etl.schema",
    "SourceFile": "etl.schema",
    "connect": "etl.query",
    "coverage": "etl.covered",
    "detect": "etl.detection",
    "find": "etl.query",
    "export": "etl.exports.run",
    "ingest": "etl.pipeline",
    "scan": "etl.query",
    "seeded_agent": "etl.simulator.agent",
    "simulate": "etl.simulator.simulate",
    "tool": "etl.simulator.tools",
}

if not TYPE_CHECKING:  # a name that is not there shall be seen
    __getattr__, __dir__ = late(sys.modules[__name__], _HOMES)
