"""Rejected records read again: from their files where these are still there, else from the bytes that were kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from etl.adapter import Adapter, adapter_named, adapters
from etl.conversation import Record
from etl.discover import discover
from etl.errors import UsageError
from etl.framing import Broken, Framed
from etl.lake import KnownFile, Lake, open_parquet
from etl.lake.rules import policies_in, strictest
from etl.mapped import Mapped
from etl.reading import Reader
from etl.remote import path_of
from etl.report import FileResult
from etl.settings import Settings
from etl.walk import FoundFile
from etl.workers import ReadOut

_CUT_OFF = frozenset({"too_long"})
"""Reasons whose records were kept only in part."""


def read_rejects(
    lake: Lake, settings: Settings, source: str | None, reason: str | None, on_file: Callable[[FileResult], None]
) -> ReadOut:
    """Every file with a chosen reject, read again whole; of files that are gone, the rejects that were kept whole."""
    staged = []
    results: list[FileResult] = []
    for (stream, uri), rejects in sorted(_rejects(lake, source, reason).items()):
        reader = Reader(settings._replace(source=stream), f"replay{len(results)}")
        path, _, member = uri.partition("!")
        if path_of(path).is_file():
            files = [file for file in discover([path]) if file.uri == uri or (member and file.member == member)]
            results.append(reader.read(files[0] if files else FoundFile(uri, path, 0, 0)))
        else:
            result = _result(lake.known_files([stream])[stream].get(uri), stream, uri, rejects)
            if result is None:
                continue
            assert result.adapter is not None
            reader.read_again(result, _framed(adapter_named(result.adapter), rejects, settings))
            results.append(result)
        staged += reader.close()
        on_file(results[-1])
    return ReadOut(results, staged)


def policy_of_rejects(lake: Lake, source: str | None) -> str:
    """The one under which rejects are read again: a file is read whole, and what was replaced of it is to stay so."""
    names = {file.partition["source"] for file in lake.live("rejects")}
    chosen = names if source is None else names & {source}
    policies = {name: strictest({"secrets", *found}) for name, found in sorted(policies_in(lake, chosen).items())}
    if len({*policies.values()}) > 1:
        said = ", ".join(f"{name}: {policy}" for name, policy in policies.items())
        raise UsageError(f"sources with rejects went through several policies of redaction ({said}): give --source")
    return next(iter(policies.values()), "secrets")


def _rejects(lake: Lake, source: str | None, reason: str | None) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """All rejects of every file that has a chosen one: a file's rejects are replaced together.

    What a map read only its map can read again: `etl ingest --map` does, when the map has a new version.
    """
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    chosen: set[tuple[str, str]] = set()
    for file in lake.live("rejects"):
        if source is None or file.partition["source"] == source:
            with open_parquet(file.path) as opened:
                stored = opened.read().to_pylist()
            for row in stored:
                key = (row["source"], row["source_uri"])
                found.setdefault(key, []).append(row)
                if (reason is None or row["reason"] == reason) and row["adapter"] != Mapped.name:
                    chosen.add(key)
    return {
        key: sorted(rows, key=lambda row: row["source_offset"] or 0) for key, rows in found.items() if key in chosen
    }


def _result(known: KnownFile | None, source: str, uri: str, rejects: list[dict[str, Any]]) -> FileResult | None:
    """What is known of a file that is gone, its rejects taken out; None where no adapter of today reads it."""
    if known is None or known.adapter not in adapters():
        return None
    modified = known.modified_at or 0
    left_out = known.records_in - known.records_used - known.rejects
    return FileResult(
        uri, source, known.size, modified * 1_000, known.sha256, known.adapter,
        adapters()[known.adapter].version, known.state,
        records_in=known.records_in - len(rejects), records_used=known.records_used, rows=known.rows,
        ignored=Counter({"ignored_before": left_out} if left_out else {}),
    )  # fmt: skip


def _framed(adapter: Adapter, rejects: list[dict[str, Any]], settings: Settings) -> Iterator[Framed]:
    """The kept bytes as records once more, at the places where they stood."""
    for row in rejects:
        raw, line, offset = row["raw"] or b"", row["source_line"], row["source_offset"]
        if row["reason"] in _CUT_OFF:
            yield Broken(row["reason"], row["message"], raw, line, offset, length=row["length"])
            continue
        for framed in adapter.records(iter([raw]), settings.limits):
            framed.line, framed.offset = line, offset
            if isinstance(framed, Record) or framed.reason != "torn_tail":
                yield framed
            else:
                yield Broken(
                    row["reason"],
                    row["message"].partition(": ")[2],
                    raw,
                    line,
                    offset,
                    tail=row["reason"] == "torn_tail",
                )
