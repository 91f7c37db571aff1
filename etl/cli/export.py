"""`etl export`: trainer-ready files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from etl.cli.exits import DONE
from etl.cli.options import json_option, lake_option

if TYPE_CHECKING:
    from etl.exports.report import ExportReport
    from etl.exports.run import ExportProgress


def _complete_target(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names that begin with what is typed so far."""
    from etl.exports.target import targets

    return [CompletionItem(name, help=t.about) for name, t in targets().items() if name.startswith(incomplete)]


def _list_targets(as_json: bool) -> int:
    """`--list`: the table of targets, and no export."""
    from etl.cli.tables import console, print_listing
    from etl.cli.values import print_json
    from etl.exports.target import targets

    columns = ("target", "aliases", "file", "about")
    rows = [
        (target.name, list(target.aliases), "jsonl" if target.schema() is None else "parquet", target.about)
        for target in targets().values()
    ]
    if as_json:
        print_json({"targets": [dict(zip(columns, row, strict=True)) for row in rows]})
    else:
        listed = [(", ".join((name, *aliases)), file, about) for name, aliases, file, about in rows]
        print_listing(console(), ["target", "file", "about"], listed)
    return DONE


class _Bounds(click.ParamType[tuple[float, float]]):
    """Two numbers, as in 0.2,0.8."""

    name = "bounds"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        try:
            low, high = str(value).split(",")
            return float(low), float(high)
        except ValueError:
            self.fail(f"{value!r} is no pair of numbers, as in 0.2,0.8", param, ctx)


_COUNT = click.IntRange(min=1)


@click.command()
@click.argument("target", required=False, shell_complete=_complete_target)
@click.option("--out", metavar="DIR", type=click.Path(), help="Folder to write: empty, or not there yet.  [required]")
@lake_option
@json_option
@click.option("--list", "list_targets", is_flag=True, help="List the targets, and exit.")
@click.option("--where", metavar="SQL", help="Rows to take: a condition over the view `rollouts`.")
@click.option("--since", metavar="BATCH", help="Only rows that came or changed after this batch (`etl changes`).")
@click.option(
    "--split", default="train=1", show_default=True, metavar="SPEC", help="As in train=0.9,test=0.1; by task."
)
@click.option("--seed", default="", metavar="TEXT", help="Another seed: another split and another order.")
@click.option("--max-rows", type=_COUNT, metavar="N", help="At most N records.")
@click.option("--max-per-source", type=_COUNT, metavar="N", help="At most N records of each source.")
@click.option("--shards", type=_COUNT, metavar="N", help="Files of each split.  [default: one per 128 MB of text]")
@click.option("--group-min", type=_COUNT, default=1, metavar="N", help="Only tasks with N scored attempts or more.")
@click.option("--difficulty", type=_Bounds(), metavar="LOW,HIGH", help="Only tasks with a pass rate between the two.")
@click.option(
    "--pass-at", type=float, default=1.0, show_default=True, metavar="REWARD", help="An attempt passes from here on."
)
@click.option("--drop-unanimous", is_flag=True, help="Leave out tasks whose attempts all have one reward.")
@click.option("--max-chars", type=_COUNT, metavar="N", help="Leave out conversations that are longer.")
@click.option("--max-tokens", type=_COUNT, metavar="N", help="The same in tokens of --tokenizer.")
@click.option(
    "--missing-results",
    type=click.Choice(["drop", "cut", "allow-last"]),
    default="drop",
    show_default=True,
    help="A call without a result: leave the row out, end it before that call, or allow it in the last turn.",
)
@click.option("--reasoning", type=click.Choice(["keep", "drop"]), help="The model's reasoning.  [default: by target]")
@click.option("--keep-duplicates", is_flag=True, help="Keep rows that say exactly the same.")
@click.option("--keep-rejected", is_flag=True, help="Imitate also the answers that a preference set rejects.")
@click.option(
    "--near-duplicates", type=float, metavar="JACCARD", help="Leave out rows this alike (MinHash), as in 0.8."
)
@click.option(
    "--held-out", multiple=True, metavar="PATH", type=click.Path(), help="Leave out what overlaps this lake or file."
)
@click.option("--ngram", type=_COUNT, default=13, show_default=True, metavar="N", help="Words of an overlap.")
@click.option("--ground-truth", metavar="SQL", help="Expression over `rollouts` for targets that carry an answer.")
@click.option("--columns", metavar="A,B", help="Write only these columns.")
@click.option("--tokenizer", metavar="NAME", help="Tokenizer for tokens and --max-tokens: a folder, or a hub's name.")
@click.option("--chat-template", metavar="FILE", help="Another chat template for --tokenizer.")
@click.option(
    "--verdicts",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write what became of each row (.parquet, .csv).",
)
def export(
    target: str | None,
    out: str | None,
    lake: str,
    as_json: bool,
    list_targets: bool,
    where: str | None,
    since: str | None,
    reasoning: str | None,
    columns: str | None,
    **options: object,
) -> int:
    """Write trainer-ready files.

    TARGET says for whom (`--list` lists them); DIR gets the data, a dataset card, and export.json with counts by
    reason. Only complete pairs of call and result are written, each turn is trained in one row only, splits go by
    task; what is left out or repaired is counted by its rule. The same export of the same lake gives the same bytes.
    """
    from etl.cli.values import print_json
    from etl.exports.run import export as run_export

    if list_targets:
        return _list_targets(as_json)
    if target is None or out is None:
        raise click.UsageError(
            "Missing argument 'TARGET' (--list lists them)." if target is None else "Missing option '--out'."
        )

    with _shown() as progress:
        report = run_export(
            target,
            out,
            lake=lake,
            where=where if since is None else _and_since(lake, since, where),
            reasoning=None if reasoning is None else reasoning == "keep",
            columns=tuple(name.strip() for name in columns.split(",")) if columns else (),
            progress=progress,
            **options,  # type: ignore[arg-type]  # click has checked them, under the same names
        )
    if as_json:
        print_json(report.to_json())
    else:
        _print(report)
    return DONE


def _and_since(lake: str, batch: str, where: str | None) -> str:
    """The condition, and that a row is of a batch after that one: it stands in export.json, to be repeated."""
    from etl.lake import Lake

    later = ", ".join(f"'{name}'" for name in Lake.open(lake, older=True).batches_since(batch))
    condition = f"batch_id IN ({later})" if later else "false"
    return condition if where is None else f"({where}\n) AND {condition}"


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _print(report: ExportReport) -> None:
    from rich.text import Text

    from etl.cli.tables import console, print_listing
    from etl.exports.reasons import DROPS, REPAIRS

    out = console()
    size = sum(file.bytes for file in report.files)
    out.print(
        f"{_plural(report.records, 'record')} for {report.target} in {report.folder}: "
        f"{_plural(len(report.files), 'file')}, {size:,} bytes",
        soft_wrap=True,
    )
    told = [("in the lake", report.in_lake, ""), ("selected", report.selected, report.request.where or "all")]
    told += [(f"- {reason}", count, DROPS[reason]) for reason, count in report.dropped.items()]
    leave_out = "`--where \"origin = 'traffic'\"` leaves them out"
    simulated = f"{report.simulated:,} of them simulated; {leave_out}" if report.simulated else ""
    told += [("used", report.used, simulated)]
    told += [(f"~ {rule}", count, REPAIRS[rule]) for rule, count in report.repaired.items()]
    print_listing(out, ["rows", "n", "why"], told)
    for split, counts in report.splits.items():
        line = ", ".join(_plural(counts[name], name[:-1]) for name in ("records", "tasks", "files"))
        out.print(Text.assemble((f"{split}  ", "dim"), line), soft_wrap=True)
    for band in report.bands:
        out.print(
            Text.assemble(
                ("difficulty  ", "dim"), f"{band['band']}: {band['tasks']:,} tasks, n = {band['attempts']:,}"
            ),
            soft_wrap=True,
        )


@contextlib.contextmanager
def _shown() -> Iterator[Callable[[ExportProgress], None] | None]:
    """The progress bar, on stderr, where that is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from etl.cli.tables import console

    err = console(stderr=True)
    if not err.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("choosing rows", total=None)
        yield lambda at: bar.update(task, description=f"{at.phase} rows", completed=at.done, total=at.total)
