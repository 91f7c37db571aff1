"""`etl report` and `etl serve`: a lake in pictures, and in the browser."""

from __future__ import annotations

import contextlib
import datetime as dt
import sys
from pathlib import Path

import click

from etl.cli.exits import DONE
from etl.cli.files import written_whole
from etl.cli.options import json_option, lake_option, pseudonym_key, unsafe_option


@click.command()
@lake_option
@json_option
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@click.option(
    "--samples", type=click.IntRange(0, 100), default=6, show_default=True, help="Conversations that it shows whole."
)
def report(lake: str, as_json: bool, out: Path, samples: int) -> int:
    """Write one HTML file that says what is in the lake.

    What came in, what was rejected and why, which situations are covered, pass rates and failing tools with their
    intervals, tokens and money, lengths, and some conversations. It needs nothing else: no network, no script.
    """
    from etl.cli.values import print_json
    from etl.pages.report import report as made
    from etl.query import connect

    text = made(connect(lake), lake, now=dt.datetime.now(dt.UTC), samples=samples)
    with written_whole(out) as beside:
        beside.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"out": str(out), "bytes": len(text.encode())})
    else:
        click.echo(f"wrote {out}; open it in a browser")
    return DONE


@click.command()
@lake_option
@json_option
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8642, show_default=True, help="0 takes any that is free."
)
@click.option("--open", "open_it", is_flag=True, help="Open it in the browser.")
@unsafe_option
def serve(lake: str, as_json: bool, port: int, open_it: bool, unsafe: bool) -> int:
    """Read the lake in a browser, on this machine alone.

    Rows with filters, conversations with calls beside their results, attempts beside each other, coverage, rejects with
    their bytes, SQL that only reads; rows can be labelled. The address that is printed holds the token of this start.
    Ctrl-C ends it.
    """
    from etl.cli.values import print_json
    from etl.serve.server import serve as listen

    def announce(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            click.echo(f"Open {address}\nCtrl-C ends it.")
        sys.stdout.flush()
        if open_it:
            click.launch(address)

    with contextlib.suppress(KeyboardInterrupt):
        listen(lake, port=port, announce=announce, pseudonym_key=pseudonym_key(), unsafe=unsafe)
    return DONE
