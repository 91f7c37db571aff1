"""A rollout as plain tuples, between normalising a conversation and appending it to columns.

The tuples stand in the order of the pydantic models of `etl/schema.py`; timestamps are microseconds since the epoch,
UTC.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import msgspec

CallTuple: TypeAlias = tuple[str, str, str]
"""(id, name, arguments)"""


class MessageTuple(NamedTuple):
    """`schema.MessageRecord`, with its calls as (id, name, arguments)."""

    role: str
    content: str
    reasoning_content: str | None
    tool_calls: list[CallTuple] | None
    tool_call_id: str | None
    name: str | None


class InfoTuple(NamedTuple):
    """`schema.MessageInfo`."""

    id: str | None
    at: int | None
    model: str | None
    finish_reason: str | None
    input_tokens: int | None
    output_tokens: int | None
    inherited: bool
    synthetic: bool
    parts: str | None
    extra: str | None


SAYS_NOTHING = InfoTuple(None, None, None, None, None, None, False, False, None, None)
"""Of a message of which the log tells nothing but what it says: always this one object."""


class StepTuple(NamedTuple):
    """`schema.Step`."""

    call_id: str
    tool: str
    actor: str
    arguments: str
    message_index: int
    result_index: int | None
    status: str
    condition: str | None
    error: str | None
    raw_arguments: str | None
    at: int | None
    duration_ms: float | None


class Row(msgspec.Struct, gc=False):
    """`schema.Rollout`, lineage of the batch (batch_id, ingested_at) aside."""

    rollout_id: str
    task_id: str | None
    group_id: str | None
    sample_index: int | None
    origin: str
    adapter: str
    conversation_id: str | None
    parent_id: str | None
    prompt: str | None
    messages: list[MessageTuple]
    message_info: list[InfoTuple]
    prompt_len: int
    steps: list[StepTuple]
    final_text: str | None
    tools: str | None
    status: str
    finish_reason: str | None
    error: str | None
    reward: float | None
    rewards: str | None
    judgments: list[tuple[str, str, float | None, str | None, str | None, str | None]]
    scenario: tuple[str | None, ...] | None
    faults: str | None
    seed: int | None
    seeded: list[str] | None
    model: str | None
    provider: str | None
    policy_version: str | None
    agent: str | None
    started_at: int | None
    ended_at: int | None
    usage: tuple[int | float | None, ...] | None
    token_ids: list[int] | None
    loss_mask: list[int] | None
    logprobs: list[float] | None
    n_turns: int
    n_steps: int
    flags: list[str]
    redactions: str | None
    extra: str | None
    n_records: int
    content_hash: str
    row_hash: str
    source_uri: str
    source_line: int | None
    source_offset: int | None
    adapter_version: int
    source: str
    day: str
