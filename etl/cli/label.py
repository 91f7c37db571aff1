"""`etl label`: what a person says of a row."""

from __future__ import annotations

import click

from etl.cli.exits import DONE
from etl.cli.options import json_option, lake_option, pseudonym_key
from etl.errors import UsageError


@click.command()
@click.argument("rollout_id")
@click.argument("word", required=False)
@lake_option
@json_option
@click.option("--name", default="label", show_default=True, help="What is judged; one label of each name stands.")
@click.option("--value", type=float, help="The verdict as a number.")
@click.option("--reason", help="Why.")
@click.option("--remove", is_flag=True, help="Take the label of that name back.")
def label(
    rollout_id: str, word: str | None, lake: str, as_json: bool, name: str, value: float | None, reason: str | None,
    remove: bool,
) -> int:  # fmt: skip
    """Label a row: `etl label r_1a2b good --name quality`.

    The label is a judgment of kind `human`. It stays with the row when its source is read again, unchanged or grown.
    ROLLOUT_ID may be cut short as long as it is the only one that begins so.
    """
    from etl.cli.tables import note
    from etl.cli.values import print_json
    from etl.labels import label as give
    from etl.labels import take_back
    from etl.lake import Label
    from etl.query import connect, find_rollout

    if remove and (word is not None or value is not None or reason is not None):
        raise UsageError("--remove takes a label back; it goes with --name alone")
    whole_id = str(find_rollout(connect(lake), rollout_id)["rollout_id"])
    given = Label(name, word, value, reason)
    key = pseudonym_key()
    changed = take_back(lake, whole_id, name) if remove else give(lake, whole_id, given, pseudonym_key=key)
    if as_json:
        print_json({"rollout_id": whole_id, "name": name, "changed": changed})
    else:
        said = "removed" if remove else "labelled"
        note(f"{said}: {whole_id}" if changed else f"{whole_id} was so already")
    return DONE
