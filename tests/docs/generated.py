"""The parts of README.md that follow from the code; `python -m tests.docs.generated` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

from etl.cli import cli
from etl.derive import documented
from etl.exports.target import targets
from etl.schema import Rollout
from tests.docs.markdown import with_part

README = Path(__file__).parents[2] / "README.md"


def columns() -> str:
    """A table of the columns of a rollout, each with the first clause of its meaning."""
    top = [column for column in documented(Rollout) if "." not in column.path and "[" not in column.path]
    rows = [f"| `{column.path}` | {_first_clause(column.description)} |" for column in top]
    return "\n".join(["| column | meaning |", "|---|---|", *rows]) + "\n"


def _first_clause(text: str) -> str:
    return re.split(r"[;.](?:\s|$)", text, maxsplit=1)[0].replace("|", "\\|")


def commands() -> str:
    """What `etl --help` prints, in a window of 80 columns whatever the window of the moment."""
    context = cli.make_context("etl", [], resilient_parsing=True, terminal_width=80)
    return f"```text\n$ etl --help\n{cli.get_help(context)}\n```\n"


def export_targets() -> str:
    """A line for each target of `etl export`."""
    rows = [f"| {', '.join(f'`{n}`' for n in (t.name, *t.aliases))} | {t.about} |" for t in targets().values()]
    return "\n".join(["| target | for whom, and what a record is |", "|---|---|", *rows]) + "\n"


def generated(text: str) -> str:
    """The README with all its generated parts as they must be."""
    for name, part in (("columns", columns()), ("targets", export_targets()), ("help", commands())):
        text = with_part(text, name, part)
    return text


if __name__ == "__main__":
    README.write_text(generated(README.read_text(encoding="utf-8")), encoding="utf-8")
