"""What `--json` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from etl.harmless import json_escaped
from etl.values import plain


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout; what a terminal would obey stands there as an escape."""
    click.echo(json_escaped(json.dumps(plain(value), ensure_ascii=False, allow_nan=False)))
