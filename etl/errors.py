"""Every error the product raises on purpose, grouped by what the caller may do about it.

EtlError
├── UsageError        the call is wrong; say it differently (exit 2)
├── SourceError       one file cannot be read; the run goes on, the file is listed as failed
│   └── DetectionError    no adapter, or more than one, claims it; name one with `--format`
├── LakeError         the lake cannot be read or written; nothing half-written is left (exit 1)
│   └── ConflictError     somebody else committed first; the commit is tried again
└── MissingExtraError a package that is an extra is needed; the message names the `pip install`
"""

from __future__ import annotations


class EtlError(Exception):
    """Root of the tree. The message is one line: what, where, and what to do."""


class UsageError(EtlError):
    """The call itself is wrong."""


class SourceError(EtlError):
    """One source file cannot be read."""


class DetectionError(SourceError):
    """No adapter, or more than one, claims a file."""


class LakeError(EtlError):
    """The lake cannot be read or written."""


class ConflictError(LakeError):
    """Another writer committed first."""


class MissingExtraError(EtlError):
    """A package that only an extra installs is needed."""


def no_lake(root: object) -> LakeError:
    """There is no lake in that folder."""
    return LakeError(f"there is no lake at {root}; make one with: etl ingest PATH --lake {root}")
