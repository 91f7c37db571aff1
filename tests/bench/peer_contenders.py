"""One peer on one input, in the peer's own environment: `python peer_contenders.py PEER FORMAT INPUT OUTPUT`.

Prints one JSON object: CPU seconds (children included), wall seconds, peak bytes, and how much came out of the peer.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def _files(source: Path) -> list[Path]:
    return sorted(source.iterdir()) if source.is_dir() else [source]


def _records(source: Path) -> Iterator[Any]:
    for file in _files(source):
        with file.open("rb") as lines:
            for line in lines:
                yield json.loads(line)


def agentpile(form: str, source: Path, target: Path) -> int:
    """`agentpile.load` of each file; the runs it yields."""
    import agentpile as ap  # type: ignore[import-not-found, unused-ignore]

    return sum(1 for file in _files(source) for _ in ap.load(str(file)))


def convmerge(form: str, source: Path, target: Path) -> int:
    """`convmerge convert` of each file; the lines it writes."""
    options = ["--from", "auto"]
    if form == "tau_bench":
        options = ["--from", "chat", "--adapter-kwargs", '{"chat": {"conversation_keys": ["traj"]}}']
    target.mkdir()
    for file in _files(source):
        command = [str(Path(sys.executable).with_name("convmerge")), "convert", "-i", str(file)]
        command += ["-o", str(target / file.name), "--format", "messages", *options]
        code = subprocess.run(command, stdout=sys.stderr).returncode
        if code:
            raise SystemExit(code)
    return sum(1 for out in target.iterdir() for _ in out.open("rb"))


def whileai(form: str, source: Path, target: Path) -> int:
    """`load_traces`, of spans `rows_from_otel`; the rows they return."""
    from whileai.simulations.ingest.otel import rows_from_otel  # type: ignore[import-not-found, unused-ignore]
    from whileai.simulations.ingest.traces import load_traces  # type: ignore[import-not-found, unused-ignore]

    if form == "otlp":
        return sum(len(rows_from_otel(batch)) for batch in _records(source))
    if form == "tau_bench":
        return len(load_traces({**record, "messages": record["traj"]} for record in _records(source)))
    return sum(len(load_traces(str(file))) for file in _files(source))


def data_designer(form: str, source: Path, target: Path) -> int:
    """The reader behind `AgentRolloutSeedSource`, in batches; the records it yields."""
    from data_designer.config.seed_source import (  # type: ignore[import-not-found, unused-ignore]
        AgentRolloutSeedSource,
    )
    from data_designer.engine.resources.seed_reader import (  # type: ignore[import-not-found, unused-ignore]
        AgentRolloutSeedReader,
    )
    from data_designer.engine.secret_resolver import (  # type: ignore[import-not-found, unused-ignore]
        PlaintextResolver,
    )

    reader = AgentRolloutSeedReader()
    reader.attach(AgentRolloutSeedSource(format=form, path=str(source)), PlaintextResolver())
    batches = reader.create_batch_reader(batch_size=100, index_range=None, shuffle=False)
    count = 0
    while True:
        try:
            count += len(batches.read_next_batch().to_pandas())
        except StopIteration:
            return count


def dlt(form: str, source: Path, target: Path) -> int:
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


PEERS: dict[str, Callable[[str, Path, Path], int]] = {
    "agentpile": agentpile,
    "convmerge": convmerge,
    "whileai": whileai,
    "data-designer": data_designer,
    "dlt": dlt,
}


def peak_bytes(most: int, *, of_children: bool = False) -> int:
    """The most memory that this process held; `most` as `getrusage` has it, which counts what its parent held too."""
    status = Path("/proc/self/status")
    if not of_children and status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) << 10
    return most * (1 if sys.platform == "darwin" else 1024)


def main(name: str, form: str, source: str, target: str) -> None:
    """Run one peer and print what it took."""
    started = time.monotonic()
    out = PEERS[name](form, Path(source), Path(target))
    wall = time.monotonic() - started
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    peak = max(peak_bytes(own.ru_maxrss), peak_bytes(children.ru_maxrss, of_children=True))
    print(json.dumps({"cpu": cpu, "wall": wall, "peak": peak, "out": out}))


if __name__ == "__main__":
    main(*sys.argv[1:])
