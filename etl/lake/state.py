"""What tells one state of a lake from any other, asked of the file system alone: no library has to be loaded for it.

The newest entry of a Delta log names its commit by chance, so that its digest stands for all that the table says. With
the names of the data files that lie in the tables' folders it tells whether anybody has written since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from etl.lake.history import commit_of
from etl.lake.migrations import present_version
from etl.lake.place import Place
from etl.shipped import schema_text
from etl.tables import PARTITIONS

State = dict[str, Any]
"""As it is noted in JSON."""


def state_of(place: Place, versions: Mapping[str, int], live: Mapping[str, Collection[str]]) -> State | None:
    """The state of a lake at these versions of its tables, with these data files; None where it is not as they say, or
    not as a run would leave it.
    """
    logs = {table: place.read_log(table, version) for table, version in versions.items()}
    if any(sorted(live[table]) != list(place.data_files(table)) for table in PARTITIONS):
        return None
    return {
        "version": present_version(),
        "tables": {table: [versions[table], _digest(text or "")] for table, text in logs.items()},
        "files": _files(place),
    }


def is_in_state(place: Place, state: State) -> bool:
    """Whether the lake is in that state still, and nothing is left to tidy up or to complete."""
    return (
        state["version"] == present_version()
        and not any(place.staging.iterdir())
        and all(_is_newest(place, table, *state["tables"][table]) for table in PARTITIONS)
        and _is_complete(place)
        and _files(place) == state["files"]
    )


def is_all_of(place: Place, batch_id: str, since: Mapping[str, int], until: Mapping[str, int]) -> bool:
    """Whether nobody but that batch has committed between these versions of the tables."""
    texts = (place.read_log(table, version) for table in since for version in range(since[table] + 1, until[table] + 1))
    return all(text is not None and commit_of(0, text).batch_id == batch_id for text in texts)


def _is_newest(place: Place, table: str, version: int, digest: str) -> bool:
    text = place.read_log(table, version)
    return text is not None and _digest(text) == digest and not place.log_file(table, version + 1).exists()


def _is_complete(place: Place) -> bool:
    """Whether there is all that lies beside the tables."""
    return (
        all(place.checkpoint_pointer(table).exists() for table in PARTITIONS)
        and (place.root / "README.md").exists()
        and (place.root / "views.sql").read_text(encoding="utf-8") == schema_text("views.sql")
    )


def _files(place: Place) -> str:
    return _digest("\n".join(f"{table}/{path}" for table in PARTITIONS for path in place.data_files(table)))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
