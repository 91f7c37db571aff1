"""What a question over a lake takes, beside the same question over a native DuckDB table of the same rows.

`python -m tests.bench.exploring --rows 1000000` makes the lake, asks, and prints the ratios.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from etl.derive import sql_type
from etl.lake import Lake, StagingWriter
from etl.query import connect
from etl.redact import Redactor
from etl.schema import arrow_schema
from tests.bench import results
from tests.bench.corpus import Words

CHUNK = 50_000
"""Rows that are made at a time."""
DAYS, SOURCES, TOOLS, TASKS = 30, 4, 24, 5_000

QUESTIONS = {
    "conversations by day": "SELECT day, source, count(*) AS n FROM rollouts GROUP BY ALL ORDER BY ALL",
    "tools by status": "SELECT tool, status, count(*) AS n FROM steps GROUP BY ALL ORDER BY ALL",
    "coverage": "SELECT * FROM coverage ORDER BY ALL",
    "text search": """
        SELECT source, count(DISTINCT rollout_id) AS n FROM messages WHERE contains(content, 'pana')
        GROUP BY ALL ORDER BY ALL
    """,
    "one day, its tools": """
        SELECT tool, count(*) AS n FROM steps WHERE source = 'source 1' AND day = '2026-02-07' GROUP BY ALL ORDER BY ALL
    """,
}

_ROWS = """
WITH numbers AS (
    SELECT i, hash(i) AS h, hash(i + 7) AS h2,
        TIMESTAMPTZ '2026-02-01 00:00:00+00' + to_seconds(hash(i) % (86400 * $days)) AS began
    FROM range($first, $first + $count) AS of_row(i)
), drafts AS (
    SELECT *, 'tool_' || (h % $tools) AS tool, h2 % 10 = 0 AS failed, (h % 3)::INTEGER + 1 AS pairs FROM numbers
)
SELECT
    'r_' || md5(i::VARCHAR) AS rollout_id, 't_' || md5((h % $tasks)::VARCHAR) AS task_id, 'traffic' AS origin,
    'openai_messages' AS adapter, 'c' || i AS conversation_id, etl_text(h, 12) AS prompt,
    [etl_message('system', $policy, NULL), etl_message('user', etl_text(h, 12), NULL)]
        || flatten(list_transform(range(pairs), lambda p: [
            etl_message('assistant', etl_text(h + p::UBIGINT, 20), 'call_' || p),
            {'role': 'tool', 'content': etl_text(h2 + p::UBIGINT, 60), 'reasoning_content': NULL, 'tool_calls': NULL,
             'tool_call_id': 'call_' || p, 'name': 'tool_' || (h % $tools)}
        ]))
        || [etl_message('assistant', etl_text(h2, 40), NULL)] AS messages,
    list_transform(range(3 + 2 * pairs), lambda p: {'at': began, 'inherited': false, 'synthetic': false})
        AS message_info,
    2 AS prompt_len,
    list_transform(range(pairs), lambda p: {
        'call_id': 'call_' || p, 'tool': 'tool_' || ((h + p::UBIGINT) % $tools), 'actor': 'agent',
        'arguments': '{"id": ' || p || '}',
        'message_index': 2 + 2 * p, 'result_index': 3 + 2 * p, 'status': CASE WHEN failed THEN 'error' ELSE 'ok' END,
        'condition': CASE WHEN failed THEN ['timeout', 'not_found', 'error'][1 + (h % 3)::INTEGER] ELSE 'success' END,
        'error': CASE WHEN failed THEN etl_text(h, 6) END, 'duration_ms': (h % 5000)::DOUBLE
    }) AS steps,
    etl_text(h2, 40) AS final_text, 'completed' AS status, (h2 % 2)::DOUBLE AS reward, [] AS judgments,
    'model-' || (h % 6) AS model, began AS started_at, began AS ended_at,
    {'input_tokens': (h % 9000)::BIGINT, 'output_tokens': (h % 900)::BIGINT} AS usage,
    1 AS n_turns, pairs AS n_steps, [] AS flags, 7 AS n_records, md5('c' || i) AS content_hash,
    md5('r' || i) AS row_hash, '/logs/' || (i // 5000) || '.jsonl' AS source_uri, i % 5000 AS source_line,
    0 AS source_offset, 1 AS adapter_version, 'rollout.v1' AS schema_version, 'b' AS batch_id, began AS ingested_at,
    'source ' || (h2 % $sources) AS source, strftime(began, '%Y-%m-%d') AS day
FROM drafts
"""


class Asked(NamedTuple):
    """One line of the table; CPU seconds of all threads, the best of some tries that take turns."""

    question: str
    lake: float
    native: float

    def cells(self) -> list[str]:
        """As text."""
        return [self.question, f"{self.lake * 1e3:.0f}", f"{self.native * 1e3:.0f}", f"{self.lake / self.native:.2f}"]


HEADING = "Questions over a lake"
COLUMNS = ["question", "lake CPU ms", "native table CPU ms", "ratio"]


def make_lake(folder: Path, rows: int) -> Lake:
    """A lake of made-up conversations: 30 days, 4 sources, 24 tools of which one call in ten fails."""
    words = Words(1)
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    vocabulary = words.text(60_000).split()
    database.execute("CREATE TABLE vocabulary AS SELECT ? AS words", [vocabulary])
    database.execute("SET VARIABLE words = (SELECT words FROM vocabulary)")
    database.execute(
        f"""
        CREATE MACRO etl_text(seed, n) AS array_to_string(list_transform(range(n), lambda w:
            getvariable('words')[1 + (hash(seed + w::UBIGINT) % {len(vocabulary)})::INTEGER]), ' ');
        CREATE MACRO etl_message(role, content, call) AS {{
            'role': role, 'content': content, 'reasoning_content': NULL,
            'tool_calls': CASE WHEN call IS NOT NULL THEN [{{'id': call, 'type': 'function',
                'function': {{'name': 'lookup', 'arguments': '{{}}'}}}}] END, 'tool_call_id': NULL, 'name': NULL
        }};
        """
    )
    lake = Lake.create(folder)
    with lake.batch("bench"):
        writer = StagingWriter(lake.root, "bench", "rollouts")
        redactor = Redactor("none")
        for first in range(0, rows, CHUNK):
            values = {
                "first": first, "count": min(CHUNK, rows - first), "days": DAYS, "tools": TOOLS, "tasks": TASKS,
                "sources": SOURCES, "policy": words.text(600) if first == 0 else "You help.",
            }  # fmt: skip
            writer.write(redactor.table("rollouts", _as_stored(database, values)))
        lake.commit_rollouts(writer.close())
    return lake


def _as_stored(database: duckdb.DuckDBPyConnection, values: dict[str, object]) -> pa.Table:
    """The rows with every column of the schema, in its types."""
    schema = arrow_schema("rollouts")
    made = database.execute(f"DESCRIBE {_ROWS}", values).fetchall()
    have = {str(column[0]) for column in made}
    columns = ", ".join(
        f'"{field.name}"::{sql_type(field.type)} AS "{field.name}"' if field.name in have
        else f'NULL::{sql_type(field.type)} AS "{field.name}"'
        for field in schema
    )  # fmt: skip
    table: pa.Table = database.sql(f"SELECT {columns} FROM ({_ROWS})", params=values).to_arrow_table()
    return table.cast(schema)


def measure(rows: int, scratch: Path, *, rounds: int = 3) -> list[Asked]:
    """Every question of both, in turns."""
    lake = make_lake(scratch / "lake", rows)
    over_lake, over_table = connect(lake.root), connect(lake.root)
    over_table.execute(f"ATTACH '{scratch / 'native.duckdb'}' AS native")
    over_table.execute("CREATE TABLE native.rollouts AS FROM rollouts_stored")
    over_table.execute("CHECKPOINT native")
    over_table.execute("CREATE OR REPLACE VIEW rollouts_stored AS FROM native.rollouts")
    asked = []
    for question, sql in QUESTIONS.items():
        best: dict[str, float] = {}
        answers: dict[str, list[tuple[object, ...]]] = {}
        for _ in range(rounds):
            for name, connection in (("lake", over_lake), ("native", over_table)):
                seconds, answers[name] = _timed(functools.partial(connection.execute, sql))
                best[name] = min(seconds, best.get(name, seconds))
        assert answers["lake"] == answers["native"], question
        assert answers["lake"], question
        asked.append(Asked(question, best["lake"], best["native"]))
    return asked


def section(rows: int, scratch: Path, rounds: int) -> str:
    """The section of RESULTS.md."""
    asked = results.table(COLUMNS, [line.cells() for line in measure(rows, scratch, rounds=rounds)])
    return (
        f"{results.machine()}. A lake of {rows:,} rows; CPU time, the best of {rounds} tries in turns with a native "
        f"DuckDB table of the same rows, both warm (`python -m tests.bench.exploring --rows {rows}`).\n\n{asked}"
    )


def _timed(run: functools.partial[duckdb.DuckDBPyConnection]) -> tuple[float, list[tuple[object, ...]]]:
    began = time.process_time()
    answer = run().fetchall()
    return time.process_time() - began, answer


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=200_000)
    arguments.add_argument("--keep", type=Path, help="a folder for the lake, which stays")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="etl-bench-") as scratch:
        for line in [COLUMNS, *(asked.cells() for asked in measure(given.rows, given.keep or Path(scratch)))]:
            print("\t".join(line))


if __name__ == "__main__":
    main()
