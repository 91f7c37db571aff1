"""Other tools on the same bytes, each in an environment of its own: `python -m tests.bench.peers --megabytes 50`."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench import results
from tests.bench.corpus import attempts, openai_conversations, sessions, spans, write, write_sessions, write_spans

HERE = Path(__file__).parent
REPO = HERE.parent.parent
HEADING = "Peers"
COLUMNS = ["input", "tool", "MB per CPU s", "of etl's speed", "wall s", "peak MB", "what came out"]


class Peer(NamedTuple):
    """A tool, what it does of what etl does, and what it makes of each input."""

    name: str
    package: str
    does: str
    cannot: Mapping[str, str]
    """Input → why it is not run on it."""
    notes: Mapping[str, str]
    """Input → what to know of what comes out."""


PEERS = (
    Peer(
        "agentpile", "agentpile==0.3.1",
        "`load`, file by file: run records in memory, calls paired by id, losses named; no redaction, nothing written",
        {"tau_bench": "cannot read it: its `tau_bench` is a data set that it downloads, in another form"},
        {"otlp": "without messages: it keeps these spans as spans"},
    ),
    Peer(
        "convmerge", "convmerge==1.6.5",
        "`convert --format messages`, a process for each file: lines of chats, brought into one shape; a line is "
        "a conversation; no redaction, identity or provenance",
        {
            "otlp": "cannot read it: conversations that are a line each, and no spans",
            "claude_code": "cannot read it: conversations that are a line each, and no sessions",
        },
        {"tau_bench": "`--from chat`, with `traj` named as the key of the messages"},
    ),
    Peer(
        "whileai", "whileai==0.131",
        "`load_traces` (of spans `rows_from_otel`): rows in memory, the whole file at once. Images, reasoning, ids of "
        "calls and rewards other than 0 and 1 are lost; no redaction, nothing written",
        {"claude_code": "cannot read it: no reader of sessions"},
        {
            "tau_bench": "`traj` handed over as `messages`",
            "otlp": "it reads neither messages in `parts` nor calls whose arguments were not logged",
        },
    ),
    Peer(
        "data-designer", "data-designer==0.9.7",
        "its reader of agent rollouts alone, into data frames in memory. A line that is no JSON costs the whole "
        "session; no redaction, nothing written",
        dict.fromkeys(
            ("openai_messages", "otlp", "tau_bench"), "cannot read it: ATIF, Claude Code, Codex, Hermes and Pi only"
        ),
        {},
    ),
    Peer(
        "dlt", "dlt[parquet]==1.31.0",
        "`read_jsonl` into Parquet, lists as tables of their own. It knows no format: no conversations, pairing or "
        "redaction",
        {},
        {"otlp": "top-level rows: lines of spans", "claude_code": "top-level rows: lines of sessions"},
    ),
)  # fmt: skip
OURS = {
    "floor": "`orjson.loads` of each line and zstd level 1 over the bytes: the least that any reader does",
    "duckdb": "`COPY (FROM read_json(…))` to zstd Parquet on one thread: columns as they are, nothing looked at",
    "etl": "`ingest`, one process: detection, identity, pairing, redaction, checks, Parquet, commit",
}

Cost = dict[str, Any]


class Input(NamedTuple):
    """The same made-up traffic in one format."""

    name: str
    amount: str
    path: Path

    @property
    def megabytes(self) -> float:
        """Bytes of all files, in millions."""
        files = self.path.iterdir() if self.path.is_dir() else [self.path]
        return sum(file.stat().st_size for file in files) / 1e6


def inputs(megabytes: int, scratch: Path) -> list[Input]:
    """One of each format, of about that size."""
    scratch.mkdir(parents=True, exist_ok=True)
    chats, tau, traces, folder = (scratch / name for name in ("chats.jsonl", "tau.jsonl", "traces.jsonl", "sessions"))
    return [
        Input("openai_messages", f"{write(chats, openai_conversations(), megabytes):,} chats", chats),
        Input("tau_bench", f"{write(tau, attempts(), megabytes):,} attempts", tau),
        Input("otlp", f"{write_spans(traces, spans(), megabytes):,} spans", traces),
        Input("claude_code", f"{write_sessions(folder, sessions(), megabytes):,} sessions, a file each", folder),
    ]


def installed(peer: Peer, folder: Path) -> Path | str:
    """The Python of a peer's environment, made where it is missing; a line that says why where it cannot be."""
    home = folder / peer.name
    python = home / "bin" / "python"
    if python.exists():
        return python
    uv = shutil.which("uv")
    if uv is None:
        venv.create(home, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", peer.package]
    else:
        subprocess.run([uv, "venv", "--quiet", "--no-project", "--python", sys.executable, home], check=True)
        command = [uv, "pip", "install", "--quiet", "--python", str(python), peer.package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return python
    shutil.rmtree(home)
    return f"not installed: {_last_line(done.stderr)}"


def took(command: list[str]) -> Cost | str:
    """What a contender's process printed, or the last line of why it failed."""
    try:
        done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False, timeout=900)
    except subprocess.TimeoutExpired:
        return "failed: 900 s were not enough"
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    return f"failed: {_last_line(done.stderr)}"


def _last_line(said: str) -> str:
    return (said.strip() or "no message").splitlines()[-1][:120]


def measured(given: Input, scratch: Path, environments: Path) -> dict[str, Cost | str]:
    """What each tool took, or why it has no figure."""
    costs: dict[str, Cost | str] = {}
    for name in OURS:
        out = str(Path(tempfile.mkdtemp(dir=scratch)) / "out")
        costs[name] = took([sys.executable, "-m", "tests.bench.contenders", name, str(given.path), out])
    for peer in PEERS:
        if given.name in peer.cannot:
            costs[peer.name] = peer.cannot[given.name]
            continue
        python = installed(peer, environments)
        out = str(Path(tempfile.mkdtemp(dir=scratch)) / "out")
        script = str(HERE / "peer_contenders.py")
        costs[peer.name] = (
            python
            if isinstance(python, str)
            else took([str(python), script, peer.name, given.name, str(given.path), out])
        )
    return costs


def lines(given: Input, costs: Mapping[str, Cost | str]) -> list[list[str]]:
    """The rows of one input. Who turns nothing out has no speed: that is not the work being compared."""
    ours = costs["etl"]
    notes = {peer.name: peer.notes.get(given.name, "") for peer in PEERS}
    rows = []
    for name, cost in costs.items():
        what = f"{given.name}, {given.amount}"
        if isinstance(cost, str):
            rows.append([what, name, "", "", "", "", cost.replace("|", " ")])
            continue
        out, note = cost.get("out"), notes.get(name, "")
        if out == 0:
            rows.append([what, name, "", "", "", "", "nothing" + (f": {note}" if note else "")])
            continue
        share = f"{ours['cpu'] / cost['cpu']:.2f}" if isinstance(ours, dict) else ""
        came = "" if out is None else f"{out:,}" + (f" ({note})" if note else "")
        speed = f"{given.megabytes / cost['cpu']:.1f}"
        rows.append([what, name, speed, share, f"{cost['wall']:.1f}", f"{cost['peak'] / 1e6:.0f}", came])
    return rows


def section(megabytes: int, scratch: Path, environments: Path) -> str:
    """The section of RESULTS.md."""
    rows = [row for given in inputs(megabytes, scratch) for row in lines(given, measured(given, scratch, environments))]
    about = [f"* {name}: {does}." for name, does in (*OURS.items(), *((peer.name, peer.does) for peer in PEERS))]
    return (
        f"{results.machine()}. About {megabytes} MB of each format, one run each, start-up counted. What came out are "
        "rows, runs, lines or records, as each tool has them.\n\n"
        + "\n".join(about)
        + "\n\n"
        + results.table(COLUMNS, rows)
    )


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=int, default=50)
    arguments.add_argument("--environments", type=Path, default=REPO / ".peers")
    arguments.add_argument("--keep", action="store_true", help="write the section into RESULTS.md")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="etl-peers-") as scratch:
        text = section(given.megabytes, Path(scratch), given.environments)
    print(text)
    if given.keep:
        results.keep({HEADING: text})


if __name__ == "__main__":
    main()
