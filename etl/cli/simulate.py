"""`etl simulate`: synthetic rows, aimed at gaps or spread over the whole grid."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from etl.cli.exits import DONE, DONE_WITH_FAILURES
from etl.cli.options import json_option, lake_option, redact_option

if TYPE_CHECKING:
    from etl.simulator.report import SimulationReport

SHOWN = 8
"""Lines of a list that are shown; --json has all."""


def _dimensions(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, list[str]]:
    """`NAME=VALUE,…` → name and values."""
    chosen: dict[str, list[str]] = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not equals or not values:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE,VALUE")
        chosen.setdefault(name, []).extend([values] if name == "rule" else values.split(","))
    return chosen


@click.command()
@lake_option
@json_option
@click.option(
    "--tools",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Tool definitions, JSON.  [default: those of traffic]",
)
@click.option("--system-prompt", metavar="FILE", type=click.Path(dir_okay=False), help="The system prompt, text.")
@click.option("--from-source", metavar="NAME", help="Take tools and prompt from this log stream alone.")
@click.option("--budget", type=click.IntRange(min=1), help="Rows.  [default: 64; with --fill-gaps as many as it takes]")
@click.option("--repeats", type=click.IntRange(min=1), help="Attempts at each ask.  [default: 4; with --fill-gaps 1]")
@click.option(
    "--mode", type=click.Choice(["rl", "explore"]), default="rl", show_default=True, help="explore: one attempt an ask."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Other seeds give other rows.")
@click.option("--fill-gaps", is_flag=True, help="Write rows for the lake's gaps (`etl coverage`), in their ranking.")
@click.option(
    "--min-support", type=click.IntRange(min=1), default=5, show_default=True, help="Tasks that each pair needs."
)
@click.option("--dimension", "dimensions", multiple=True, metavar="NAME=VALUE,…", callback=_dimensions,
              help="Narrow a dimension of the grid to some values; may be given several times.")  # fmt: skip
@click.option("--strength", type=int, default=2, show_default=True, help="Every combination of so many values occurs.")
@click.option(
    "--rate",
    type=click.FloatRange(0, 1),
    default=0.35,
    show_default=True,
    help="Share of attempts with a planted mistake.",
)
@click.option("--behaviors", metavar="NAME,…", help="The mistakes that are planted.  [default: all]")
@click.option(
    "--fault-rate",
    type=click.FloatRange(0, 1),
    default=0.35,
    show_default=True,
    help="Share of faults that no retry cures.",
)
@click.option("--reward", type=click.Choice(["none", "seeded", "state"]), default="none", show_default=True,
              help="seeded: from the answer key; state: from the final state.")  # fmt: skip
@click.option(
    "--source", default="simulator", show_default=True, metavar="NAME", help="Name of the log stream of the rows."
)
@click.option(
    "--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes; the rows are the same."
)
@click.option("--agent-model", metavar="NAME", help="A real model as the agent, behind an OpenAI-compatible endpoint.")
@click.option("--user-model", metavar="NAME", help="A real model as the person asking.  [default: templates]")
@click.option("--base-url", metavar="URL", help="The endpoint (vLLM, Ollama, …).  [default: OpenAI's]")
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Attempts at a time with a real model.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds for one answer.",
)
@click.option(
    "--max-retries",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Tries again after a failed request.",
)
@click.option("--temperature", type=click.FloatRange(min=0), help="Of the model.")
@click.option(
    "--price", "prices", nargs=2, type=click.FloatRange(min=0), metavar="IN OUT", help="US dollars a million tokens."
)
@redact_option
@click.option("--dry-run", is_flag=True, help="Do everything but write.")
def simulate(lake: str, as_json: bool, redact: str, dry_run: bool, **given: Any) -> int:
    """Write synthetic rows: asks, attempts and faults that traffic has not shown yet.

    Needs no key and no network. Tools and system prompt come from files, or from the lake's own traffic. Equal spec and
    seed give equal rows on any machine; a larger budget keeps the first ones.
    """
    from etl.cli.values import print_json
    from etl.simulator.simulate import simulate as run_simulation

    with _shown(given["agent_model"] is not None) as progress:
        simulation = run_simulation(
            _agent(given),
            tools=None if given["tools"] is None else Path(given["tools"]),
            system_prompt=None if given["system_prompt"] is None else Path(given["system_prompt"]),
            mode=given["mode"], repeats=given["repeats"], budget=given["budget"], seed=given["seed"], lake=lake,
            fill_gaps=given["fill_gaps"], min_support=given["min_support"], from_source=given["from_source"],
            dimensions=given["dimensions"], strength=given["strength"], fault_rate=given["fault_rate"],
            reward=given["reward"],
            source=given["source"], workers=given["workers"], redact=redact, dry_run=dry_run,
            now=dt.datetime.now(dt.UTC),
            progress=progress,
        )  # fmt: skip
    report = simulation.report
    if as_json:
        print_json(report.to_json())
    else:
        print_simulation(report, lake)
    return DONE_WITH_FAILURES if report.failed else DONE


def _agent(given: dict[str, Any]) -> Any:
    """The seeded agent, or a model behind an endpoint."""
    from etl.errors import UsageError
    from etl.simulator.agent import seeded_agent

    if given["agent_model"] is None:
        if given["user_model"] is not None or given["base_url"] is not None:
            raise UsageError("--user-model and --base-url need an agent that is a model: give --agent-model")
        behaviors = None if given["behaviors"] is None else given["behaviors"].split(",")
        return seeded_agent(rate=given["rate"], behaviors=behaviors)
    from etl.simulator.endpoint import Endpoint, ModelAgent

    endpoint = Endpoint(
        given["base_url"], os.environ.get("OPENAI_API_KEY"), timeout=given["timeout"], max_retries=given["max_retries"],
        temperature=given["temperature"], prices=given["prices"] or None,
    )  # fmt: skip
    return ModelAgent(endpoint, given["agent_model"], user_model=given["user_model"], concurrency=given["concurrency"])


def print_simulation(report: SimulationReport, lake: str, *, suggest: bool = True) -> None:
    """A few lines for people, with the command that tells more where `suggest` says so."""
    from etl.cli.summary import lake_argument
    from etl.cli.tables import console
    from etl.harmless import harmless_line

    out, rows = console(), report.rows
    rate = f", {report.attempts / report.seconds:,.0f} rows/s" if report.seconds else ""
    into = "nothing written (dry run)" if report.dry_run else f"into {lake}"
    said = f"Simulated {report.attempts:,} attempts at {report.asks:,} asks {into} in {report.seconds:.1f} s{rate}"
    if report.gaps is not None and not report.attempts:
        said = "Nothing was simulated: no gap is left that simulation can fill"
    out.print(said, soft_wrap=True)
    lines = [("rows", f"{rows.added:,} added, {rows.replaced:,} replaced, {rows.unchanged:,} unchanged")]
    if report.gaps is None:
        impossible = sum(report.impossible.values())
        lines.append(("grid", f"{report.covered:,} of {report.planned:,} pairs covered, {impossible:,} cannot be"))
        lines += [("", f"{count:,}: {why}") for why, count in report.impossible.most_common(SHOWN)]
    else:
        gaps = report.gaps
        filled = f"{gaps['filled']:,} of {gaps['to_fill']:,} filled" if gaps["to_fill"] else "none is left to fill"
        tasks = "task" if gaps["min_support"] == 1 else "tasks"
        lines.append(("gaps", f"{gaps['below']:,} below {gaps['min_support']} {tasks}; {filled}"))
        for left in gaps["not_filled"][:SHOWN]:
            pair = f"{left['axis_1']} {left['value_1']} × {left['axis_2']} {left['value_2']}"
            lines.append(("", f"not filled: {pair} ({left['missing']} missing): {left['why']}"))
        if len(gaps["not_filled"]) > SHOWN:
            lines.append(("", f"and {len(gaps['not_filled']) - SHOWN:,} more (--json names all)"))
    if report.unusable:
        (first, why), more = next(iter(sorted(report.unusable.items()))), len(report.unusable) - 1
        others = f"; and {more:,} more (--json names all)" if more else ""
        lines.append(("left out", f"{len(report.unusable):,} of traffic's tools: {first}: {why}{others}"))
    planted = ", ".join(f"{name} {count:,}" for name, count in report.seeded.most_common())
    lines.append(("planted", planted or "nothing"))
    if report.repeated or report.copies or report.left_out:
        again = f"drawn again: {report.repeated:,} repeated, {report.copies:,} like traffic"
        lines.append(("asks", f"{again}; {report.left_out:,} left out"))
    if report.failed:
        lines.append(("failed", f"{report.failed:,} attempts ended in an error of the agent"))
    if report.input_tokens or report.output_tokens:
        lines.append(
            (
                "usage",
                f"{report.input_tokens:,} tokens in, {report.output_tokens:,} out, {report.cost_usd:.4f} US dollars",
            )
        )
    for label, text in lines:
        out.print(f"{label:<8}  {harmless_line(text)}", soft_wrap=True)
    if suggest and not report.dry_run:
        out.print(
            f"→ etl coverage{lake_argument(lake)}    what traffic covers, what this added, what is missing",
            style="bold",
            soft_wrap=True,
        )


def _shown(models: bool) -> Any:
    """A progress bar on a terminal; nothing elsewhere."""
    import contextlib
    from collections.abc import Callable, Iterator

    from etl.cli.tables import console

    @contextlib.contextmanager
    def shown() -> Iterator[Callable[[int, int], None] | None]:
        err = console(stderr=True)
        if not err.is_terminal:
            yield None
            return
        from rich.progress import Progress

        with Progress(console=err, transient=True) as bar:
            task = bar.add_task("asking the model" if models else "simulating", total=None)
            yield lambda done, of: bar.update(task, completed=done, total=of)

    return shown()
