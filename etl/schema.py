"""The row, once: every table of the lake as pydantic models, from which everything else is derived.

Arrow schemas, JSON Schema, SQL and the column reference in `schemas/` are made from these models by
`python -m etl.derive`; a test fails when they drift. JSON is stored as text, timestamps are UTC microseconds.
"""

from __future__ import annotations

import ast
import datetime as dt
import functools
import inspect
import types
import typing
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from etl.tables import PARTITIONS

SCHEMA_VERSION = "rollout.v1"
"""Written into every row; changes only when a column changes its name, type or meaning."""

UNKNOWN_DAY = "unknown"
"""The `day` of a conversation whose start nobody logged."""


class _Storage(NamedTuple):
    """How a Python annotation is stored where its plain type does not say it."""

    arrow: pa.DataType


Int32 = Annotated[int, _Storage(pa.int32())]
Int64 = Annotated[int, _Storage(pa.int64())]
Int8 = Annotated[int, _Storage(pa.int8())]
Float32 = Annotated[float, _Storage(pa.float32())]
PartitionKey = Annotated[str, _Storage(pa.dictionary(pa.int32(), pa.string()))]
"""A Hive partition key that also stands in the file; the one type that is dictionary-encoded."""

Role = Literal["system", "developer", "user", "assistant", "tool"]
StepStatus = Literal["ok", "error", "missing", "cancelled"]
Actor = Literal["agent", "user", "server"]
Condition = Literal[
    "success",
    "timeout",
    "malformed_result",
    "stale_result",
    "permission_denied",
    "not_found",
    "already_done",
    "rate_limited",
    "invalid_arguments",
    "error",
]
RolloutStatus = Literal["completed", "truncated", "aborted", "error", "unknown"]
JudgmentKind = Literal["rule", "judge", "reward_model", "human", "marker"]
FileState = Literal["done", "growing", "failed", "skipped"]


class Record(BaseModel):
    """Base of every stored model: unknown fields are an error, the text below a field is its description.

    Pydantic would look for these texts when the class is made, which takes a tenth of the start of every command.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        describe(cls)
        return handler(source)


class Function(Record):
    """The function that a call names."""

    name: str
    """Name of the tool."""
    arguments: str
    """Text of a JSON object, always; `{}` where the log's own text was not an object (see `steps.raw_arguments`)."""


class ToolCallRecord(Record):
    """One call in an assistant (or, in user-side tool use, a user) message."""

    id: str
    """Unique within the row; a reused id becomes `x#2`, an absent one is generated as `call_N`."""
    type: str
    """`function`, always."""
    function: Function
    """The function called."""


class MessageRecord(Record):
    """One message, directly renderable by a chat template."""

    role: Role
    """Who speaks: system, developer, user, assistant or tool."""
    content: str
    """The plain text, never null; other parts (images, files) are in `message_info.parts`."""
    reasoning_content: str | None = None
    """The model's readable reasoning, apart from what it said."""
    tool_calls: list[ToolCallRecord] | None = None
    """The calls this message makes; null and never empty."""
    tool_call_id: str | None = None
    """On a tool message: the `id` of the call it answers; null when it answers none (an orphan)."""
    name: str | None = None
    """Name of the speaker, or on a tool message of the tool."""


class MessageInfo(Record):
    """What a chat template must not see of the message at the same position of `messages`."""

    id: str | None = None
    """The source's own id of the message."""
    at: dt.datetime | None = None
    """When it was said."""
    model: str | None = None
    """The model that said it."""
    finish_reason: str | None = None
    """Why the model stopped, in the source's own word."""
    input_tokens: Int64 | None = None
    """Tokens read for this message, cached reads and writes included."""
    output_tokens: Int64 | None = None
    """Tokens written for this message, reasoning included."""
    inherited: bool = False
    """True where another row owns this message (a fork, a resume copy, a regeneration): never train on it here."""
    synthetic: bool = False
    """True where a harness, not a person or a model, wrote it."""
    parts: str | None = None
    """JSON array of the non-text content: images, audio, files, citations, encrypted reasoning."""
    extra: str | None = None
    """JSON object of every key of the source message that no column holds."""


class Step(Record):
    """One tool call with what came back, in call order."""

    call_id: str
    """The `tool_calls[].id` of the call."""
    tool: str
    """Name of the tool."""
    actor: Actor
    """Who called: agent, user (a simulated user's own tools) or server (ran at the model's provider)."""
    arguments: str
    """Text of a JSON object, as in the message."""
    message_index: Int32
    """Position in `messages` (from 0) of the message that makes the call."""
    result_index: Int32 | None = None
    """Position in `messages` (from 0) of the tool message that answers it; null when nothing did."""
    status: StepStatus
    """ok, error, missing (no result was logged) or cancelled (never executed)."""
    condition: Condition | None = None
    """What the call met, where an error flag, a status code or a declared pattern says so; null is unclassified."""
    error: str | None = None
    """The error text, when the status is error or cancelled."""
    raw_arguments: str | None = None
    """The log's own argument text, only where it was not a JSON object."""
    at: dt.datetime | None = None
    """When the call was made."""
    duration_ms: float | None = None
    """How long it took, in milliseconds, where logged."""


class Judgment(Record):
    """One verdict or measurement on the row."""

    name: str
    """Name of the check, metric or judge."""
    kind: JudgmentKind
    """rule, judge, reward_model, human or marker."""
    value: float | None = None
    """Its number, where it has one."""
    label: str | None = None
    """Its word, where it has one."""
    status: str | None = None
    """What became of the judging itself (`ok`, `error`, …), in the source's own word; `labelled` where it was given in
    the lake."""
    reason: str | None = None
    """The explanation given."""


class Scenario(Record):
    """The intended cell of a simulated row; for traffic only what a labeller wrote."""

    tool: str | None = None
    """The tool that the ask is about."""
    tool_condition: str | None = None
    """What the tool was made to do."""
    world_state: str | None = None
    """The state of the thing asked about."""
    stance: str | None = None
    """How the person asks."""
    history: str | None = None
    """What happened before."""
    rule: str | None = None
    """The rule of the system prompt that is put to the test."""
    length: str | None = None
    """How long the conversation is meant to be."""


class Usage(Record):
    """Tokens and money, each model response of the agent counted once; null where not logged."""

    input_tokens: Int64 | None = None
    """Tokens read, cached reads and cache writes included."""
    output_tokens: Int64 | None = None
    """Tokens written, reasoning included."""
    cached_tokens: Int64 | None = None
    """Of the input: read from a cache."""
    cache_write_tokens: Int64 | None = None
    """Of the input: written to a cache."""
    reasoning_tokens: Int64 | None = None
    """Of the output: reasoning."""
    cost_usd: float | None = None
    """Cost in US dollars, as logged."""


class Rollout(Record):
    """One row per attempt: what was asked, every call and what came back, what was finally said."""

    rollout_id: str
    """`r_` and 128 bits of BLAKE2b over source, run, key, branch and attempt, from values before redaction."""
    task_id: str | None = None
    """The task this is an attempt at: equal for all attempts, over files and nights."""
    group_id: str | None = None
    """The set of repeats this belongs to, only where the log declares repeats."""
    sample_index: Int32 | None = None
    """Which attempt within the group, from 0."""
    origin: Literal["traffic", "simulation"]
    """traffic (parsed from a log) or simulation (written by the simulator)."""
    adapter: str
    """Which adapter wrote the row."""
    conversation_id: str | None = None
    """The source's own key of the conversation."""
    parent_id: str | None = None
    """`rollout_id` of the row that this sub-agent, branch or continuation came from."""
    prompt: str | None = None
    """The first thing a person asked: never a harness line, a compaction summary or a demonstration."""
    messages: list[MessageRecord]
    """The whole transcript in order, system prompt first."""
    message_info: list[MessageInfo]
    """Same length as `messages`: ids, times, models, tokens, other content, unmodelled keys."""
    prompt_len: Int32
    """Messages before the first turn of the agent that this row owns: `messages[:prompt_len]` is the prompt."""
    steps: list[Step]
    """Every tool call in call order, with the place of its result."""
    final_text: str | None = None
    """Text of the last assistant message of the main thread; empty when it holds only calls, null if none."""
    tools: str | None = None
    """JSON array of the tool definitions offered, OpenAI function form; null when not logged."""
    status: RolloutStatus
    """How the conversation ended: completed, truncated, aborted, error or unknown."""
    finish_reason: str | None = None
    """Why it ended, in the source's own word."""
    error: str | None = None
    """The error that ended it."""
    reward: float | None = None
    """The reward as logged, any number; null when nobody scored it, never 0."""
    rewards: str | None = None
    """JSON object of the named components of the reward."""
    judgments: list[Judgment]
    """Every verdict and measurement on the row."""
    scenario: Scenario | None = None
    """The intended cell of a simulated row."""
    faults: str | None = None
    """Simulation: JSON of the faults that were scheduled. Null for traffic."""
    seed: Int64 | None = None
    """Simulation: the seed of the row. Null for traffic."""
    seeded: list[str] | None = None
    """Simulation: the mistakes planted on purpose, `[]` for a row that behaves. Null for traffic."""
    model: str | None = None
    """The model that acted; where it changed, the last one (each message has its own in `message_info.model`)."""
    provider: str | None = None
    """Who served the model."""
    policy_version: str | None = None
    """Version of the policy (checkpoint, prompt, deployment) that acted."""
    agent: str | None = None
    """Name of the agent or harness."""
    started_at: dt.datetime | None = None
    """When the first message was said."""
    ended_at: dt.datetime | None = None
    """When the last thing happened."""
    usage: Usage | None = None
    """Tokens and money of the agent's own model responses."""
    token_ids: list[Int32] | None = None
    """Token ids of the whole row, only when logged."""
    loss_mask: list[Int8] | None = None
    """1 where a token was sampled by the policy, only when logged; same length as `token_ids`."""
    logprobs: list[Float32] | None = None
    """Natural-log probability of each token, only when logged; same length as `token_ids`."""
    n_turns: Int32
    """User turns."""
    n_steps: Int32
    """Tool calls."""
    flags: list[str]
    """What a careful reader should know, sorted; `schemas/rollout.v1.md` lists them."""
    redactions: str | None = None
    """JSON object: redaction rule → how often it replaced something; null when nothing was."""
    extra: str | None = None
    """JSON object of every top-level field of the source that no column holds."""
    n_records: Int32
    """Source records seen for this row, ignored ones included."""
    content_hash: str
    """128 bits of BLAKE2b over the canonical transcript: exact duplicates share it."""
    row_hash: str
    """128 bits of BLAKE2b over everything the row says, lineage columns and labels given in the lake aside."""
    source_uri: str
    """Absolute path or URI of the file with the first record, never percent-encoded; a member of an archive after
    `!`.
    """
    source_line: Int64 | None = None
    """Line of the first record, from 1."""
    source_offset: Int64 | None = None
    """Byte of the first record, from 0, in the decompressed stream."""
    adapter_version: Int32
    """Version of the adapter that wrote the row."""
    schema_version: str
    """Version of this schema."""
    batch_id: str
    """The ingest that wrote the row."""
    ingested_at: dt.datetime
    """When that ingest began."""
    source: PartitionKey
    """Name of the log stream (partition key)."""
    day: PartitionKey
    """UTC day the conversation started, YYYY-MM-DD or `unknown` (partition key)."""

    def _repr_html_(self) -> str:
        """The conversation as a notebook shows it, log text escaped."""
        from etl.pages.conversation import fragment  # templates are loaded by who shows a row

        return fragment(self.model_dump())


class Reject(Record):
    """One row per record that could not be used; nothing is dropped in silence."""

    reject_id: str
    """128 bits of BLAKE2b over source, uri, offset and reason: the same on every run."""
    source: PartitionKey
    """Name of the log stream (partition key)."""
    source_uri: str
    """Absolute path or URI of the file; a member of an archive after `!`."""
    source_line: Int64 | None = None
    """Line where the record starts, from 1."""
    source_offset: Int64 | None = None
    """Byte where the record starts, from 0, in the decompressed stream."""
    length: Int64
    """Bytes of the record as it stood in the source."""
    reason: str
    """Code of what is wrong."""
    message: str
    """What is wrong, where, and what to do."""
    raw: bytes | None = None
    """The record itself, redacted like everything else."""
    adapter: str | None = None
    """The adapter that read the file; null when none did."""
    adapter_version: Int32 | None = None
    """Its version."""
    batch_id: str
    """The ingest that wrote the row."""
    ingested_at: dt.datetime
    """When that ingest began."""


class SourceFile(Record):
    """One row per file read: what it was, what it gave, and how far it was read."""

    source: PartitionKey
    """Name of the log stream (partition key)."""
    uri: str
    """Absolute path or URI of the file, never percent-encoded."""
    size: Int64
    """Bytes on disk, as stored (compressed)."""
    modified_at: dt.datetime | None = None
    """Modification time when it was read."""
    sha256: str | None = None
    """Digest of the bytes on disk; null when it could not be read."""
    adapter: str | None = None
    """The adapter that read it."""
    adapter_version: Int32 | None = None
    """Its version."""
    state: FileState
    """done, growing (its last line was cut off), failed (could not be read or detected) or skipped (no conversation
    log).
    """
    error: str | None = None
    """Why it failed or was skipped."""
    records_in: Int64
    """Records the file has, in the smallest unit of its format; equals records_used + rejects + ignored."""
    records_used: Int64
    """Records that went into rows."""
    rows: Int64
    """Rows it gave."""
    rejects: Int64
    """Records that could not be used; each is a row of `rejects`."""
    ignored: str | None = None
    """JSON object: named rule → records that it left out."""
    batch_id: str
    """The ingest that last read it."""
    ingested_at: dt.datetime
    """When that ingest began."""
    read_bytes: Int64 | None = None
    """Bytes, from the start, that hold whole lines: where reading goes on once the file has grown. Null where a grown
    file is read anew.
    """
    read_lines: Int64 | None = None
    """Lines in these bytes."""
    read_sha256: str | None = None
    """Digest of these bytes: they are not read again only while they are the same."""
    read_counts: str | None = None
    """JSON object: what these bytes gave, and under which settings."""


class Event(Record):
    """One record of a format whose conversations span files: kept, redacted, so that they can be put together again."""

    source: PartitionKey
    """Name of the log stream (partition key)."""
    day: PartitionKey
    """UTC day of the event, YYYY-MM-DD or `unknown` (partition key)."""
    conversation_key: str
    """The adapter's key of the conversation it belongs to (a trace id, a session id)."""
    record_key: str
    """128 bits of BLAKE2b over the record before redaction: a copy of a record has the same."""
    link_key: str | None = None
    """The source's own id of the record; conversations that share one are put together as one family."""
    at: dt.datetime | None = None
    """When it happened."""
    adapter: str
    """The adapter that read it."""
    payload: str
    """The record as JSON, redacted; empty where the event only joins another link to its conversation."""
    redactions: str | None = None
    """JSON object: redaction rule → how often it replaced something in the payload."""
    source_uri: str
    """Absolute path or URI of the file."""
    source_line: Int64 | None = None
    """Line of the record, from 1."""
    source_offset: Int64 | None = None
    """Byte of the record, from 0, in the decompressed stream."""
    batch_id: str
    """The ingest that wrote it."""


TABLES: dict[str, type[Record]] = {"rollouts": Rollout, "rejects": Reject, "sources": SourceFile, "events": Event}
"""The tables of a lake, by name."""

LINEAGE = frozenset(
    {
        "source_uri",
        "source_line",
        "source_offset",
        "adapter_version",
        "schema_version",
        "batch_id",
        "ingested_at",
        "row_hash",
    }
)
"""Columns of `rollouts` that say where a row came from, not what it says: outside `row_hash`."""

_PLAIN: dict[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    dt.datetime: pa.timestamp("us", tz="UTC"),
}


class Column(NamedTuple):
    """One field of a stored model, with how it is stored."""

    name: str
    arrow: pa.DataType


def arrow_type(annotation: Any) -> pa.DataType:
    """The Arrow type of a model annotation; optional or not makes no difference to storage.

    >>> arrow_type(list[str] | None)
    ListType(list<element: string>)
    """
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return next(extra.arrow for extra in typing.get_args(annotation)[1:] if isinstance(extra, _Storage))
    if origin in (typing.Union, types.UnionType):
        inner = [option for option in typing.get_args(annotation) if option is not type(None)]
        return arrow_type(inner[0])
    if origin is Literal:
        return pa.string()
    if origin is list:
        return pa.list_(pa.field("element", arrow_type(typing.get_args(annotation)[0])))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return pa.struct([pa.field(column.name, column.arrow) for column in columns(annotation)])
    return _PLAIN[annotation]


def describe(model: type[BaseModel]) -> None:
    """Gives the fields of a stored model the descriptions that stand below them."""
    meanings = _meanings().get(model.__name__, {})
    for name, field in model.model_fields.items():
        field.description = meanings.get(name, field.description)


@functools.cache
def _meanings() -> dict[str, dict[str, str]]:
    """Model → field → the text below it in this file."""
    made = ast.parse(Path(__file__).read_text(encoding="utf-8")).body
    return {each.name: _texts_below(each) for each in made if isinstance(each, ast.ClassDef)}


def _texts_below(made: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, below in pairwise(made.body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[ast.unparse(field.target)] = inspect.cleandoc(str(below.value.value))
    return found


def columns(model: type[BaseModel]) -> list[Column]:
    """The fields of a stored model, in order."""
    hints = typing.get_type_hints(model, include_extras=True)
    return [Column(name, arrow_type(hints[name])) for name in model.model_fields]


@functools.cache
def arrow_schema(table: str) -> pa.Schema:
    """The one Arrow schema of a table of the lake.

    >>> arrow_schema("rollouts").field("reward").type
    DataType(double)
    """
    return pa.schema([pa.field(column.name, column.arrow) for column in columns(TABLES[table])])


__all__ = [
    "LINEAGE",
    "PARTITIONS",
    "SCHEMA_VERSION",
    "TABLES",
    "UNKNOWN_DAY",
    "Event",
    "Field",
    "Judgment",
    "MessageInfo",
    "MessageRecord",
    "Record",
    "Reject",
    "Rollout",
    "Scenario",
    "SourceFile",
    "Step",
    "Usage",
    "arrow_schema",
    "arrow_type",
    "columns",
]
