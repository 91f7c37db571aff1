"""What a span is, which conversation it names, and how its values are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from etl.conversation import Record
from etl.decode import JsonError, decode
from etl.times import instant

Kind = Literal["model", "tool", "agent", "embedding", "retrieval", "other"]

CONVERSATION_IDS = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "langsmith.trace.session_id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.conversation_id",
    "traceloop.association.properties.thread_id",
    "ai.telemetry.metadata.sessionId",
    "gcp.vertex.agent.session_id",
)
"""Attributes that name a conversation, in order of precedence."""
_CONVERSATION_IDS = frozenset(CONVERSATION_IDS)

OPERATIONS: dict[str, dict[str, Kind]] = {
    "gen_ai.operation.name": {
        "chat": "model",
        "text_completion": "model",
        "completion": "model",
        "generate_content": "model",
        "responses": "model",
        "execute_tool": "tool",
        "invoke_agent": "agent",
        "create_agent": "agent",
        "invoke_workflow": "agent",
        "embeddings": "embedding",
        "embedding": "embedding",
        "retrieval": "retrieval",
    },
    "openinference.span.kind": {
        "LLM": "model",
        "TOOL": "tool",
        "AGENT": "agent",
        "CHAIN": "agent",
        "EMBEDDING": "embedding",
        "RETRIEVER": "retrieval",
        "RERANKER": "retrieval",
    },
    "mlflow.spanType": {
        "LLM": "model",
        "CHAT_MODEL": "model",
        "TOOL": "tool",
        "AGENT": "agent",
        "CHAIN": "agent",
        "WORKFLOW": "agent",
        "TASK": "agent",
        "EMBEDDING": "embedding",
        "RETRIEVER": "retrieval",
        "RERANKER": "retrieval",
        "UNKNOWN": "agent",
    },
    "ai.operationId": {
        "ai.generateText.doGenerate": "model",
        "ai.streamText.doStream": "model",
        "ai.generateObject.doGenerate": "model",
        "ai.streamObject.doStream": "model",
        "ai.generateText": "agent",
        "ai.streamText": "agent",
        "ai.generateObject": "agent",
        "ai.streamObject": "agent",
        "ai.toolCall": "tool",
        "ai.embed": "embedding",
        "ai.embed.doEmbed": "embedding",
        "ai.embedMany": "embedding",
        "ai.embedMany.doEmbed": "embedding",
    },
    "traceloop.span.kind": {"tool": "tool", "agent": "agent", "workflow": "agent", "task": "agent"},
    "llm.request.type": {"chat": "model", "completion": "model", "embedding": "embedding"},
    "langfuse.observation.type": {
        "generation": "model",
        "tool": "tool",
        "agent": "agent",
        "embedding": "embedding",
        "retriever": "retrieval",
    },
    "langsmith.span.kind": {
        "llm": "model",
        "tool": "tool",
        "chain": "agent",
        "agent": "agent",
        "embedding": "embedding",
        "retriever": "retrieval",
    },
}
"""Attribute → its values → what a span is, in order of precedence."""

MERGED = "(merged tools)"
"""Google ADK's span of the results of parallel calls, each of which has a span of its own."""

SIGNS: tuple[tuple[str, Kind], ...] = (
    ("gen_ai.tool.call.id", "tool"),
    ("gen_ai.tool.name", "tool"),
    ("gen_ai.output.messages", "model"),
    ("gen_ai.request.model", "model"),
    ("gen_ai.prompt.0.role", "model"),
    ("llm.model_name", "model"),
    ("request_data", "model"),
    ("all_messages_events", "agent"),
    ("pydantic_ai.all_messages", "agent"),
    ("gen_ai.agent.name", "agent"),
)
"""Attributes that tell what a span is where no operation does, in order of precedence."""


class Log(msgspec.Struct, gc=False):
    """One log record (or span event) that belongs to a span."""

    name: str
    at: int
    body: dict[str, Any]
    """Its fields: the body, or the attributes where the body is empty."""


class Span(msgspec.Struct, eq=False):
    """One span, in the terms of this adapter."""

    trace: str
    id: str
    scope: str
    """The conversation that it belongs to."""
    name: str = ""
    kind: Kind = "other"
    parent: str | None = None
    start: int | None = None
    """Nanoseconds, for order; `start_raw` is as logged."""
    end: int | None = None
    start_raw: Any = None
    end_raw: Any = None
    failed: bool = False
    error: str | None = None
    attributes: dict[str, Any] = {}
    events: list[Log] = []
    resource: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    """Everything else of the span: kind, scope, links, keys that nobody modelled."""
    records: list[Record] = []
    """What it was read from, its log records included."""
    details: set[str] = set()
    """Names of the events whose fields became its attributes."""
    absent: bool = False
    """True where only log records tell of it."""

    def is_agent(self) -> bool:
        """Whether it says itself that it is an agent, and not just something around calls (a chain, a workflow)."""
        return self.kind == "agent" and any(
            isinstance(value := self.attributes.get(name), str) and "agent" in value.lower() for name in OPERATIONS
        )

    def at(self) -> tuple[int, str]:
        """Where it stands in time; spans without a time come last."""
        return (self.start if self.start is not None else 1 << 62, self.id)

    def spans(self, other: Span) -> bool:
        """Whether the time of another lies within its own."""
        if self.start is None or self.end is None or other.start is None or other.end is None:
            return False
        return self.start <= other.start and other.end <= self.end

    def milliseconds(self) -> float | None:
        """How long it took."""
        if self.start is None or self.end is None or self.end < self.start:
            return None
        return (self.end - self.start) / 1_000_000


def kind_of(attributes: Mapping[str, Any]) -> Kind:
    """What a span is: by its operation, else by the attributes it has."""
    for name, kinds in OPERATIONS.items():
        value = attributes.get(name)
        if value is not None:
            found = kinds.get(value) if isinstance(value, str) else None
            if found == "tool" and attributes.get("gen_ai.tool.name") == MERGED:
                return "other"
            if found is not None:
                return found
            if value != "UNKNOWN" and name in ("gen_ai.operation.name", "openinference.span.kind", "ai.operationId"):
                return "other"
    return next((kind for name, kind in SIGNS if name in attributes), "other")


def conversation_id(attributes: Mapping[str, Any]) -> str | None:
    """The id of the conversation that a span names."""
    if attributes.keys().isdisjoint(_CONVERSATION_IDS):
        return None
    for name in CONVERSATION_IDS:
        value = attributes.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


def nanoseconds(value: Any) -> int | None:
    """A time as logged, in nanoseconds; None for none."""
    if type(value) is int and 946_684_800_000_000_000 <= value < 4_102_444_800_000_000_000:
        return value
    micros = instant(value).micros
    return None if micros is None else micros * 1_000


_OPENERS = ("{", "[", '"')


def opened(value: Any) -> Any:
    """JSON text of an object or array as its value, also where it was encoded twice; anything else as it is.

    >>> opened('[{"a": 1}]'), opened("plain"), opened('"[1]"'), opened('"quoted"')
    ([{'a': 1}], 'plain', [1], '"quoted"')
    """
    if type(value) is not str or (value[:1] not in _OPENERS and not value[:1].isspace()):
        return value
    inner: Any = value
    for _ in range(3):
        if not isinstance(inner, str) or inner.lstrip()[:1] not in ("{", "[", '"'):
            break
        try:
            inner = decode(inner.encode("utf-8", "surrogatepass")).value
        except JsonError:
            break
    return inner if isinstance(inner, (dict, list)) else value
