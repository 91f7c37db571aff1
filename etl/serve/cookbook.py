"""The questions of `schemas/cookbook.md`, to pick from beside the box for SQL."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from etl.shipped import schema_text

_QUESTION = re.compile(r"^### (?P<title>.+)\n(?:(?!^#).*\n)*?^```sql\n(?P<sql>(?:(?!^```).*\n)*)^```$", re.MULTILINE)


class Question(NamedTuple):
    """A question people ask, with its SQL."""

    title: str
    sql: str


@functools.cache
def questions() -> list[Question]:
    """All of the cookbook, in order."""
    return [Question(found["title"], found["sql"].strip()) for found in _QUESTION.finditer(schema_text("cookbook.md"))]
