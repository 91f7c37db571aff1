"""Charts as SVG inside the page, drawn by Vega-Lite through vl-convert: no script, no network, colours of the page.

Vega-Lite was chosen over plotly (3.5 MB of script in each page, nothing without it, nothing in print) and matplotlib
(text as outlines, no roles): its SVG has text as text, a role and a label on every mark, and `currentColor`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from etl.errors import MissingExtraError
from etl.harmless import harmless_line

Rows = Sequence[Mapping[str, Any]]

COLOURS = ("#2f7ed8", "#c4620e", "#2e9157", "#a35bd6", "#c0392b", "#0f8b8d", "#9a7b0a", "#7f7f7f")
"""Each stands out at least 3:1 from white and from the dark page."""

_AXIS = {
    "labelColor": "currentColor",
    "titleColor": "currentColor",
    "domainColor": "currentColor",
    "tickColor": "currentColor",
    "gridColor": "currentColor",
    "gridOpacity": 0.15,
    "labelLimit": 260,
    "labelFontSize": 12,
    "titleFontSize": 12,
}
_LEGEND = {"labelColor": "currentColor", "titleColor": "currentColor", "labelLimit": 260, "labelFontSize": 12}
_CONFIG = {
    "font": "system-ui, sans-serif",
    "axis": _AXIS,
    "legend": _LEGEND,
    "view": {"stroke": None},
    "range": {"category": list(COLOURS)},
}
WIDTH = 760


class Chart(NamedTuple):
    """A picture, and what it shows in a sentence for those who do not see it."""

    title: str
    alt: str
    svg: Markup


def stacked(title: str, alt: str, rows: Rows, x: str, y: str, colour: str) -> Chart:
    """Bars over an ordered axis, one colour for each kind."""
    encoding = {
        "x": {"field": x, "type": "ordinal", "title": None, "axis": {"labelAngle": -40, "labelOverlap": True}},
        "y": {"field": y, "type": "quantitative", "title": y, "axis": {"tickMinStep": 1}},
        "color": {"field": colour, "type": "nominal", "title": colour},
    }
    return _chart(title, alt, rows, {"mark": "bar", "height": 220, "encoding": encoding})


def bars(title: str, alt: str, rows: Rows, label: str, value: str) -> Chart:
    """A bar for each label, in the order given."""
    encoding = {
        "y": {"field": label, "type": "nominal", "title": None, "sort": None},
        "x": {"field": value, "type": "quantitative", "title": value, "axis": {"tickMinStep": 1}},
    }
    mark = {"type": "bar", "color": COLOURS[0]}
    return _chart(title, alt, rows, {"mark": mark, "height": {"step": 20}, "encoding": encoding})


def intervals(title: str, alt: str, rows: Rows, label: str, rate: str) -> Chart:
    """A point with its interval (`low`, `high`) for each label, on a scale from 0 to 1."""
    y = {"field": label, "type": "nominal", "title": None, "sort": None}
    scale = {"domain": [0, 1]}
    axis = {"format": "%"}
    layers = [
        {
            "mark": {"type": "rule", "color": COLOURS[0], "strokeWidth": 3, "opacity": 0.55},
            "encoding": {
                "y": y,
                "x": {"field": "low", "type": "quantitative", "scale": scale, "axis": axis, "title": rate},
                "x2": {"field": "high"},
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "color": COLOURS[1]},
            "encoding": {"y": y, "x": {"field": rate, "type": "quantitative", "scale": scale, "title": rate}},
        },
    ]
    return _chart(title, alt, rows, {"layer": layers, "height": {"step": 20}})


def lines(title: str, alt: str, rows: Rows, x: str, y: str, colour: str) -> Chart:
    """A line with points for each kind."""
    encoding = {
        "x": {"field": x, "type": "ordinal", "title": None, "axis": {"labelAngle": -40, "labelOverlap": True}},
        "y": {"field": y, "type": "quantitative", "title": y},
        "color": {"field": colour, "type": "nominal", "title": colour},
        "strokeDash": {"field": colour, "type": "nominal", "title": colour},
    }
    return _chart(title, alt, rows, {"mark": {"type": "line", "point": True}, "height": 200, "encoding": encoding})


def _chart(title: str, alt: str, rows: Rows, spec: Mapping[str, Any]) -> Chart:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError('charts need a package that is not there: pip install "rollout-etl[report]"') from error
    whole = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": alt,
        "width": WIDTH,
        "background": None,
        "config": _CONFIG,
        "data": {"values": [_plain(row) for row in rows]},
        **spec,
    }
    svg = vl_convert.vegalite_to_svg(whole)
    # A role and a label on the picture as a whole; the labels on its parts are Vega's.
    opening = Markup('<svg role="img" aria-label="{}" ').format(harmless_line(alt))
    return Chart(title, alt, Markup(re.sub(r"^<svg ", lambda _: opening, svg, count=1)))


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """The texts and numbers of a row."""
    return {
        key: harmless_line(value) if isinstance(value, str) else value
        for key, value in row.items()
        if value is None or isinstance(value, str | int | float)
    }
