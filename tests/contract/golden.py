"""What a sample gives, as JSON that a person reads: the file's account, its rows and its rejects.

Left out are nulls and false (a missing key is one of them) and what depends on machine, time or batch. Columns that
hold JSON are shown as JSON. `python -m tests.golden NAME` writes those of an adapter anew; read the
difference before committing it.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, Self

from etl.pipeline import ingest
from tests.contract.harness import SampleLog, sample_logs
from tests.lakes import NOW, REPO, rows

GOLDEN = REPO / "tests" / "golden"
_RUN = {"batch_id", "ingested_at", "modified_at", "source_uri", "uri", "row_hash", "reject_id", "adapter_version"}
_JSON = {"tools", "rewards", "extra", "faults", "redactions", "parts", "ignored"}


def golden_path(sample: SampleLog) -> Path:
    """Where the golden of a sample lies."""
    return GOLDEN / f"{sample.name}.json"


class Tables(NamedTuple):
    """The rows of a lake's tables that a golden shows."""

    rollouts: list[dict[str, Any]]
    rejects: list[dict[str, Any]]
    sources: list[dict[str, Any]]

    @classmethod
    def of(cls, lake: Path) -> Self:
        """All of a lake."""
        return cls(rows(lake), rows(lake, "rejects"), rows(lake, "sources"))

    def about(self, sample: SampleLog) -> Self:
        """What came of one sample."""
        uri = str(sample.path)

        def its(found: list[dict[str, Any]], column: str = "source_uri") -> list[dict[str, Any]]:
            return [row for row in found if row[column] == uri or row[column].startswith(f"{uri}!")]

        return type(self)(its(self.rollouts), its(self.rejects), its(self.sources, "uri"))


def account(sample: SampleLog, tables: Tables) -> dict[str, Any]:
    """The file, its rows and its rejects, of a lake that the sample was read into."""
    its = tables.about(sample)
    return {
        "file": [_shown(row, sample) for row in its.sources],
        "rows": [_shown(row, sample) for row in sorted(its.rollouts, key=_place)],
        "rejects": [_shown(row, sample) for row in sorted(its.rejects, key=_place)],
    }


def write(sample: SampleLog) -> None:
    """Write the golden of a sample."""
    with tempfile.TemporaryDirectory() as folder:
        lake = Path(folder, "lake")
        ingest([sample.path], lake=lake, now=NOW, strict=True)
        text = _text(account(sample, Tables.of(lake)))
    path = golden_path(sample)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_some(names: list[str]) -> list[Path]:
    """Write the goldens of the samples of these adapters; the files written."""
    samples = [sample for sample in sample_logs() if sample.adapter.name in names]
    for sample in samples:
        write(sample)
    return [golden_path(sample) for sample in samples]


def write_all() -> list[Path]:
    """Write every golden, remove those whose sample is gone; the files written."""
    written = [golden_path(sample) for sample in sample_logs()]
    for sample in sample_logs():
        write(sample)
    for path in set(GOLDEN.rglob("*.json")) - set(written):
        path.unlink()
    return written


def _text(parts: dict[str, list[dict[str, Any]]]) -> str:
    """JSON with a line for each column, and for each message or step."""
    lines = ["{"]
    for part, entries in parts.items():
        lines.append(f' "{part}": [')
        for entry in entries:
            lines += ["  {", *_columns(entry)]
            lines.append("  }" if entry is entries[-1] else "  },")
        lines.append(" ]" if part == list(parts)[-1] else " ],")
    return "\n".join([*lines, "}", ""])


def _columns(entry: dict[str, Any]) -> list[str]:
    shown = []
    for name, value in entry.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            items = ",\n".join(f"    {json.dumps(item, ensure_ascii=False)}" for item in value)
            shown.append(f'   "{name}": [\n{items}\n   ]')
        else:
            shown.append(f'   "{name}": {json.dumps(value, ensure_ascii=False)}')
    return ",\n".join(shown).split("\n")


def _place(row: dict[str, Any]) -> tuple[int, str]:
    return row["source_offset"] or 0, str(row.get("rollout_id", row.get("reason")))


def _shown(value: Any, sample: SampleLog, name: str = "") -> Any:
    """A value as the golden shows it."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if item is not None and item is not False and key not in _RUN}
        return {key: _shown(item, sample, key) for key, item in kept.items()}
    if isinstance(value, list):
        return [_shown(item, sample) for item in value]
    if name in _JSON:
        return json.loads(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.replace(str(sample.path), sample.path.name) if isinstance(value, str) else value
