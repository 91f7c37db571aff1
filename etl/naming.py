"""What a lake calls the files that it is told of: by their own names, without what redaction takes out of these.

Rows, rejects, events, `sources` and the report all say the name of here, and a file is known by it the next night. It
is asked for only where a file is to be read: one that lies in the lake under its own name needs no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from etl.keys import lake_key
from etl.lake import Lake
from etl.policies import KEYED
from etl.walk import FoundFile

if TYPE_CHECKING:
    from etl.redact import Redactor
    from etl.settings import Settings


class Named(NamedTuple):
    """A file with the name that the lake knows it by."""

    file: FoundFile
    former: tuple[str, ...] = ()
    """Names that it may have had there before: under a milder policy, and by an etl that told no names apart."""


class Names:
    """The names of files in one lake, under the policy of a run."""

    def __init__(self, lake: Lake, settings: Settings) -> None:
        self._lake = lake
        self._settings = settings

    def of(self, files: Sequence[FoundFile]) -> list[Named]:
        """Each file with its name."""
        if self._settings.redact == "none":
            return [Named(file) for file in files]
        redactor = self._redactor
        changed = redactor.uris([file.uri for file in files])
        return [
            Named(file._replace(uri=name), (file.uri, redactor.text(file.uri)[0]))
            if (name := changed.get(file.uri)) is not None
            else Named(file)
            for file in files
        ]

    @cached_property
    def _redactor(self) -> Redactor:
        from etl.redact import Redactor  # a night without news needs no rules

        settings = keyed(self._lake, self._settings)
        return Redactor(settings.redact, settings.key, lambda: _key(self._lake, settings))


def keyed(lake: Lake, settings: Settings) -> Settings:
    """The settings with the key of the lake's pseudonyms, where the policy needs one."""
    if settings.redact not in KEYED or settings.key is not None:
        return settings
    return settings._replace(key=_key(lake, settings))


def _key(lake: Lake, settings: Settings) -> bytes:
    return lake_key(lake.id, make=not settings.dry_run)
