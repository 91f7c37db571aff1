"""The contract of an export target, and the list of those there are.

A target is one file in `etl/exports/targets/` with one subclass of `Target`. There is nothing to register: every module
of that package whose name does not start with `_` is one.
"""

from __future__ import annotations

import abc
import functools
import importlib
import pkgutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import etl.exports.targets
from etl.errors import UsageError
from etl.exports.dialogue import Dialogue

if TYPE_CHECKING:
    import pyarrow as pa

    from etl.exports.tokenizing import Tokenizer

Unit = Literal["row", "pair", "task"]


class Tally(NamedTuple):
    """What is known of all scored attempts at a task."""

    task_id: str | None
    n: int
    """Scored attempts among the rows that `--where` selects."""
    passed: int
    mean_reward: float | None


class Example(NamedTuple):
    """What one record of a file is made of."""

    dialogues: Sequence[Dialogue]
    """One, or for a pair the chosen and the rejected attempt."""
    tally: Tally
    scores: Sequence[float | None]
    """Of each dialogue: its reward, or else what a preference says."""
    ground_truth: str | None
    """What `--ground-truth` gives for the (first) row."""
    split: str
    position: int
    """Position in the split, from 0."""
    pass_at: float
    """The least reward of a pass."""
    tokenizer: Tokenizer | None

    @property
    def dialogue(self) -> Dialogue:
        return self.dialogues[0]


class File(NamedTuple):
    """A data file of an export."""

    name: str
    split: str
    rows: int
    bytes: int
    sha256: str


class Target(abc.ABC):
    """One kind of file that a trainer reads. Stateless."""

    name: ClassVar[str]
    """As the command line says it."""
    aliases: ClassVar[tuple[str, ...]] = ()
    about: ClassVar[str]
    """One line: which trainers read it, and what a record is."""
    unit: ClassVar[Unit] = "row"
    """What a record is made of: a row, a pair of attempts, or a task."""
    imitates: ClassVar[bool] = True
    """True where the trainer learns to say what the row says: rows with planted mistakes are left out."""
    scored: ClassVar[bool] = False
    """True where a record needs a reward (or a logged preference)."""
    templated: ClassVar[bool] = True
    """False where roles are kept as logged; see `Policy.templated`."""
    reasoning: ClassVar[bool] = True
    """Whether the model's reasoning goes along unless somebody says otherwise."""
    whole: ClassVar[bool] = False
    """True for interchange of rows: nothing is repaired, and only what may be in no file is left out."""
    answers: ClassVar[bool] = False
    """True where a record carries what `--ground-truth` gives."""
    columns: ClassVar[tuple[str, ...]] = ()
    """Columns of `rollouts` it reads beyond those of every export."""
    json_columns: ClassVar[frozenset[str]] = frozenset()
    """Dotted paths of columns of JSON text that the dataset card declares as objects."""
    stem: ClassVar[str] = ""
    """Name of the data files where readers want one (`traces`); else that of the split."""

    def schema(self) -> pa.Schema | None:
        """The Arrow schema of Parquet files; None for JSON Lines."""
        return None

    @abc.abstractmethod
    def record(self, example: Example) -> dict[str, Any]:
        """The record; raises Dropped where the form cannot hold the row. Pure: it is called once to examine, once to
        write.
        """

    def companions(self, files: Sequence[File]) -> dict[str, str]:
        """Other files that the trainer wants beside the data: name → text."""
        return {}


@functools.cache
def targets() -> dict[str, Target]:
    """Every target by name, sorted."""
    found: dict[str, Target] = {}
    for info in pkgutil.iter_modules(etl.exports.targets.__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{etl.exports.targets.__name__}.{info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Target) and value.__module__ == module.__name__:
                found[value.name] = value()
    return dict(sorted(found.items()))


def target_named(name: str) -> Target:
    """The target of that name or alias; UsageError lists the known ones otherwise."""
    known = targets()
    for target in known.values():
        if name in (target.name, *target.aliases):
            return target
    raise UsageError(f"no target is called {name!r}; known targets: {', '.join(known)}")
