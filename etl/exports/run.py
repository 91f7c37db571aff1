"""One export, top to bottom: choose rows → examine each → decide what stays → write → put the folder in its place."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb

from etl.errors import EtlError, LakeError, UsageError
from etl.exports.card import export_card
from etl.exports.examine import Reading, examine
from etl.exports.heldout import HeldOut
from etl.exports.near import NearDuplicates
from etl.exports.plan import choose, decide
from etl.exports.reasons import DROPS
from etl.exports.report import ExportReport, difficulty, dropped, in_order, split_counts
from etl.exports.request import MissingResults, Request, check_request
from etl.exports.target import Target, target_named
from etl.exports.tokenizing import Tokenizer
from etl.exports.writing import write, written_schema
from etl.permissions import folder_mode
from etl.query import LakePath, connect

_MEMORY = "1GB"
"""What DuckDB may use before it spills to disk."""


class ExportProgress(NamedTuple):
    """How far an export is."""

    phase: str
    done: int
    total: int


Told = Callable[[ExportProgress], None]


def export(
    target: str,
    out: str | os.PathLike[str],
    *,
    lake: LakePath = "lake",
    where: str | None = None,
    split: str = "train=1",
    seed: str = "",
    max_rows: int | None = None,
    max_per_source: int | None = None,
    shards: int | None = None,
    group_min: int = 1,
    difficulty: tuple[float, float] | None = None,
    pass_at: float = 1.0,
    drop_unanimous: bool = False,
    max_chars: int | None = None,
    max_tokens: int | None = None,
    missing_results: MissingResults = "drop",
    reasoning: bool | None = None,
    keep_duplicates: bool = False,
    keep_rejected: bool = False,
    near_duplicates: float | None = None,
    held_out: Sequence[str | os.PathLike[str]] = (),
    ngram: int = 13,
    ground_truth: str | None = None,
    columns: Sequence[str] = (),
    tokenizer: str | None = None,
    chat_template: str | None = None,
    verdicts: str | os.PathLike[str] | None = None,
    progress: Told | None = None,
) -> ExportReport:
    """Write trainer-ready files of a lake into the folder `out`, which must be empty or not there.

    `where` is SQL over the view `rollouts`; every option is explained by `etl export --help`. UsageError for an unknown
    target, a folder that is not empty or SQL that makes no sense; EtlError where nothing is left to export. Then
    nothing is written: the folder appears whole, at the end.
    """
    request = Request(
        where, split, seed, max_rows, max_per_source, shards, group_min, difficulty, pass_at, drop_unanimous,
        max_chars, max_tokens, missing_results, reasoning, keep_duplicates, keep_rejected,
        near_duplicates, tuple(os.fspath(path) for path in held_out), ngram, ground_truth, tuple(columns),
        tokenizer, chat_template,
    )  # fmt: skip
    wanted = target_named(target)
    check_request(request)
    _check_fit(wanted, request)
    folder = _empty(out)
    made = None if tokenizer is None else Tokenizer(tokenizer, chat_template)
    return _Run(wanted, request, made, progress or (lambda _: None)).into(folder, lake, verdicts)


class _Run:
    """One export under way."""

    def __init__(self, target: Target, request: Request, tokenizer: Tokenizer | None, told: Told) -> None:
        self._target = target
        self._request = request
        self._tokenizer = tokenizer
        self._told = told

    def into(self, folder: Path, lake: LakePath, verdicts: str | os.PathLike[str] | None) -> ExportReport:
        """All of it; the folder is there when it returns, and unchanged when it raises."""
        with connect(lake, locked=True, memory_limit=_MEMORY) as connection, _our_errors():
            connection.execute("SET preserve_insertion_order = false")
            # The script that opens the views leaves variables to one cursor; the tables of an export are everybody's.
            reading = Reading(connection, self._target, self._request, self._tokenizer)
            selected = self._plan(reading)
            if verdicts is not None:
                _save_verdicts(connection, Path(verdicts))
            left_out = dropped(connection)
            used = selected - sum(left_out.values())
            if not used:
                raise EtlError(_nothing(self._target, selected, left_out))
            with _staging(folder) as staging:
                report = self._write(reading, staging, folder, selected, used, left_out)
        return report

    def _plan(self, reading: Reading) -> int:
        """Decide about every row; how many were selected."""
        request = self._request
        choose(reading)
        total = _number(reading.connection, "SELECT count(*) FROM chosen")
        held_out = HeldOut(request.held_out, request.ngram) if request.held_out else None
        near = None if request.near_duplicates is None else NearDuplicates(request.near_duplicates)
        examine(reading, held_out, near, lambda done: self._told(ExportProgress("examining", done, total)))
        decide(reading, near)
        return total

    def _write(
        self, reading: Reading, staging: Path, folder: Path, selected: int, used: int, left_out: dict[str, int]
    ) -> ExportReport:
        connection, target = reading.connection, self._target
        records = _number(connection, "SELECT count(*) FROM arranged")
        done = write(reading, staging, lambda phase, count: self._told(ExportProgress(phase, count, used)))
        done.repairs["prompts_differ"] += _differing(connection) if target.unit == "task" else 0
        version, place = connection.execute("SELECT version, lake FROM lake_tables WHERE name = 'rollouts'").fetchall()[
            0
        ]
        report = ExportReport(
            target.name, str(folder), str(place), version, self._request,
            _number(connection, "SELECT count(*) FROM rollouts_stored"), selected, used,
            _number(connection, _SIMULATED), records, left_out, in_order(done.repairs),
            split_counts(connection, done.files), difficulty(connection), done.files,
        )  # fmt: skip
        texts = {
            "README.md": export_card(target, written_schema(target, self._request.columns), done.files),
            **target.companions(done.files),
            "export.json": json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n",
        }
        for name, text in texts.items():
            (staging / name).write_text(text, encoding="utf-8")
        return report


_SIMULATED = """
    SELECT count(*) FROM rollouts_stored
    WHERE origin = 'simulation' AND rollout_id IN (SELECT rollout_id FROM plan WHERE reason IS NULL)
"""
"""How many of the rows in the files no traffic has shown."""


def _check_fit(target: Target, request: Request) -> None:
    """UsageError for an option that would do nothing for this target: nobody shall believe that it did."""
    written_schema(target, request.columns)
    idle = {
        "--ground-truth": request.ground_truth is not None and not target.answers,
        "--near-duplicates": request.near_duplicates is not None and target.unit == "pair",
        "--keep-rejected": request.keep_rejected and not target.imitates,
        "--missing-results": request.missing_results != "drop" and target.whole,
        "--reasoning drop": request.reasoning is False and target.whole,
        "--max-tokens": request.max_tokens is not None and target.whole,
    }
    for option, given in idle.items():
        if given:
            raise UsageError(f"{option} has no effect on the target {target.name}; leave it away")


def _empty(out: str | os.PathLike[str]) -> Path:
    folder = Path(os.path.abspath(out))  # noqa: PTH100 (a link stays the link it is)
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"the folder {folder} is not empty; give --out a new one, or empty it first")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; give --out a folder")
    return folder


@contextlib.contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """A folder beside the wanted one, which takes its place at the end, or goes."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        yield staging
        staging.chmod(folder_mode(folder))
        staging.replace(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextlib.contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        why = str(error).splitlines()[0]
        if isinstance(error, duckdb.IOException):
            raise LakeError(f"{why}; if an ingest is under way, export again when it is done") from error
        raise EtlError(why) from error


def _nothing(target: Target, selected: int, left_out: dict[str, int]) -> str:
    if not selected:
        return 'nothing to export: no row is selected; see what there is with: etl sql "SELECT count(*) FROM rollouts"'
    counts = ", ".join(f"{reason} {count:,}" for reason, count in left_out.items())
    most = max(left_out, key=lambda reason: left_out[reason])
    why = f"{most}: {DROPS[most]}"
    return f"nothing to export for {target.name}: {selected:,} rows selected, and all left out ({counts}). {why}"


def _save_verdicts(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """What became of every selected row, as Parquet or (`.csv`) as text."""
    from pyarrow import csv, parquet

    relation = "SELECT rollout_id, source, task_id, coalesce(reason, 'exported') AS verdict, split, shard, position"
    rows = connection.sql(f"{relation} FROM plan LEFT JOIN arranged USING (unit) ORDER BY rollout_id").to_arrow_table()
    if path.suffix == ".csv":
        csv.write_csv(rows, path, csv.WriteOptions(quoting_style="needed", quoting_header="needed"))
    else:
        parquet.write_table(rows, path, compression="zstd")


def _differing(connection: duckdb.DuckDBPyConnection) -> int:
    """Tasks in the files whose attempts had more than one prompt."""
    return _number(
        connection,
        """SELECT count(*) FROM (SELECT task_key FROM plan WHERE reason IS NULL OR reason = 'other_attempt'
           GROUP BY task_key HAVING count(DISTINCT prompt_key) > 1 AND bool_or(reason IS NULL))""",
    )


def _number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    return int(connection.execute(query).fetchall()[0][0])
