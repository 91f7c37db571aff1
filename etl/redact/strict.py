"""The policy `strict`: all of personal data, and names of people and postal addresses (the extra `ner`)."""

from __future__ import annotations

from etl.redact import name_cues, name_forms, people, postal, postal_forms, recognition
from etl.redact.families import Family
from etl.redact.personal import FAMILIES, Personal


def version() -> str:
    """What the findings hang on; MissingExtraError where the extra is not there."""
    return f"{people.VERSION}+{postal.VERSION}+{recognition.version()}"


class Strict(Personal):
    """The rules of `Personal` and those for names and addresses. `check_policy` says whether the extra is there."""

    @property
    def families(self) -> tuple[Family, ...]:
        return _FAMILIES


_FAMILIES = (
    *FAMILIES,
    Family("person", f"{name_forms.SIFT}|{name_cues.SIFT}", people.found),
    Family("address", postal_forms.SIFT, postal.found),
)
