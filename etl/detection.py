"""Which adapter reads a file: told by content alone, with the scores that decided it."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from etl.adapter import Adapter, Sample, adapter_named, adapters
from etl.beside import lies_beside
from etl.conversation import Record
from etl.errors import DetectionError, SourceError
from etl.framing import LIMITS, Framed, Limits, frame
from etl.journal import log_beside
from etl.mapped import Mapped
from etl.opening import blocks
from etl.remote import path_of, read_errors
from etl.scanning import is_placeholder

if TYPE_CHECKING:
    from etl.mapping import Mapping

SAMPLE_RECORDS = 24
SAMPLE_BYTES = 2 << 20
HEAD_BYTES = 1 << 16
_BLANK = b"\xef\xbb\xbf \t\r\n\x00"
LEAST_SCORE = 0.3
"""Below it, no claim counts."""
LEAST_LEAD = 0.05
"""Two claims closer than this are a tie."""
_ROUNDING = 0.001

_SQLITE = b"SQLite format 3\x00"
_CREATE = b"CREATE TABLE "
_MOST_TABLES, _LONGEST_TABLE = 512, 1 << 12
"""How many tables are looked at, and bytes of what created each."""
_CREATED = re.compile(rb"table([^\x00]{1,128})\1.{0,4}\Z", re.DOTALL)
"""What stands before the text that created a table: its kind, its name twice, where it lies. A message that speaks of
tables has none of it.
"""
_MAGIC = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a media file"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a program"),
    (_SQLITE, "an SQLite database that no adapter reads"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x37\x7f\x06\x82", "the log of an SQLite database, read with it"),
    (b"\x37\x7f\x06\x83", "the log of an SQLite database, read with it"),
)
_NOTHING = re.compile(rb"\[\s*\]")
_OPENS = re.compile(
    rb"(?:\xef\xbb\xbf)?[ \t\r\n\x00]*"
    rb'(?:\{\s*(?:["}]|\Z)|\[\s*(?:["{\[\]]|true\b|false\b|null\b|-?\d+(?:\.\d+)?\s*(?:[,\]]|\Z)|\Z))'
)
"""How JSON begins; a bracket alone also opens text (`[Request interrupted …]`)."""
_LFS = b"version https://git-lfs.github.com/spec/"
_SPEECH = {
    "messages",
    "message",
    "conversation",
    "conversations",
    "role",
    "content",
    "prompt",
    "completion",
    "traj",
    "resourceSpans",
    "resourceLogs",
    "spans",
    "steps",
    "trajectory",
    "history",
    "events",
    "turns",
    "text",
    "input",
    "output",
    "inputs",
    "outputs",
    "trace",
    "observations",
    "runs",
    "body",
    "comment",
    "dialog",
    "dialogue",
    "instruction",
    "question",
    "answer",
    "query",
    "request",
    "response",
    "chosen",
    "transcript",
    "utterance",
}
"""Keys that a conversation has somewhere near its top; a single object without any of them is settings or metadata."""


_ASKS = frozenset({"prompt", "question", "instruction", "input", "problem", "problem_statement", "query", "task"})
_ANSWERS = (_SPEECH - _ASKS) | {
    "completion", "completions", "responses", "answers", "result", "results", "prediction", "teachers",
}  # fmt: skip
"""Keys of what is asked, and of what could be an answer or a transcript."""


class Skipped(SourceError):
    """The file is recognisably no conversation log."""


class Detection(NamedTuple):
    """The adapter that reads a file, every adapter's score, and one sentence on why."""

    adapter: Adapter
    scores: dict[str, float]
    why: str
    sample: Sample | None = None
    """What it was told from; None where the format was given."""
    framed: Iterator[Framed] | None = None
    """All that `frame` finds in the file, where its text was given."""


def detect(
    path: Path | str, format: str | None = None, member: str | None = None, mapping: Mapping | None = None, *,
    text: bytes | None = None, likely: str | None = None,
) -> Detection:  # fmt: skip
    """Which adapter reads the file; with a map, the one that reads by it, where the file holds records.

    `text` is all of a small file, by `small_text`. `likely` names an adapter that may well be the one: scores that do
    not matter if it is are then not told.

    Raises Skipped where the file is no conversation log, DetectionError where no adapter or more than one claims it,
    SourceError where it cannot be read.
    """
    uri = str(path) if member is None else f"{path}!{member}"
    if _is_special(path_of(path)):
        raise Skipped(f"{uri}: not a regular file")
    if format is not None:
        return Detection(adapter_named(format), {}, "given with --format")
    framed = None
    if text is None:
        found = sample(path_of(path), member, uri)
    else:
        rest, seen = frame(iter((text,))), list[Framed]()
        _take_beginning(rest, seen)
        found, framed = _sampled(uri, text, seen), chain(seen, rest)
    if mapping is not None:
        return _mapped(found, mapping)._replace(framed=framed)
    return choose(found, likely)._replace(sample=found, framed=framed)


def _mapped(sample: Sample, mapping: Mapping) -> Detection:
    if not sample.objects():
        _refuse(sample, {})
    return Detection(Mapped(mapping), {}, "given with --map")


def _is_special(path: Path) -> bool:
    """A pipe, a socket or a device: opening one may never return."""
    try:
        mode = path.stat().st_mode
    except read_errors():
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def sample(path: Path, member: str | None, uri: str, limits: Limits = LIMITS) -> Sample:
    """The first bytes and records of a file; more of it where its first record is longer than SAMPLE_BYTES."""
    size = SAMPLE_BYTES
    while True:
        found, read = _sample(path, member, uri, size)
        opens = found.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
        if found.values or not opens or read < size or size >= limits.record_bytes:
            return found
        size = min(size * 8, limits.record_bytes)


def _sample(path: Path, member: str | None, uri: str, size: int) -> tuple[Sample, int]:
    """What the first `size` bytes hold, and how many there were."""
    head: list[bytes] = []
    framed: list[Framed] = []
    try:
        _take_beginning(frame(_first(blocks(path, member), head, size), Limits()), framed)
    except SourceError:
        if not any(isinstance(each, Record) for each in framed):
            raise
    first = b"".join(head)
    logged = _logged(path) if member is None and first.startswith(_SQLITE) else b""
    return _sampled(uri, first + logged, framed), len(first)


def _logged(path: Path) -> bytes:
    """The beginning of the log beside a database in use: where that is young, its tables are nowhere else yet."""
    log = log_beside(path)
    if log is None:
        return b""
    try:
        with log.open("rb") as file:
            return file.read(SAMPLE_BYTES)
    except OSError:
        return b""


def _take_beginning(framed: Iterator[Framed], seen: list[Framed]) -> None:
    """Put into `seen` what a sample is made of, as far as it comes."""
    records = 0
    for each in islice(framed, SAMPLE_RECORDS * 4):
        seen.append(each)
        records += isinstance(each, Record)
        if records >= SAMPLE_RECORDS:
            break


def _sampled(uri: str, first: bytes, framed: Sequence[Framed]) -> Sample:
    records = [each for each in framed if isinstance(each, Record)]
    array = first.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[" and not (records and records[0].raw[:1] == b"[")
    return Sample(uri, _head(first), [record.value for record in records], array)


def _head(first: bytes) -> bytes:
    """The first bytes; of a database, what creates its tables, too, and in them nothing else that looks so.

    Migrations move that far from a database's beginning, and messages speak of tables.
    """
    head = first[:HEAD_BYTES]
    if not head.startswith(_SQLITE):
        return head
    places = (found.start() for found in re.finditer(_CREATE, first))
    rows = islice((at for at in places if _CREATED.search(first, max(0, at - 270), at)), _MOST_TABLES)
    made = (first[at : at + _LONGEST_TABLE].partition(b"\x00")[0] for at in rows)
    return b"\n".join([head.replace(_CREATE, _CREATE.lower()), *made])


def _first(source: Iterator[bytes], head: list[bytes], size: int) -> Iterator[bytes]:
    """The blocks up to `size` bytes, at a line end where there is one, so that the cut makes no torn record of its
    own. A long blank beginning is passed over: nothing can be told from it.
    """
    read = 0
    for block in source:
        if not read:
            text = block.lstrip(_BLANK)
            if len(block) - len(text) > HEAD_BYTES:
                block = text
            if not text:
                head[:] = [block]
                continue
        head.append(block)
        read += len(block)
        if read >= size:
            cut = block.rfind(b"\n")
            yield block if cut < 0 else block[: cut + 1]
            return
        yield block


def choose(sample: Sample, likely: str | None = None) -> Detection:
    """The adapter with the clearly highest score; with a `likely` one, scores too low to matter beside it are 0."""
    scores = _scores(sample, likely)
    ranked = sorted(((score, name) for name, score in scores.items() if score >= LEAST_SCORE), reverse=True)
    if not ranked:
        _refuse(sample, scores)
    if len(ranked) > 1 and ranked[0][0] - ranked[1][0] < LEAST_LEAD:
        names = ", ".join(f"{name} {score:.2f}" for score, name in ranked if ranked[0][0] - score < LEAST_LEAD)
        raise DetectionError(f"{sample.uri}: more than one format claims it ({names}); name one with --format")
    score, name = ranked[0]
    return Detection(adapters()[name], scores, f"{name} scores {score:.2f}, {_second(ranked)}")


def _scores(sample: Sample, likely: str | None) -> dict[str, float]:
    """What each adapter says of a sample. Where the likely one is sure, a few records show of most that they are not:
    of those that score by the share of records.
    """
    found, count = adapters(), len(sample.values)
    sure = found[likely].score(sample) if likely in found else 0.0
    least = sure - LEAST_LEAD - 2 * _ROUNDING
    few = int(count * (1 - least)) + 1
    if sure < LEAST_SCORE or few >= count:
        return {name: round(adapter.score(sample), 3) for name, adapter in found.items()}
    start = sample._replace(values=sample.values[:few])
    scores = {}
    for name, adapter in found.items():
        if name == likely:
            scores[name] = round(sure, 3)
            continue
        most = (adapter.share(start) + count - few) / count
        scores[name] = 0.0 if most < least else round(adapter.score(sample), 3)
    return scores


def _second(ranked: list[tuple[float, str]]) -> str:
    return f"next is {ranked[1][1]} with {ranked[1][0]:.2f}" if len(ranked) > 1 else "no other format claims it"


def _refuse(sample: Sample, scores: dict[str, float]) -> None:
    head = sample.head
    bare = head.strip(b" \t\r\n\x00\xef\xbb\xbf")
    if not bare:
        raise Skipped(f"{sample.uri}: empty")
    if _NOTHING.fullmatch(bare):
        raise Skipped(f"{sample.uri}: an empty list")
    if head.startswith(_LFS):
        raise DetectionError(
            f"{sample.uri}: a Git LFS pointer, not the file itself; run `git lfs pull` and ingest again"
        )
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise Skipped(f"{sample.uri}: {what}")
    if (known := lies_beside(sample.values)) is not None:
        raise Skipped(f"{sample.uri}: {known}")
    if not sample.values and _OPENS.match(head):
        raise DetectionError(
            f"{sample.uri}: begins like JSON, but holds no whole record (cut off?); "
            "name its format with --format to keep what there is as a reject"
        )
    if not any(isinstance(value, (dict, list)) for value in sample.values):
        lines = head.split(b"\n", 4)[:4]
        if all(is_placeholder(line) for line in lines if line):
            raise Skipped(f"{sample.uri}: placeholders stand in the place of its rows; get the file itself")
        kind = "binary data" if b"\x00" in head else "text without JSON records"
        raise Skipped(f"{sample.uri}: {kind}; no adapter reads it")
    if len(sample.values) == 1 and not sample.array and not _speaks(sample.values[0]):
        raise Skipped(f"{sample.uri}: a single JSON object without messages (settings, metadata or metrics)")
    if len(sample.values) == 1 and _describes_a_set(sample.values[0]):
        raise Skipped(f"{sample.uri}: the description of a data set (its columns and splits), not its rows")
    if all(isinstance(value, dict) and _only_asks(value) for value in sample.values):
        raise Skipped(f"{sample.uri}: tasks or prompts without an answer of a model")
    if all(_is_flat(value) and not _speaks(value) for value in sample.values):
        raise Skipped(
            f"{sample.uri}: rows of plain values, none that a conversation has (metrics, ids); where they hold one, "
            "say which column is what with --map, see `etl formats --map-example`"
        )
    claims = [f"{name} {score:.2f}" for name, score in sorted(scores.items(), key=lambda item: -item[1])[:3] if score]
    nearest = f"nearest: {', '.join(claims)}" if claims else "no adapter scores it above 0"
    raise DetectionError(
        f"{sample.uri}: no known conversation format ({nearest}); name one with --format, see `etl formats`, or say "
        "which column is what with --map"
    )


def _is_flat(value: object) -> bool:
    """A row of plain values; one that names its type may be an event of a log that is not known."""
    if not isinstance(value, dict) or "type" in value:
        return False
    return not any(isinstance(item, (dict, list)) for item in value.values())


def _describes_a_set(value: object, depth: int = 1) -> bool:
    """Whether an object is what Hugging Face keeps beside a data set, or several of them by name."""
    if not isinstance(value, dict) or not value:
        return False
    features = value.get("features")
    if isinstance(features, (dict, list)):
        return not value.keys() & (_ANSWERS | {"messages"})
    return depth > 0 and all(_describes_a_set(item, depth - 1) for item in value.values())


def _only_asks(value: dict[str, object]) -> bool:
    """Whether a record asks something and holds nothing that could be an answer to it."""
    return bool(value.keys() & _ASKS) and not value.keys() & _ANSWERS


def _speaks(value: object, depth: int = 4) -> bool:
    """Whether any key near the top is one that a conversation has."""
    if isinstance(value, dict):
        return bool(_SPEECH & value.keys()) or (depth > 0 and any(_speaks(item, depth - 1) for item in value.values()))
    if isinstance(value, list):
        return depth > 0 and any(_speaks(item, depth - 1) for item in value[:8])
    return False
