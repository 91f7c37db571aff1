"""Postal addresses: by the forms that streets, numbers, codes and towns have in the countries where logs come from.

A street with a number is an address where its last or first word says so (Street, -straße, rue, Via); with a postal
code and a town behind it, whatever it is called. Fields that hold nothing else (`shipping_address`) give theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from etl.redact.anchors import around
from etl.redact.escapes import View
from etl.redact.families import Found
from etl.redact.postal_forms import FIELD, FIELD_VALUE, FORMS, IN_FIELDS, PLACED

VERSION = "postal-1"
"""Changes when one of these rules does."""

_NO_ADDRESS = re.compile(r"@|://|\\|^[\w.:/-]*$|[{}<>=$;]")
_MARKS = re.compile(r"[\W_]+")


def found(view: View) -> Iterator[Found]:
    """The postal addresses in a view."""
    text = view.flat
    for start, end in sorted({*_in_fields(view), *_by_form(text)}):
        yield "address", start, end, _MARKS.sub(" ", text[start:end]).strip().casefold()


def _by_form(text: str) -> Iterator[tuple[int, int]]:
    for form in FORMS:
        done = 0
        for anchor in form.anchor.finditer(text):
            first, last = max(done, anchor.start() - form.before), anchor.end() + form.after
            for match in form.pattern.finditer(text, first, last):
                yield match.span("value")
                done = match.end()


def _in_fields(view: View) -> Iterator[tuple[int, int]]:
    text = view.flat
    for match in around(view, IN_FIELDS, FIELD):
        value = FIELD_VALUE.match(text, match.end())
        if not value:
            continue
        group = "quoted" if value["quoted"] is not None else "single" if value["single"] is not None else "bare"
        said = value[group].rstrip(" .,;" if group == "bare" else None)
        if PLACED.search(said) and not _NO_ADDRESS.search(said):
            yield value.start(group), value.start(group) + len(said)
