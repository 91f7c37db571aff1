"""The policy `strict`: all of personal data, and names of people and postal addresses (the extra `ner`)."""

from __future__ import annotations

from etl.redact import name_cues, name_forms, people, postal, postal_forms, recognition
from etl.redact.families import Family
from etl.redact.personal import FAMILIES, Personal


class Strict(Personal):
    """The rules of `Personal` and those for names and addresses."""

    def __init__(self, key: bytes) -> None:
        """`redactor.check` says whether the extra is there."""
        super().__init__(key)
        self.version = f"{super().version}+{people.VERSION}+{postal.VERSION}+{recognition.version()}"

    @property
    def families(self) -> tuple[Family, ...]:
        return _FAMILIES


_FAMILIES = (
    *FAMILIES,
    Family("person", f"{name_forms.SIFT}|{name_cues.SIFT}", people.found),
    Family("address", postal_forms.SIFT, postal.found),
)
