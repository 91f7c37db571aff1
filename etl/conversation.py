"""What adapters read and what they give: records in; conversations, fragments, rejects and ignored records out.

Values are passed on as the log has them: the spine turns times, tokens, arguments and tool definitions into columns,
pairs results with calls, makes identities, and redacts (`etl/normalise.py`). An adapter that cannot get those wrong
is short.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec


class Record(msgspec.Struct, gc=False):
    """The smallest unit of a format: a line, an array element, a span, an event.

    `mended` holds (text as passed on, JSON text as it stood in the log) for every string that had a lone surrogate;
    `notes` names what else was unusual (`nan`, `duplicate_keys`, `number_range`), each a flag of the row.
    """

    value: Any
    raw: bytes
    """The record's own bytes (UTF-8 JSON unless the adapter reads another container), without line end."""
    line: int | None = None
    """From 1."""
    offset: int | None = None
    """From 0, in the decompressed stream."""
    notes: tuple[str, ...] = ()
    mended: tuple[tuple[str, str], ...] = ()


class ToolCall(msgspec.Struct, gc=False):
    """One call. `arguments` is whatever the log holds: an object, JSON text, text encoded twice, anything."""

    name: str
    arguments: Any = None
    id: str | None = None
    actor: str = "agent"
    """agent, user (a simulated user's own tools) or server (ran at the provider; a missing result is no fault)."""
    free_form: bool = False
    """True where the tool takes plain text by contract (a patch, a script): stored as `{"input": text}`, no fault."""
    at: Any = None
    duration_ms: float | None = None


class Message(msgspec.Struct, gc=False):
    """One message. Times are raw (`at`), tokens and content are plain; see `etl/schema.py` for the meaning of each."""

    role: str
    content: str = ""
    reasoning: str | None = None
    calls: list[ToolCall] | None = None
    call_id: str | None = None
    """On a tool message: the id of the call it answers, as the log has it."""
    name: str | None = None
    id: str | None = None
    at: Any = None
    model: str | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    inherited: bool = False
    synthetic: bool = False
    """True where a harness wrote it (a reminder, an environment block, a compaction summary): never the prompt."""
    parts: list[Any] | None = None
    """Non-text content, as the log has it."""
    extra: dict[str, Any] | None = None
    """Every key of the source message that no field here holds."""
    failed: bool | None = None
    """On a tool message: the log's own error flag; None where it has none."""
    cancelled: bool = False
    """On a tool message: the call was never executed."""
    condition: str | None = None
    """On a tool message: the step's `condition`, where the format declares one."""
    duration_ms: float | None = None
    """On a tool message: how long the call took."""
    error: str | None = None
    """On a failed tool message: what the log says went wrong, where that is not the content."""


class Tokens(msgspec.Struct, gc=False):
    """Usage in the schema's convention: input includes cached reads and writes, output includes reasoning."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None


class Verdict(msgspec.Struct, gc=False):
    """One judgment on the row; see `schema.Judgment`."""

    name: str
    kind: str
    value: float | None = None
    label: str | None = None
    status: str | None = None
    reason: str | None = None


class Identity(msgspec.Struct, frozen=True, gc=False):
    """What a `rollout_id` is made of, source aside. The branch of a main thread is empty."""

    key: str
    run: str = ""
    branch: str = ""
    attempt: str = ""


class Conversation(msgspec.Struct, gc=False):
    """One attempt, whole. Give `native_id` only where the log's id is globally unique and names this conversation for
    good; otherwise give `local_id` (or nothing), and the spine adds a hash of the record and its occurrence in the
    file. Of versions under one `native_id` that with most `n_records` stays, then that with the latest `ended_at`: give
    both where the log has them, since an edit that changes neither may lose to what it replaces (and is counted).
    """

    messages: list[Message]
    records: Sequence[Record]
    """Every record it was read from, in order; the first gives line and offset, all give notes and `n_records`."""
    native_id: str | None = None
    local_id: str | None = None
    run: str = ""
    """What the records (or a metadata file beside them) say of environment and model; part of the identity."""
    branch: str = ""
    attempt: str = ""
    conversation_id: str | None = None
    """Where it differs from native_id or local_id."""
    parent: Identity | None = None
    task: tuple[str, str] | None = None
    """(namespace, native task id): attempts at the same task agree on it."""
    task_from_prompt: bool = False
    """True where the first user turn is logged input, so that system prompt, tools and prompt name the task."""
    group: str | None = None
    """Declared repeats of one task or prefix: any text that all of them, and only they, share."""
    sample_index: int | None = None
    prompt: str | None = None
    """Where it is not simply the first user message that is not synthetic."""
    tools: Any = None
    """Tool definitions as logged: OpenAI, Anthropic or flat form, a list or JSON text."""
    status: str | None = None
    """completed, truncated, aborted, error; None lets the spine tell from finish_reason, error and the last message."""
    finish_reason: str | None = None
    error: str | None = None
    reward: Any = None
    rewards: dict[str, Any] | None = None
    judgments: list[Verdict] | None = None
    model: str | None = None
    provider: str | None = None
    policy_version: str | None = None
    agent: str | None = None
    started_at: Any = None
    ended_at: Any = None
    usage: Tokens | None = None
    token_ids: list[int] | None = None
    loss_mask: list[int] | None = None
    logprobs: list[float] | None = None
    flags: set[str] | None = None
    origin: str | None = None
    """`simulation` where the log says that a simulator wrote it; None: the stream's own."""
    scenario: dict[str, Any] | None = None
    """The intended cell of a simulated row, by the names of `schema.Scenario`."""
    faults: Any = None
    """Simulation: the faults that were scheduled, as logged."""
    seed: Any = None
    seeded: list[str] | None = None
    """Simulation: the mistakes planted on purpose; [] for a row that behaves, None where that is not known."""
    extra: dict[str, Any] | None = None
    n_records: int | None = None
    """Where it is more than `len(records)` (ignored ones count too)."""


class Fragment(msgspec.Struct, gc=False):
    """One record of a conversation that spans files: it is stored in `events` and handed back to `assemble`."""

    record: Record
    key: str
    """The conversation it belongs to (a trace id, a session id)."""
    link: str | None = None
    """The record's own id: conversations that share one are assembled together, as one family."""
    at: Any = None
    """When it happened, raw."""
    payload: Any = None
    """What `assemble` is to see where that is not the record itself (a span with its resource); None: the record, whose
    `raw` is then JSON."""
    bridge: bool = False
    """True where it only joins another key to a record that is counted already."""
    aliases: tuple[str, ...] = ()
    """Other links under which records of any day may name the conversation (an annotation that knows a span alone)."""


class Unusable(msgspec.Struct, gc=False):
    """A record that cannot be used: it lands in `rejects` with its bytes. `reason` is a code, `message` one line."""

    record: Record
    reason: str
    message: str


class Ignored(msgspec.Struct, gc=False):
    """A record that a named rule leaves out on purpose, counted under that name."""

    rule: str
    n: int = 1
    record: Record | None = None
    """From `assemble`: the event's record, so that it is counted where it was read."""


Outcome: TypeAlias = Conversation | Fragment | Unusable | Ignored


class StoredEvent(msgspec.Struct, gc=False):
    """One event of a family, as `assemble` gets it: ordered by (key, at, source_uri, offset)."""

    key: str
    record: Record
    """`record.value` is the payload (redacted), `record.line` and `record.offset` as first read."""
    link: str | None = None
    at: int | None = None
    """Microseconds since the epoch, UTC."""
    source_uri: str = ""
    redactions: str | None = None
    """JSON object: redaction rule → how often it replaced something in the payload."""
