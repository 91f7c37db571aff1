"""Other tools on the same bytes, each in an environment of its own: `python -m tests.bench.peers --megabytes 20`."""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.corpus import openai_conversations, sessions, spans, write, write_sessions, write_spans

HERE = Path(__file__).parent
REPO = HERE.parent.parent
PINNED = {
    "agentpile": "agentpile==0.3.1",
    "convmerge": "convmerge==1.6.5",
    "whileai": "whileai==0.131",
    "dlt": "dlt[parquet]==1.31.0",
}
HEADINGS = (
    "| input | contender | MB per CPU s | etl is faster by | wall s | peak MB | came out |\n" + "| --- " * 7 + "|"
)


CAPTION = (
    "Inputs of about {megabytes} MB, one run each, on a machine that others may use at the same time. agentpile: "
    "`load`; convmerge: `convert --from auto --format messages`, a process a file; whileai: `load_traces`; dlt: "
    "`read_jsonl` to Parquet. What came out: runs, lines, traces, top-level rows; 0 is nothing kept. agentpile and "
    "whileai write nothing. Start-up is counted. data-designer is not measured yet."
)


def attempts() -> Iterator[dict[str, Any]]:
    """Attempts as τ-bench writes them, endless."""
    for number, made in enumerate(openai_conversations(seed=7)):
        info = {"task": {"user_id": f"u{number}", "actions": [], "instruction": "Ask.", "outputs": []}}
        yield {"task_id": number, "reward": float(number % 2), "info": info, "traj": made["messages"], "trial": 0}


def installed(name: str, folder: Path) -> Path | str:
    """The Python of a peer's environment, made where it is missing; a line that says why where it cannot be."""
    home = folder / name
    python = home / "bin" / "python"
    if python.exists():
        return python
    venv.create(home, with_pip=True)
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", PINNED[name]], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return python
    python.unlink()
    return f"not installed: {(done.stderr.strip() or 'pip failed').splitlines()[-1]}"


def took(command: list[str]) -> dict[str, Any] | str:
    """What a contender's process printed, or the last line of why it failed."""
    try:
        done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False, timeout=900)
    except subprocess.TimeoutExpired:
        return "failed: 900 s were not enough"
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    return f"failed: {(done.stderr.strip() or 'no message').splitlines()[-1].split(' (')[0].rsplit(' file ')[0][:120]}"


def compare(what: str, source: Path, scratch: Path, environments: Path) -> list[str]:
    """The lines of one input: floor, DuckDB, us, peers."""
    files = list(source.iterdir()) if source.is_dir() else [source]
    size = sum(file.stat().st_size for file in files) / 1e6
    numbers = itertools.count()
    costs: dict[str, dict[str, Any] | str] = {}
    for name in ("etl", "floor", "duckdb"):
        given = f"{source}/*.jsonl" if name == "duckdb" and source.is_dir() else str(source)
        out = str(Path(tempfile.mkdtemp(dir=scratch)) / str(next(numbers)))
        costs[name] = took([sys.executable, "-m", "tests.bench.contenders", name, given, out])
    for name in PINNED:
        python = installed(name, environments)
        out = str(Path(tempfile.mkdtemp(dir=scratch)) / "out")
        script = str(HERE / "peer_contenders.py")
        costs[name] = python if isinstance(python, str) else took([str(python), script, name, str(source), out])
    ours = costs["etl"]
    lines = []
    for name, cost in costs.items():
        if isinstance(cost, str):
            lines.append(f"| {what} | {name} | | | | | {cost.replace('|', ' ')} |")
            continue
        ratio = f"{cost['cpu'] / ours['cpu']:.2f}" if isinstance(ours, dict) else ""
        lines.append(
            f"| {what} | {name} | {size / cost['cpu']:.1f} | {ratio} | {cost['wall']:.2f} | {cost['peak'] / 1e6:.0f} "
            f"| {cost.get('out', '')} |"
        )
    return lines


def measure(megabytes: int, scratch: Path, environments: Path) -> str:
    """The section of RESULTS.md."""
    lines = [f"## Peers\n\n{CAPTION.format(megabytes=megabytes)}\n", HEADINGS]
    scratch.mkdir(exist_ok=True)
    chats, tau, traces, folder = (scratch / name for name in ("chats.jsonl", "tau.jsonl", "traces.jsonl", "sessions"))
    count = write(chats, openai_conversations(), megabytes)
    lines += compare(f"openai_messages, {count} records", chats, scratch, environments)
    count = write(tau, attempts(), megabytes)
    lines += compare(f"tau_bench, {count} records", tau, scratch, environments)
    count = write_spans(traces, spans(), megabytes)
    lines += compare(f"otlp, {count} spans", traces, scratch, environments)
    count = write_sessions(folder, sessions(), megabytes)
    lines += compare(f"claude_code, {count} sessions", folder, scratch, environments)
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=int, default=20)
    arguments.add_argument("--environments", type=Path, default=REPO / ".peers")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="etl-peers-") as scratch:
        print(measure(given.megabytes, Path(scratch), given.environments))


if __name__ == "__main__":
    main()
