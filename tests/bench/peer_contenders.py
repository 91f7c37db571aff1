"""One peer on one input, inside the peer's own environment: `python peer_contenders.py PEER INPUT OUTPUT`.

Prints one JSON object: CPU seconds (children included), wall seconds, peak bytes, and what came out of the peer.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def _files(source: Path) -> list[Path]:
    return sorted(source.iterdir()) if source.is_dir() else [source]


def agentpile(source: Path, target: Path) -> int:
    """`agentpile.load` of each file; the runs it yields."""
    import agentpile as ap  # type: ignore[import-not-found, unused-ignore]

    return sum(1 for file in _files(source) for _ in ap.load(str(file)))


def convmerge(source: Path, target: Path) -> int:
    """`convmerge convert --from auto --format messages` of each file; the lines it writes."""
    target.mkdir()
    for file in _files(source):
        out = target / file.name
        command = [str(Path(sys.executable).with_name("convmerge")), "convert", "-i", str(file), "-o", str(out)]
        code = subprocess.run([*command, "--from", "auto", "--format", "messages"], stdout=sys.stderr).returncode
        if code:
            raise SystemExit(code)
    return sum(1 for out in target.iterdir() for _ in out.open("rb"))


def whileai(source: Path, target: Path) -> int:
    """`load_traces` of each file; the traces it returns."""
    from whileai.simulations.ingest.traces import load_traces  # type: ignore[import-not-found, unused-ignore]

    return sum(len(load_traces(str(file))) for file in _files(source))


def dlt(source: Path, target: Path) -> int:
    """The filesystem source's `read_jsonl` into a Parquet filesystem destination; the records it normalised."""
    import dlt as tool  # type: ignore[import-not-found, unused-ignore]
    from dlt.sources.filesystem import (  # type: ignore[import-not-found, unused-ignore]
        filesystem,
        read_jsonl,
    )

    folder, glob = (source, "*.jsonl") if source.is_dir() else (source.parent, source.name)
    place = tool.destinations.filesystem(bucket_url=(target / "out").as_uri())
    pipeline = tool.pipeline("bench", pipelines_dir=str(target / "state"), destination=place, dataset_name="logs")
    records = filesystem(bucket_url=folder.as_uri(), file_glob=glob) | read_jsonl()
    pipeline.run(records.with_name("records"), loader_file_format="parquet")
    return int(pipeline.last_trace.last_normalize_info.row_counts["records"])


PEERS: dict[str, Callable[[Path, Path], int]] = {
    "agentpile": agentpile,
    "convmerge": convmerge,
    "whileai": whileai,
    "dlt": dlt,
}


def main(name: str, source: str, target: str) -> None:
    """Run one peer and print what it took."""
    started = time.monotonic()
    out = PEERS[name](Path(source), Path(target))
    wall = time.monotonic() - started
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    peak = max(own.ru_maxrss, children.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"cpu": cpu, "wall": wall, "peak": peak, "out": out}))


if __name__ == "__main__":
    main(*sys.argv[1:])
