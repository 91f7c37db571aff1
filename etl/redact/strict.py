"""The policy `strict`: all of personal data, and names of people and postal addresses (the extra `ner`)."""

from __future__ import annotations

from etl.redact import name_cues, name_forms, people, postal, postal_forms, recognition
from etl.redact.families import Family
from etl.redact.personal import FAMILIES, Personal
from etl.redact.sieve import matching
from etl.redact.texts import Texts


def version() -> str:
    """What the findings hang on; MissingExtraError where the extra is not there."""
    return f"{people.VERSION}+{postal.VERSION}+{recognition.version()}"


class Strict(Personal):
    """The rules of `Personal` and those for names and addresses. `check_policy` says whether the extra is there."""

    @property
    def families(self) -> tuple[Family, ...]:
        return (*FAMILIES, *_NAMES_AND_ADDRESSES)

    def suspects(self, texts: Texts) -> dict[int, frozenset[str]]:
        """As `Personal.suspects`. RE2 is asked for names and addresses: what looks like them is nearly everywhere."""
        found = super().suspects(texts)
        for family in _NAMES_AND_ADDRESSES:
            for place in matching(texts.padded, family.suspect):
                found[place] = found.get(place, frozenset()) | {family.name}
        return found


_NAMES_AND_ADDRESSES = (
    Family("person", f"{name_forms.SIFT}|{name_cues.SIFT}", people.found),
    Family("address", postal_forms.SIFT, postal.found),
)
