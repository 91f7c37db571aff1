"""The contract of an adapter, and the list of those there are.

An adapter is one file in `etl/adapters/` with one subclass of `Adapter`. There is nothing to register: every module
of that package whose name does not start with `_` is one. The contract tests (`tests/contract/`) run by themselves on
all of them.
"""

from __future__ import annotations

import abc
import functools
import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import etl.adapters
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.errors import UsageError
from etl.framing import Framed, Limits, frame

if TYPE_CHECKING:
    from etl.mapping import Mapping as Map


class Sample(NamedTuple):
    """What detection sees of a file: the first bytes, and the first records where it is JSON (else none)."""

    uri: str
    head: bytes
    values: Sequence[Any]
    """The first JSON values, decoded; for one top-level array its first elements, and `array` is true."""
    array: bool = False

    def objects(self) -> list[dict[str, Any]]:
        """The values that are JSON objects."""
        return [value for value in self.values if isinstance(value, dict)]


class FileContext(NamedTuple):
    """The file a parse is about. Names and folders may fill an empty `model`, never an identity."""

    uri: str
    path: Path | None = None
    """Where it lies, when it is a local file and no archive member."""
    begins: bool = True
    """False where the records are a later part of the file (see `Adapter.lines_apart`)."""


class Adapter(abc.ABC):
    """Reads one format. Stateless: one instance serves all files, also at the same time."""

    name: ClassVar[str]
    """Snake case, the format's own name."""
    version: ClassVar[int] = 1
    """Raise it when the same input gives other rows: files read by an older version then count as stale."""
    about: ClassVar[str]
    """One line for `etl formats`: whose logs these are, and in which shape."""
    spans_files: ClassVar[bool] = False
    """True where a conversation can lie in several files: `parse` yields fragments, `assemble` makes rows of them."""
    splits: ClassVar[bool] = False
    """True where one framed record holds many units (spans of a batch): the outcomes then count the units."""
    scores_share: ClassVar[bool] = False
    """True where `score` is a mean over all values of the sample, to which each adds 0 to 1 (so that the first few of
    many values tell how high it can be at most). False to be safe.
    """
    ignores: ClassVar[dict[str, str]] = {}
    """Every rule that `Ignored` may name, with what it leaves out and why."""

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """The records of a file's decompressed blocks: JSON in any layout.

        An adapter of a container that is no JSON (YAML, Markdown, SQLite) overrides it; what needs a file to open
        comes from `opening.spooled`. What cannot be read becomes `Broken` with its place, never an exception other
        than SourceError, and `limits` are kept. The `raw` of a record that may be rejected must be readable by
        `records` alone (JSON or a piece of the container); a `Fragment` whose raw is no JSON must carry a `payload`.
        Detection sees such a file by `Sample.head`.
        """
        return frame(blocks, limits)

    def lines_apart(self, sample: Sample) -> bool:
        """Whether each line of such a file gives in `parse` alone what it gives among the others; False to be safe.

        Then a large file of lines is read in parts by several processes, and one that has grown from where it ended.
        True promises: the records are those of `frame`; `parse` keeps nothing from one record to the next (what the
        file's first record decides is decided for all of `sample`, and `FileContext.begins` tells where that is not
        the first); it gives all outcomes of a record before it asks for the next one; a row without a `native_id` is
        the only one of its record, which is its `records`. Compressed files and values that span lines are never
        parted.
        """
        return False

    @abc.abstractmethod
    def score(self, sample: Sample) -> float:
        """How sure it is, 0 to 1, that a file is of its format; by content alone. 0: not mine. 1: nothing else looks
        like it.
        """

    def share(self, start: Sample) -> float:
        """At most how much the first values of a sample, 0 to 1 each, add to the score of all of it, which is then no
        more than their mean. All of them, where `scores_share` does not say so; who knows better overrides it.
        """
        return self.score(start) * len(start.values) if self.scores_share else len(start.values)

    @abc.abstractmethod
    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """Account for every record of one file: each is in a Conversation or Fragment, Unusable, or Ignored.

        Never raises on input and never drops a record: the run checks the sum.
        """

    def is_whole(self, family: Sequence[StoredEvent]) -> bool:
        """Whether nothing shows that more of a family is to come. A guess that spares work; no row depends on it."""
        return True

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """Conversations from all stored events of one family (one key, or several that share a record). Pure in the
        set.
        """
        raise NotImplementedError(f"{self.name} does not span files")


@functools.cache
def adapters() -> dict[str, Adapter]:
    """Every adapter by name, sorted. UsageError where one of `ETL_ADAPTERS` cannot be loaded."""
    found: dict[str, Adapter] = {}
    own, *others = etl.adapters.__path__
    for folder in others:
        if not Path(folder).is_dir():
            raise UsageError(f"ETL_ADAPTERS names {folder}, which is no folder")
    for folder in (own, *others):
        for module_info in pkgutil.iter_modules([folder]):
            if module_info.name.startswith("_"):
                continue
            try:
                found.update(_adapters_of(module_info.name))
            except Exception as error:
                if folder == own:
                    raise
                why = f"{type(error).__name__}: {error}"
                raise UsageError(f"the adapter {Path(folder, module_info.name)}.py cannot be loaded: {why}") from error
    return dict(sorted(found.items()))


def _adapters_of(module_name: str) -> Iterator[tuple[str, Adapter]]:
    module = importlib.import_module(f"{etl.adapters.__name__}.{module_name}")
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__ and issubclass(value, Adapter):
            yield value.name, value()


def adapter_named(name: str, mapping: Map | None = None) -> Adapter:
    """The adapter of that name, the one of maps with the map of the run; UsageError lists the known ones otherwise."""
    if name == "mapped":
        from etl.mapped import Mapped

        return Mapped(mapping)
    known = adapters()
    if name not in known:
        raise UsageError(f"no format is called {name!r}; known formats: {', '.join(known)}")
    return known[name]
