"""A conversation as an adapter read it into a row: roles checked, calls paired, times and numbers fitted, names given.

This is where everything happens that an adapter must not get wrong. It works on values before redaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from etl.coerce import Fitting
from etl.conversation import Conversation, Identity, Message, Tokens
from etl.decode import encode
from etl.identity import Occurrences, digest, group_id, rollout_id, task_id
from etl.row import SAYS_NOTHING, Row, StepTuple
from etl.schema import UNKNOWN_DAY, Scenario
from etl.times import day_of
from etl.tools import Definitions
from etl.transcript import Refused, Transcript

_TRUNCATED = frozenset({"length", "max_tokens", "max_output_tokens", "MAX_TOKENS", "incomplete"})
_NO_TOOLS: tuple[Any, ...] = (None, [], {}, "", "[]", "{}", "null")
_INSTRUCTIONS = ("system", "developer")
_PREAMBLES = 64
"""How many system prompts with their tools are remembered by a file."""
_pack = msgspec.msgpack.Encoder().encode


class Stream(NamedTuple):
    """Where a conversation comes from."""

    source: str
    adapter: str
    adapter_version: int
    uri: str
    origin: str = "traffic"


class FileMemory:
    """What the rows of one file have in common: how often a record occurred, tool definitions, and preambles already
    hashed.
    """

    def __init__(self, before: Mapping[bytes, int] | None = None) -> None:
        """`before`: how often records occur earlier in the file, where a part of it is read."""
        self.occurrences = Occurrences(before)
        self.tools = Definitions()
        self._preambles: dict[tuple[str, str | None], str] = {}

    def preamble(self, instructions: str, tools: str | None) -> str:
        """The digest of a system prompt with the tools."""
        key = (instructions, tools)
        name = self._preambles.get(key)
        if name is None:
            if len(self._preambles) >= _PREAMBLES:
                self._preambles.clear()
            name = self._preambles[key] = digest(_pack(key))
        return name


def identity_of(conversation: Conversation, occurrences: Occurrences) -> Identity:
    """A globally unique native id, or the local id with a hash of the record and its occurrence in the file."""
    key = conversation.native_id
    if key is None:
        raw = b"\n".join([record.raw for record in conversation.records])
        key = occurrences.key(conversation.local_id, raw)
    return Identity(key, conversation.run, conversation.branch, conversation.attempt)


def normalise(conversation: Conversation, stream: Stream, file: FileMemory) -> Row:
    """The row of a conversation; Refused where it cannot be one."""
    if not conversation.messages and not conversation.flags:
        raise Refused("no_messages", "the conversation has no messages")
    fitting = Fitting()
    transcript = Transcript(fitting)
    for message in conversation.messages:
        transcript.add(message)
    flags = fitting.flags | transcript.pairing.flags
    if conversation.flags:
        flags |= conversation.flags
    mended: list[tuple[str, str]] = []
    for record in conversation.records:
        if record.notes:
            flags.update(record.notes)
            mended += record.mended
    if mended:
        transcript.mend(mended)
    return _row(conversation, stream, file, transcript, flags, mended)


def _row(
    conversation: Conversation,
    stream: Stream,
    file: FileMemory,
    transcript: Transcript,
    flags: set[str],
    mended: list[tuple[str, str]],
) -> Row:
    fitting, messages = transcript.fitting, conversation.messages
    identity = identity_of(conversation, file.occurrences)
    steps = [StepTuple._make(astuple(step)) for step in transcript.pairing.steps]
    if transcript.pairing.close():
        flags.add("missing_result")
    started, ended = _span(conversation, transcript)
    tools = file.tools.text(conversation.tools) if conversation.tools else None
    extra = dict(conversation.extra) if conversation.extra else {}
    if tools is None and conversation.tools not in _NO_TOOLS:
        fitting.miss("tools", conversation.tools)
    status = _status(conversation, messages, steps, flags)
    asked = [message.content for message in messages if message.role == "user" and not message.synthetic]
    prompt = conversation.prompt if conversation.prompt is not None else _prompt(asked)
    reward = fitting.real("reward", conversation.reward)
    sample_index = fitting.small("sample_index", conversation.sample_index)
    seed = fitting.whole("seed", conversation.seed)
    model = fitting.text(conversation.model)
    if model is None:
        model = next((info.model for info in reversed(transcript.info) if info.model), None)
    usage = _usage(conversation.usage, transcript, fitting)
    native = conversation.native_id if conversation.native_id is not None else conversation.local_id
    first = conversation.records[0] if conversation.records else None
    aligned = _aligned(conversation, fitting)
    if fitting.unfit:
        extra["unread"] = (
            {**extra.get("unread", {}), **fitting.unfit} if isinstance(extra.get("unread", {}), dict) else fitting.unfit
        )
    if mended and not any(info.extra and "lone_surrogates" in info.extra for info in transcript.info):
        extra["lone_surrogates"] = [escape for _, escape in mended]
    flags |= fitting.flags
    row = Row(
        rollout_id=rollout_id(stream.source, identity),
        task_id=_task(conversation, file, tools, prompt),
        group_id=None if conversation.group is None else group_id(stream.source, conversation.group),
        sample_index=sample_index,
        origin=conversation.origin or stream.origin,
        adapter=stream.adapter,
        conversation_id=conversation.conversation_id if conversation.conversation_id is not None else native,
        parent_id=None if conversation.parent is None else rollout_id(stream.source, conversation.parent),
        prompt=prompt,
        messages=transcript.messages,
        message_info=transcript.info,
        prompt_len=next((i for i, m in enumerate(messages) if not m.inherited and _is_turn(m)), len(messages)),
        steps=steps,
        final_text=next((m.content for m in reversed(messages) if m.role == "assistant" and not m.synthetic), None),
        tools=tools,
        status=status,
        finish_reason=fitting.text(conversation.finish_reason),
        error=fitting.text(conversation.error),
        reward=reward,
        rewards=encode(conversation.rewards) if conversation.rewards else None,
        judgments=[(v.name, v.kind, v.value, v.label, v.status, v.reason) for v in conversation.judgments or ()],
        scenario=_scenario(conversation.scenario, fitting),
        faults=None if conversation.faults is None else encode(conversation.faults),
        seed=seed,
        seeded=conversation.seeded,
        model=model,
        provider=fitting.text(conversation.provider),
        policy_version=fitting.text(conversation.policy_version),
        agent=fitting.text(conversation.agent),
        started_at=started,
        ended_at=ended,
        usage=usage,
        token_ids=aligned[0],
        loss_mask=aligned[1],
        logprobs=aligned[2],
        n_turns=len(asked),
        n_steps=len(steps),
        flags=sorted(flags),
        redactions=None,
        extra=encode(extra) if extra else None,
        n_records=conversation.n_records or len(conversation.records),
        content_hash=digest(_pack(transcript.canonical)),
        row_hash="",
        source_uri=stream.uri,
        source_line=None if first is None else first.line,
        source_offset=None if first is None else first.offset,
        adapter_version=stream.adapter_version,
        source=stream.source,
        day=day_of(started) or UNKNOWN_DAY,
    )
    row.row_hash = _row_hash(row)
    return row


def _is_turn(message: Message) -> bool:
    """Whether the agent took it: it calls tools also where the log gives it a role that nobody knows."""
    return message.role == "assistant" or any(call.actor != "user" for call in message.calls or ())


def _row_hash(row: Row) -> str:
    """Everything the row says, lineage aside. The texts of the transcript are in `content_hash`; its ids and names
    are not.
    """
    named: list[tuple[Any, ...]] = [
        (index, message.tool_call_id, message.name, message.tool_calls and [call[0] for call in message.tool_calls])
        for index, message in enumerate(row.messages)
        if message.tool_calls or message.tool_call_id or message.name
    ]
    told = [(index, info) for index, info in enumerate(row.message_info) if info is not SAYS_NOTHING]
    return digest(_pack((_said(row), named, told)))


_HASHED_APART = frozenset(
    {
        "source_uri",
        "source_line",
        "source_offset",
        "adapter_version",
        "row_hash",
        "messages",
        "message_info",
        "final_text",
    }
)
"""Lineage, and what other hashed columns say already."""
_said = attrgetter(*(name for name in Row.__struct_fields__ if name not in _HASHED_APART))


def _span(conversation: Conversation, transcript: Transcript) -> tuple[int | None, int | None]:
    fitting, ats = transcript.fitting, transcript.ats
    started = fitting.at("started_at", conversation.started_at)
    ended = fitting.at("ended_at", conversation.ended_at)
    if ats:
        started = min(ats) if started is None else started
        ended = max(ats) if ended is None else ended
    return started, ended


def _status(conversation: Conversation, messages: list[Message], steps: list[StepTuple], flags: set[str]) -> str:
    """How it ended; `incomplete` is flagged where nothing says that what is last is the end."""
    if conversation.status is not None:
        return conversation.status
    if conversation.error:
        return "error"
    if conversation.finish_reason in _TRUNCATED:
        return "truncated"
    last = next((message for message in reversed(messages) if not message.synthetic), None)
    open_call = any(step.status == "missing" and step.message_index == len(messages) - 1 for step in steps)
    if last is not None and last.role == "assistant" and not open_call:
        return "completed"
    flags.add("incomplete")
    return "unknown"


def _prompt(asked: list[str]) -> str | None:
    """The first thing a person asked, in words where there are any."""
    return next((text for text in asked if text), asked[0] if asked else None)


def _task(conversation: Conversation, file: FileMemory, tools: str | None, prompt: str | None) -> str | None:
    if conversation.task is None and not (conversation.task_from_prompt and prompt):
        return None
    instructions = "\n".join(m.content for m in conversation.messages[:2] if m.role in _INSTRUCTIONS)
    if conversation.task is not None:
        namespace, native = conversation.task
        return task_id(namespace or file.preamble(instructions, None), native)
    return task_id("prompt", digest(_pack((file.preamble(instructions, tools), prompt))))


def _scenario(cell: dict[str, Any] | None, fitting: Fitting) -> tuple[str | None, ...] | None:
    """The axes of a cell in the order of the schema."""
    return None if cell is None else tuple(fitting.text(cell.get(axis)) for axis in Scenario.model_fields)


def _usage(usage: Tokens | None, transcript: Transcript, fitting: Fitting) -> tuple[int | float | None, ...] | None:
    """As logged; else the sum of what this row's own model responses say."""
    if usage is None:
        own = [
            info
            for m, info in zip(transcript.messages, transcript.info, strict=True)
            if m.role == "assistant" and not info.inherited
        ]
        read = [info.input_tokens for info in own if info.input_tokens is not None]
        written = [info.output_tokens for info in own if info.output_tokens is not None]
        if not read and not written:
            return None
        return (sum(read) if read else None, sum(written) if written else None, None, None, None, None)
    values = (
        fitting.whole("usage.input_tokens", usage.input_tokens),
        fitting.whole("usage.output_tokens", usage.output_tokens),
        fitting.whole("usage.cached_tokens", usage.cached_tokens),
        fitting.whole("usage.cache_write_tokens", usage.cache_write_tokens),
        fitting.whole("usage.reasoning_tokens", usage.reasoning_tokens),
        fitting.real("usage.cost_usd", usage.cost_usd),
    )
    return values if any(value is not None for value in values) else None


def _aligned(
    conversation: Conversation, fitting: Fitting
) -> tuple[list[int] | None, list[int] | None, list[float] | None]:
    """Token ids with their mask and log probabilities, where they are well-formed and of one length."""
    ids, mask, logprobs = conversation.token_ids, conversation.loss_mask, conversation.logprobs
    if ids is None and mask is None and logprobs is None:
        return None, None, None
    lengths = {len(column) for column in (ids, mask, logprobs) if column is not None}
    sound = (
        len(lengths) == 1
        and all(type(value) is int and 0 <= value < 1 << 31 for value in ids or ())
        and all(value in (0, 1) for value in mask or ())
        and all(type(value) in (int, float) for value in logprobs or ())
    )
    if not sound:
        fitting.miss("token_ids", {"token_ids": ids, "loss_mask": mask, "logprobs": logprobs}, "unaligned_tokens")
        return None, None, None
    return ids, None if mask is None else [int(value) for value in mask], logprobs


__all__ = ["FileMemory", "Refused", "Stream", "identity_of", "normalise"]
