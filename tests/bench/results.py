"""RESULTS.md: a section for each thing that is measured, written by what measured it; all others stay as they are."""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"
MADE = (
    "Speed",
    "Peers",
    "Questions over a lake",
    "Simulation",
    "A night on a full lake",
    "Redaction of labelled cases",
    "Cost of redaction",
)
"""Sections that `make bench` writes, in their order; what follows them was measured, or written, on its own."""
HEAD = (
    "# Benchmarks\n\n"
    f"`make bench` writes the sections {', '.join(MADE[:-1])} and {MADE[-1]}. It leaves the others as they are: each "
    "says how it was measured. CPU seconds are of user and system, children included; MB are millions of bytes.\n"
)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """Heading → body, in order; what stands before the first heading is left out."""
    parts = _HEADING.split(text)[1:]
    return {heading.strip(): body.strip() for heading, body in zip(parts[::2], parts[1::2], strict=True)}


def merged(before: str, made: Mapping[str, str]) -> str:
    """The text of RESULTS.md with these sections in place of those of the same heading, and every other one kept."""
    known = {**sections(before), **{heading: body.strip() for heading, body in made.items()}}
    order = [*(heading for heading in MADE if heading in known), *(heading for heading in known if heading not in MADE)]
    return "\n".join([HEAD, *(f"## {heading}\n\n{known[heading]}\n" for heading in order)])


def keep(made: Mapping[str, str], path: Path = RESULTS) -> None:
    """Write these sections into RESULTS.md."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(merged(before, made), encoding="utf-8")


def kept(heading: str, path: Path = RESULTS) -> str:
    """A section as it stands; empty where there is none."""
    return sections(path.read_text(encoding="utf-8")).get(heading, "") if path.exists() else ""


def machine() -> str:
    """When and where, and how busy the machine was with other programs."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    busy = f"load average {os.getloadavg()[0]:.1f} at the end" if hasattr(os, "getloadavg") else "load unknown"
    return f"{today}, {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {busy}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows as a Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [headings, ["---"] * len(headings), *rows])
