"""`map.toml`: which column of a log says what, for the log that only one company has.

A path names a column, or, with dots, a member of an object in it (JSON text in a column is opened). `EXAMPLE` is a
whole map, as `etl formats --map-example` prints it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from etl.errors import UsageError
from etl.faults import MISSING, UNKNOWN, WRONG, Fault, said
from etl.identity import digest

Role = Literal["system", "developer", "user", "assistant", "tool"]
Meaning = Literal["system", "developer", "user", "assistant", "tool", "ignore"]
Column = Annotated[str, Field(min_length=1)]

EXAMPLE = """\
# Which column says what, for `etl ingest PATH --map map.toml`.
# A path with dots goes into an object, or into the JSON text of one: "payload.from".

name = "helpdesk"              # the log stream (`source`), unless --source names it
version = 1                    # your own count; what was read before this file changed is read again in any case
rows = "messages"              # one row a message; "conversations": one row a conversation

[conversation]                 # columns that say the same for a whole conversation; all but `id` are optional
id = "ticket"
# started_at, ended_at, model, provider, agent, policy_version, system, tools, task, group, sample_index, reward,
# finish_reason and error are the others
agent = "queue"

[message]                      # columns of a message; with rows = "conversations" its keys, in the column `list`
role = "from"
text = "body"
at = "sent_at"
# id, order, name, model, reasoning, finish_reason, input_tokens and output_tokens are optional too
tool = "tool"                  # the tool that an assistant's row calls, or that a tool's row answers for
arguments = "tool_input"
result = "tool_output"         # what came back, where it stands in the row of the call
# call_id, failed and duration_ms are the others of a call

[roles]                        # values of the role column, whatever their case; "ignore" leaves such rows out
customer = "user"
bot = "assistant"
agent = "assistant"
note = "ignore"

# With rows = "conversations", a list of messages in one column, and [message] names the keys of its items:
# [message]
# list = "thread"
# role = "from"
# text = "body"

# With rows = "conversations" and a column a turn, in the place of [message]:
# [[turns]]
# role = "user"
# text = "question"
# [[turns]]
# role = "assistant"
# text = "answer"

# Further settings: default_role = "user" (where there is no role column, or nothing in it), html = true (texts are
# HTML), optional = ["queue", "tool"] (columns and keys that a file may lack: where another is in none of its first 200
# rows, they all become rejects that say so), grows = true (with rows = "conversations": a row is written anew as the
# conversation goes on, and its id is unique).
"""


class _Table(BaseModel):
    """A table of the file: unknown keys are errors, since a misspelt one would lose what it names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def columns(self) -> dict[str, str]:
        """Setting → path, for those that are set."""
        return {name: path for name in type(self).model_fields if isinstance(path := getattr(self, name), str)}


class ConversationColumns(_Table):
    """What a whole conversation has."""

    id: Column | None = None
    started_at: Column | None = None
    ended_at: Column | None = None
    model: Column | None = None
    provider: Column | None = None
    agent: Column | None = None
    policy_version: Column | None = None
    system: Column | None = None
    tools: Column | None = None
    task: Column | None = None
    group: Column | None = None
    sample_index: Column | None = None
    reward: Column | None = None
    finish_reason: Column | None = None
    error: Column | None = None


class MessageColumns(_Table):
    """What a message has."""

    list: Column | None = None
    role: Column | None = None
    text: Column | None = None
    at: Column | None = None
    order: Column | None = None
    id: Column | None = None
    name: Column | None = None
    model: Column | None = None
    reasoning: Column | None = None
    finish_reason: Column | None = None
    input_tokens: Column | None = None
    output_tokens: Column | None = None
    tool: Column | None = None
    arguments: Column | None = None
    call_id: Column | None = None
    result: Column | None = None
    failed: Column | None = None
    duration_ms: Column | None = None


class Turn(_Table):
    """A column that holds the text of one turn."""

    role: Role
    text: Column


class Mapping(_Table):
    """The file, checked."""

    name: Annotated[str, Field(pattern=r"^[\w.-]+$", max_length=100)]
    version: Annotated[int, Field(ge=1, le=2047)] = 1
    rows: Literal["messages", "conversations"]
    conversation: ConversationColumns = ConversationColumns()
    message: MessageColumns = MessageColumns()
    turns: tuple[Turn, ...] = ()
    roles: dict[str, Meaning] = {}
    default_role: Role | None = None
    html: bool = False
    optional: tuple[str, ...] = ()
    grows: bool = False

    @model_validator(mode="after")
    def _whole(self) -> Mapping:
        message = self.message
        if self.rows == "messages":
            if self.conversation.id is None:
                raise ValueError("conversation.id is missing: which column names the conversation of a row?")
            if self.turns or message.list is not None or self.grows:
                raise ValueError('turns, message.list and grows are for rows = "conversations"')
        elif not self.turns and message.list is None:
            raise ValueError("message.list or [[turns]] is missing: which columns hold the messages of a row?")
        if self.turns and message.columns():
            raise ValueError("[[turns]] and [message] exclude each other")
        if not self.turns and message.text is None and message.tool is None:
            raise ValueError("message.text is missing: which column holds what was said?")
        if not self.turns and message.role is None and self.default_role is None:
            raise ValueError("message.role is missing (or default_role): which column tells who spoke?")
        if self.grows and self.conversation.id is None:
            raise ValueError("grows needs conversation.id: a row that is written anew is known by its id")
        return self

    @property
    def digest(self) -> str:
        """A hash of all that the map says."""
        return digest(self.model_dump_json(exclude={"version"}).encode())

    @property
    def adapter_version(self) -> int:
        """The version and 20 bits of the digest, so that a map that says something else is another."""
        return self.version << 20 | int(self.digest[:5], 16)

    def paths(self) -> Iterator[str]:
        """Every path of a row, those of `optional` columns aside."""
        named = [*self.conversation.columns().values(), *(turn.text for turn in self.turns)]
        own = self.message.columns()
        named += [self.message.list] if self.message.list is not None else list(own.values())
        yield from (path for path in dict.fromkeys(named) if path not in self.optional)

    def message_paths(self) -> Iterator[str]:
        """Every path of a message that stands in a list, those of `optional` keys aside."""
        if self.message.list is not None:
            named = (path for name, path in self.message.columns().items() if name != "list")
            yield from (path for path in dict.fromkeys(named) if path not in self.optional)

    def role(self, logged: str) -> str | None:
        """The role that a value of the role column stands for, `ignore` included; None for an unknown one."""
        for name, role in self.roles.items():
            if name.casefold() == logged.strip().casefold():
                return role
        return None


def load_map(path: str | Path) -> Mapping:
    """The checked map. UsageError says in one line what is wrong with it, and where."""
    try:
        with Path(path).open("rb") as file:
            value: dict[str, Any] = tomllib.load(file)
        return Mapping.model_validate(value)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML ({error}); `etl formats --map-example` prints a map") from None
    except ValidationError as error:
        raise UsageError(f"{path}: {_said(error)}; `etl formats --map-example` prints a map") from None


_KINDS = {"extra_forbidden": UNKNOWN, "missing": MISSING}


def _said(error: ValidationError) -> str:
    """What pydantic found, the innermost of each place."""
    found = error.errors(include_url=False)
    inner = [fault["loc"] for fault in found]
    faults = [
        Fault(_KINDS.get(fault["type"], WRONG), fault["loc"], fault["msg"].removeprefix("Value error, "))
        for fault in found
        if not any(len(at) > len(fault["loc"]) and at[: len(fault["loc"])] == fault["loc"] for at in inner)
    ]
    return said(faults, dict(_tables("", Mapping)))


def _tables(name: str, settings: type[BaseModel]) -> Iterator[tuple[str, list[str]]]:
    """Every table of the map with its keys; that of the file itself has no name."""
    yield name, list(settings.model_fields)
    for key, field in settings.model_fields.items():
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and hasattr(inner, "model_fields"):
                yield from _tables(f"{name}.{key}" if name else key, inner)
