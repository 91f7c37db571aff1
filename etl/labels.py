"""Labels that a person gives to rows: what `etl label` and the browser do."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from etl.errors import MissingExtraError, UsageError
from etl.keys import lake_key
from etl.lake import Label, Lake
from etl.policies import KEYED
from etl.redact import Redactor
from etl.redact.redactor import rules_version

LONGEST = 2_000
"""Characters of a name, a word or a reason."""


def label(lake: str | os.PathLike[str], rollout_id: str, given: Label, *, pseudonym_key: bytes | None = None) -> bool:
    """Give a row of a lake a label, in the place of the one of that name; false where the row says so already.

    A label is a judgment of kind `human`. It stays when the source is read again, unchanged or grown. What is replaced
    in the row is replaced in it: secrets always, personal data where the row went through such a policy, named by
    `pseudonym_key` or the key kept for the lake. UsageError for an unknown id or a label that says nothing.
    """
    if given.label is None and given.value is None:
        raise UsageError("a label needs a word or a number")
    texts = [given.name, given.label, given.reason]
    if not given.name or any(text is not None and len(text) > LONGEST for text in texts):
        raise UsageError(
            f"the name, the word and the reason of a label have at most {LONGEST} characters, the name one"
        )
    with _batch(lake) as opened:

        def masked(label: Label, versions: frozenset[str]) -> Label:
            policy = _policy(versions)
            key = pseudonym_key or (lake_key(opened.id) if policy in KEYED else None)
            redactor = Redactor(policy, key)
            name, word, reason = (
                None if text is None else redactor.text(text)[0] for text in (label.name, label.label, label.reason)
            )
            return Label(name or "", word, label.value, reason)

        return opened.label(rollout_id, given, masked)


def _policy(versions: Iterable[str]) -> str:
    """The policy that rows went through, by the rule sets that were noted with them; `secrets` where it was none."""
    seen = _sets("+".join(versions))
    personal = _sets(rules_version("pii")) - _sets(rules_version("secrets"))
    if not personal & seen:
        return "secrets"
    try:
        further = _sets(rules_version("strict")) - _sets(rules_version("pii"))
    except MissingExtraError:
        return "pii"
    return "strict" if further & seen else "pii"


def _sets(version: str) -> set[str]:
    return {part.rpartition("-")[0] for part in version.split("+")}


def take_back(lake: str | os.PathLike[str], rollout_id: str, name: str) -> bool:
    """Remove the label of that name from a row; false where the row has none."""
    with _batch(lake) as opened:
        return opened.take_back_label(rollout_id, name)


@contextmanager
def _batch(lake: str | os.PathLike[str]) -> Iterator[Lake]:
    opened = Lake.open(lake)
    with opened.batch(f"label-{uuid.uuid4().hex}"):
        yield opened
