"""HTML of a lake: one set of templates for the report, the browser and notebooks.

Log text is hostile. Everything a template prints is escaped (autoescape is on, no template turns it off) and made
harmless first: control, direction and invisible characters show as symbols instead of being obeyed. No address of a
link comes out of a log, and nothing is loaded from anywhere.
"""

from __future__ import annotations

import datetime as dt
import functools
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from etl.harmless import harmless
from etl.values import cell

FOLDER = Path(__file__).parent / "templates"


def render(template: str, **values: Any) -> str:
    """A template of this package with these values."""
    return _environment().get_template(template).render(**values)


def asset(name: str) -> str:
    """The text of the style sheet or of the script."""
    return (FOLDER / name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "share": share,
        "interval": interval,
        "when": when,
        "cell": text,
    }
    style = asset("style.css")
    environment.globals["style"] = Markup(style)
    environment.globals["scoped_style"] = Markup(_scoped(style))
    return environment


def _scoped(style: str) -> str:
    """The style sheet for one element of a page of others (a notebook)."""
    inside = style.replace(":root", ":scope").replace("body {", ":scope {")
    return f"@scope (.etl-rollout) {{\n{inside}}}"


def _finalize(value: Any) -> Any:
    """What is printed, without what a browser would obey; null is nothing."""
    if value is None:
        return ""
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def text(value: Any) -> str:
    """Any value of a result as text.

    >>> text(None), text(["a", "b"]), text({"a": 1})
    ('null', 'a, b', '{"a":1}')
    """
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return "null" if value is None else cell(value)


def number(value: float | None) -> str:
    """A count with its thousands apart, any other number with four digits.

    >>> number(12345), number(0.123456), number(None)
    ('12,345', '0.1235', '–')
    """
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def share(value: float | None) -> str:
    """A share in per cent.

    >>> share(0.1234), share(None)
    ('12.3 %', '–')
    """
    return "–" if value is None else f"{value * 100:.1f} %"


def interval(low: float | None, high: float | None) -> str:
    """A 95 % interval of a share.

    >>> interval(0.1, 0.25)
    '10.0–25.0 %'
    """
    return "–" if low is None or high is None else f"{low * 100:.1f}–{high * 100:.1f} %"


def when(value: dt.datetime | None) -> str:
    """A time in UTC, to the second.

    >>> when(dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC))
    '2026-03-01 12:00:00'
    """
    return "–" if value is None else f"{value.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S}"
