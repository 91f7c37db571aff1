"""Contamination: what shares a task, a prompt or an n-gram of words with a held-out set, which may be a lake or a file.

System prompts and tool definitions are not compared: an agent has the same in training and in its test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from etl.errors import UsageError
from etl.exports.near import words
from etl.framing import LIMITS, Broken, frame
from etl.opening import blocks
from etl.query import connect

_LEAST_WORDS = 5
"""A text shorter than an n-gram counts as one, whole, from this many words on: two strangers may both say "hi"."""


class HeldOut:
    """The n-grams (as 64-bit hashes) and the tasks of held-out sets."""

    def __init__(self, paths: Iterable[str], ngram: int) -> None:
        self._ngram = ngram
        self._grams: set[bytes] = set()
        self._tasks: set[str] = set()
        for path in paths:
            if (Path(path) / "rollouts" / "_delta_log").is_dir():
                self._add_lake(path)
            elif Path(path).is_file():
                self._add_file(Path(path))
            else:
                raise UsageError(f"--held-out {path}: neither a lake nor a file")

    def shares(self, task_id: str | None, texts: Iterable[str]) -> bool:
        """Whether a row of that task with these texts must not be trained."""
        if task_id is not None and task_id in self._tasks:
            return True
        return any(gram in self._grams for text in texts for gram in self._of(text))

    def _of(self, text: str) -> Iterator[bytes]:
        found = words(text)
        if len(found) < self._ngram:
            if len(found) >= _LEAST_WORDS:
                yield _hashed(found)
            return
        for at in range(len(found) - self._ngram + 1):
            yield _hashed(found[at : at + self._ngram])

    def _add_lake(self, path: str) -> None:
        with connect(path) as connection:
            tasks = connection.execute("SELECT DISTINCT task_id FROM rollouts_stored WHERE task_id IS NOT NULL")
            self._tasks.update(str(row[0]) for row in tasks.fetchall())
            said = connection.execute("SELECT content FROM messages WHERE role IN ('user', 'assistant')")
            while portion := said.fetchmany(2048):
                for (text,) in portion:
                    self._grams.update(self._of(text))

    def _add_file(self, path: Path) -> None:
        """Every text in the records of a file, whatever its form; of one that is no JSON every line."""
        for record in frame(blocks(path), LIMITS):
            if isinstance(record, Broken):
                texts: Iterable[str] = record.raw.decode("utf-8", "replace").splitlines()
            else:
                texts = _texts(record.value)
            for text in texts:
                self._grams.update(self._of(text))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in ("tools", "system") and value.get("role") not in ("system", "developer"):
                yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _hashed(found: list[str]) -> bytes:
    return blake2b(" ".join(found).encode(), digest_size=8).digest()
