"""Lines for people on stdout: with their styles on a terminal, as plain text in a pipe, for which nothing is loaded."""

from __future__ import annotations

import sys

import click


def print_line(text: str, *, label: str | None = None, style: str | None = None) -> None:
    """One line, a dim label before it where there is one."""
    if sys.stdout.isatty():
        from etl.cli.tables import print_styled

        print_styled(text, label, style)
    else:
        click.echo(text if label is None else f"{label:<8}  {text}")
