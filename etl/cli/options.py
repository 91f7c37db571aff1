"""Options that several commands share, each written once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from etl.formats import known_format

Command = TypeVar("Command", bound=Callable[..., Any])


def _known_format(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """The name itself; UsageError lists those there are."""
    return None if value is None else known_format(value)


def complete_format(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names that begin with what is typed so far."""
    from etl.adapter import adapters

    return [CompletionItem(name, help=a.about) for name, a in adapters().items() if name.startswith(incomplete)]


def _for_its_group(_ctx: click.Context, _param: click.Parameter, lake: str) -> str:
    follow_sharing(lake)
    return lake


def follow_sharing(lake: str) -> None:
    """Let the group read and write what this command writes where the folder of the lake is shared on purpose."""
    from etl.permissions import PRIVATE, SHARED, is_shared

    inherited = click.get_current_context().obj
    if isinstance(inherited, int):
        os.umask(inherited | (SHARED if "://" not in lake and is_shared(lake) else PRIVATE))


def lake_option(command: Command) -> Command:
    """`--lake`, by default `ETL_LAKE` or ./lake."""
    return click.option(
        "--lake",
        envvar="ETL_LAKE",
        default="./lake",
        show_default=True,
        show_envvar=True,
        metavar="DIR",
        callback=_for_its_group,
        help="The lake: a folder, or a URI in an object store.",
    )(command)


def json_option(command: Command) -> Command:
    """`--json`, on every command."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")(command)


def unsafe_option(command: Command) -> Command:
    """`--unsafe`, wherever somebody's SQL is run."""
    return click.option(
        "--unsafe",
        is_flag=True,
        help="Let SQL read and write other files, reach the network, load extensions and change settings.",
    )(command)


def format_option(command: Command) -> Command:
    """`--format`, where a file's format can be named instead of told by content."""
    return click.option(
        "--format",
        "format_name",
        metavar="NAME",
        callback=_known_format,
        shell_complete=complete_format,
        help="Read every file as this format (`etl formats` lists them).",
    )(command)


def redact_option(command: Command) -> Command:
    """`--redact`, wherever rows are written."""
    return click.option(
        "--redact",
        type=click.Choice(["none", "secrets", "pii", "strict"]),
        default="secrets",
        show_default=True,
        help="What is replaced by a label before anything is written: secrets, personal data (pii) too, or names and "
        "postal addresses besides (strict).",
    )(command)


def pseudonym_key() -> bytes | None:
    """The key of the environment (`ETL_PSEUDONYM_KEY`, or the file that `ETL_PSEUDONYM_KEY_FILE` names), if any."""
    from etl.errors import UsageError

    name, text = os.environ.get("ETL_PSEUDONYM_KEY_FILE"), os.environ.get("ETL_PSEUDONYM_KEY")
    if not name and text is None:
        return None
    from etl.keys import given_key

    if name:
        try:
            return given_key(Path(name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{name}: the key for pseudonyms cannot be read ({error})") from None
    return None if text is None else given_key(text)
