"""`etl formats` and `etl detect`: what is readable, and what a file is taken for."""

from __future__ import annotations

from typing import Any

import click

from etl.cli.exits import DONE, FAILED
from etl.cli.options import complete_format, json_option
from etl.errors import SourceError
from etl.harmless import harmless_line


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_format)
@json_option
@click.option("--map-example", is_flag=True, help="Print a map for logs of your own (`etl ingest --map`), to fill in.")
def formats(names: tuple[str, ...], as_json: bool, map_example: bool) -> int:
    """List the formats that can be read, and the rules by which each leaves records out.

    NAME shows that format alone.
    """
    if map_example:
        from etl.mapping import EXAMPLE

        if as_json:
            from etl.cli.values import print_json

            print_json({"map_example": EXAMPLE})
        else:
            click.echo(EXAMPLE, nl=False)
        return DONE
    from etl.adapter import adapter_named, adapters
    from etl.cli.tables import console
    from etl.cli.values import print_json

    known = [adapter_named(name) for name in names] if names else adapters().values()
    if as_json:
        print_json(
            {
                "formats": [
                    {
                        "name": adapter.name,
                        "version": adapter.version,
                        "about": adapter.about,
                        "spans_files": adapter.spans_files,
                        "ignores": adapter.ignores,
                    }
                    for adapter in known
                ]
            }
        )
        return DONE
    out = console()
    for adapter in known:
        out.print(f"{adapter.name} (version {adapter.version})", style="bold")
        out.print(f"  {adapter.about}")
        if adapter.spans_files:
            out.print("  One conversation may lie in several files, and arrive over several nights.")
        if adapter.ignores:
            out.print("  Leaves out, and counts by the rule:")
        for rule, what in sorted(adapter.ignores.items()):
            out.print(f"    {rule}: {what}")
    return DONE


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(exists=True, dir_okay=False))
@json_option
def detect(files: tuple[str, ...], as_json: bool) -> int:
    """Tell what files are taken for, and why.

    Shows the scores above 0, of at most 1; --json has those of all formats (of several files a list, `files`). Exits 1
    where no format, or more than one, claims one.
    """
    from etl.cli.tables import note
    from etl.cli.values import print_json
    from etl.detection import detect as detect_format

    told: list[dict[str, Any]] = []
    for file in files:
        try:
            found = detect_format(file)
        except SourceError as error:
            if len(files) == 1:
                raise
            told.append({"file": file, "format": None, "why": str(error), "scores": {}})
            if not as_json:
                note(f"etl: {harmless_line(str(error))}")
        else:
            ranked = sorted(found.scores.items(), key=lambda item: (-item[1], item[0]))
            told.append({"file": file, "format": found.adapter.name, "why": found.why, "scores": dict(ranked)})
            if not as_json:
                _print_detection(**told[-1])
    if as_json:
        print_json(told[0] if len(files) == 1 else {"files": told})
    return DONE if all(each["format"] for each in told) else FAILED


def _print_detection(file: str, format: str, why: str, scores: dict[str, float]) -> None:
    from etl.cli.tables import console, print_rows

    out = console()
    out.print(f"{file}: {format}", style="bold")
    out.print(why)
    some = [(name, score) for name, score in scores.items() if score > 0]
    print_rows(out, ["format", "score"], some)
    out.print(f"the other {len(scores) - len(some)} formats score 0")
