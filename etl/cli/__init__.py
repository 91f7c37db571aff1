"""The command `etl`: one verb per library call, and the one place where errors become exit codes.

The environment is read in this package only (`ETL_LAKE`, `ETL_DEBUG`, the terminal). A command is loaded when it
is asked for, and heavy libraries where it uses them, so that `etl --help` and shell completion answer at once.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import NoReturn

import click
from click.exceptions import NoArgsIsHelpError

from etl.cli.exits import CLOSED_PIPE, FAILED, INTERRUPTED, WRONG_USAGE
from etl.errors import EtlError, UsageError
from etl.harmless import harmless_line
from etl.permissions import PRIVATE
from etl.remote import store_errors

__all__ = ["cli", "main", "run"]


_HOMES = {
    "ingest": "etl.cli.ingest",
    "simulate": "etl.cli.simulate",
    "coverage": "etl.cli.coverage",
    "sql": "etl.cli.query",
    "shell": "etl.cli.query",
    "show": "etl.cli.query",
    "report": "etl.cli.pages",
    "serve": "etl.cli.pages",
    "label": "etl.cli.label",
    "export": "etl.cli.export",
    "formats": "etl.cli.formats",
    "detect": "etl.cli.formats",
    "sources": "etl.cli.operations",
    "rejects": "etl.cli.operations",
    "verify": "etl.cli.operations",
    "changes": "etl.cli.upkeep",
    "undo": "etl.cli.upkeep",
    "retain": "etl.cli.upkeep",
    "forget": "etl.cli.upkeep",
    "redact": "etl.cli.upkeep",
    "compact": "etl.cli.upkeep",
    "migrate": "etl.cli.upkeep",
    "demo": "etl.cli.demo",
}
"""Where each command lies, in the order of a day's work."""


class _Late(MutableMapping[str, click.Command]):
    """Commands by name, each loaded when it is asked for: one that is typed waits for no other."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = dict(homes)
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            self._loaded[name] = getattr(importlib.import_module(self._homes[name]), name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._homes[name], self._loaded[name] = "", command

    def __delitem__(self, name: str) -> None:
        del self._homes[name], self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


class _Commands(click.Group):
    """Lists commands in the order of a day's work, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Whole first sentences, where click would cut them."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(limit=200)) for name, command in self.commands.items()]
            )

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a reader that closed the pipe (`etl sql … | head`) ends it without a word."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _silence_stdout()
            return CLOSED_PIPE
        return code


def _stdout_is_stuck() -> bool:
    """Whether nothing can be printed any more (the disk behind it is full): one line end tells."""
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _silence_stdout() -> None:
    """What is still buffered has nowhere to go: else the interpreter complains about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=_Commands,
    commands=_Late(_HOMES),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 failed (nothing half-written), 2 wrong usage, 3 done, but a file failed.",
)
@click.version_option(package_name="rollout-etl", prog_name="etl", message="%(prog)s %(version)s")
def cli() -> None:
    """Traffic into rollouts: conversation logs in, one row per conversation in partitioned Parquet, SQL out."""


def main() -> NoReturn:
    """Entry point of the console script."""
    # Arrow brings numpy along, whose linear algebra nobody needs here: its threads alone cost a fifth of the start-up.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A stream that was closed before the start is None; what is said to it goes nowhere.
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 (for the life of the process)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what the terminal's encoding lacks is no reason to stop
    code = run(sys.argv[1:])
    gc.freeze()  # the process ends: no need to walk all that is left in search of cycles
    if store_errors():
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """End without taking the interpreter down: the threads of what opens object stores may come back to it meanwhile,
    and are then ended by force, the process with them.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(args: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    An error is one line on stderr, and with `--json` an object on stdout too. `ETL_DEBUG` lets it through instead.
    Whatever is written is its owner's alone, in every process and by every library, unless the lake is shared.
    """
    inherited = os.umask(PRIVATE)
    os.umask(inherited | PRIVATE)
    try:
        return _run(args, inherited)
    finally:
        os.umask(inherited)


def _run(args: Sequence[str], inherited: int) -> int:
    try:
        code = cli.main(list(args), prog_name="etl", standalone_mode=False, obj=inherited)
    except click.Abort:
        return _fail(args, INTERRUPTED, "Interrupted", "interrupted; nothing half-written is visible")
    except NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return WRONG_USAGE
    except click.ClickException as error:
        return _fail(args, WRONG_USAGE, "UsageError", error.format_message().rstrip(".") + _hint(error))
    except UsageError as error:
        return _fail(args, WRONG_USAGE, "UsageError", str(error))
    except EtlError as error:
        if _debugging():
            raise
        return _fail(args, FAILED, type(error).__name__, str(error))
    except MemoryError:
        return _fail(args, FAILED, "MemoryError", "out of memory; nothing half-written is visible")
    except Exception as error:
        if isinstance(error, OSError) and _stdout_is_stuck():
            _silence_stdout()
            said = f"cannot write the answer to stdout: {error.strerror}; what was committed stays"
            return _fail(args, FAILED, "OutputError", said)
        if _debugging():
            raise
        if isinstance(error, OSError) and error.filename is not None and error.strerror:
            said = f"{os.fsdecode(error.filename)}: {error.strerror}; nothing half-written is visible"
            return _fail(args, FAILED, type(error).__name__, said)
        return _fail(args, FAILED, type(error).__name__, _our_fault(error))
    return code if isinstance(code, int) else 0


def _debugging() -> bool:
    return bool(os.environ.get("ETL_DEBUG"))


def _fail(args: Sequence[str], code: int, kind: str, message: str) -> int:
    """Say it in one line, free of what a terminal would obey."""
    message = harmless_line(_one_line(message))
    if "--json" in args:
        with contextlib.suppress(OSError):  # stdout may be what failed
            click.echo(json.dumps({"error": {"kind": kind, "message": message}}, ensure_ascii=False))
    click.echo(f"etl: {message}", err=True)
    return code


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _hint(error: click.ClickException) -> str:
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.NoSuchOption) and ctx is not None and ctx.command is cli:
        return f"; options follow the command: etl COMMAND {error.option_name} …"
    return f" (see: {ctx.command_path} --help)" if ctx is not None else ""


def _our_fault(error: Exception) -> str:
    return (
        f"unexpected {type(error).__name__}: {error}. This is a fault of etl, not of your data; nothing half-written "
        "is visible. Set ETL_DEBUG=1 for the traceback, and please report it."
    )
