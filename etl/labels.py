"""Labels that a person gives to rows: what `etl label` and the browser do."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from etl.errors import UsageError
from etl.lake import Label, Lake
from etl.redact import Redactor

LONGEST = 2_000
"""Characters of a name, a word or a reason."""


def label(lake: str | os.PathLike[str], rollout_id: str, given: Label) -> bool:
    """Give a row of a lake a label, in the place of the one of that name; false where the row says so already.

    A label is a judgment of kind `human`. It stays when the source is read again, unchanged or grown. Secrets in it are
    replaced like everywhere else. UsageError for an unknown id or a label that says nothing.
    """
    if given.label is None and given.value is None:
        raise UsageError("a label needs a word or a number")
    texts = [given.name, given.label, given.reason]
    if not given.name or any(text is not None and len(text) > LONGEST for text in texts):
        raise UsageError(
            f"the name, the word and the reason of a label have at most {LONGEST} characters, the name one"
        )
    redactor = Redactor()
    name, word, reason = (None if text is None else redactor.text(text)[0] for text in texts)
    with _batch(lake) as opened:
        return opened.label(rollout_id, Label(name or "", word, given.value, reason))


def take_back(lake: str | os.PathLike[str], rollout_id: str, name: str) -> bool:
    """Remove the label of that name from a row; false where the row has none."""
    with _batch(lake) as opened:
        return opened.take_back_label(rollout_id, name)


@contextmanager
def _batch(lake: str | os.PathLike[str]) -> Iterator[Lake]:
    opened = Lake.open(lake)
    with opened.batch(f"label-{uuid.uuid4().hex}"):
        yield opened
