"""Threads of Amp: one JSON object a file, `{v, id: "T-…", created, messages, …}`, written anew as it grows.

What a call gave stands in the user's place, with the state of its run. A run's output, content or diff is the text
that came back; the rest of its result stays beside it. Times are those of requests, which older threads do not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapters._blocks import Blocks, identifier, plain
from etl.adapters._blocks import read as read_blocks
from etl.adapters._blocks import result as read_result
from etl.adapters._records import RecordAdapter, left
from etl.adapters._rollouts import count, items, obj, text
from etl.adapters._session import dict_of, noted, summed
from etl.conversation import Conversation, Identity, Message, Outcome, Record, Tokens, ToolCall, Unusable

_ROLES = frozenset({"user", "assistant", "info", "system"})
_AROUND = frozenset({"created", "env", "agentMode", "nextMessageId", "relationships", "meta"})
_TEXTS = ("output", "content", "diff")
"""What of a run's result is its text: the first of these that is there."""
_PENDING = ("in-progress", "queued", "blocked-on-user")
_STATES = {"cancelled": "aborted", "error": "error"}
_COUNTS = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")


class Amp(RecordAdapter):
    """Thread files and exports of the Amp agent."""

    name = "amp"
    version = 1
    about = "Amp threads: {v, id, created, messages, env, meta} a file, results with the state of their run"
    expects = "a thread of Amp is an object with a list of messages"
    ignores: ClassVar[dict[str, str]] = {}

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of the name of a thread beside what only threads have."""
        if not isinstance(value.get("messages"), list) or not str(value.get("id")).startswith("T-"):
            return 0.0
        return 0.95 if "v" in value and _AROUND & value.keys() else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """A conversation a thread."""
        if not isinstance(value.get("messages"), list):
            yield Unusable(record, "no_messages", f"{self.expects}; this has none")
            return
        messages: list[Message] = []
        told: list[Tokens] = []
        for index, item in enumerate(value["messages"]):
            if not isinstance(item, dict) or text(item.get("role")) not in _ROLES:
                yield Unusable(record, "unknown_role", f"messages[{index}] has no known role; see what wrote it")
                return
            messages += _messages(item, told)
            if messages and (running := _running(item.get("content"))):
                noted(messages[-1], "running", running)
        yield _thread(record, value, messages, told)


def _thread(record: Record, value: dict[str, Any], messages: list[Message], told: list[Tokens]) -> Conversation:
    name = text(value.get("id"))
    last = next((item for item in reversed(value["messages"]) if not _only_results(item)), None)
    made = Conversation(messages, [record], native_id=name, conversation_id=name, agent="amp")
    made.started_at = value.get("created") if count(value.get("created")) else None
    made.ended_at = _ended(value)
    state = dict_of(last, "state")
    made.status = _STATES.get(plain(state.get("type")))
    made.error = text(dict_of(state, "error").get("message")) if made.status == "error" else None
    made.parent = _parent(value)
    made.usage = summed(told) or _ledger(value)
    made.flags = {"compacted"} if any(_compacts(message) for message in messages) else None
    made.extra = left(value, ("id", "messages", "created") if made.started_at is not None else ("id", "messages"))
    return made


def _ended(value: dict[str, Any]) -> Any:
    """When the last request or run ended, where the thread says so."""
    for trace in reversed(items(dict_of(value, "meta"), "traces")):
        if ended := text(dict_of({"trace": trace}, "trace").get("endTime")):
            return ended
    return None


def _parent(value: dict[str, Any]) -> Identity | None:
    """The thread that this one was handed off or forked from."""
    for relation in items(value, "relationships"):
        if isinstance(relation, dict) and relation.get("role") == "child" and text(relation.get("threadID")):
            return Identity(relation["threadID"])
    return None


def _compacts(message: Message) -> bool:
    return message.synthetic and any(dict_of({"": part}, "").get("type") == "summary" for part in message.parts or ())


def _messages(item: dict[str, Any], told: list[Tokens]) -> Iterator[Message]:
    """The results in a message, then what was said in it."""
    role = item["role"]
    content = item.get("content")
    blocks = read_blocks(content)
    results = [_result(block) for block in _of_type(content, "tool_result") if not _runs(block)]
    at = dict_of(item, "meta").get("sentAt")
    for result in results:
        result.at = at
    yield from results
    shell = _of_type(content, "manual_bash_invocation")
    if _only_results(item):
        if results and (rest := left(item, ("role", "content", "messageId"))):
            results[-1].extra = {**(results[-1].extra or {}), **rest}
        return
    message = _said(item, blocks, at)
    if not shell or message.content or message.parts or message.extra:
        yield message
    for number, block in enumerate(shell):
        yield from _typed(block, f"{identifier(item.get('messageId')) or 'shell'}.{number}", at)
    if role == "assistant":
        _count(item, message, told)


def _of_type(content: Any, kind: str) -> list[dict[str, Any]]:
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict) and block.get("type") == kind]


def _said(item: dict[str, Any], blocks: Blocks, at: Any) -> Message:
    """What stands in a message; a note of the program, which the model reads in the user's place, as one of its."""
    role = "user" if item["role"] == "info" else item["role"]
    summaries = [plain(dict_of(block, "summary").get("summary")) for block in _of_type(item.get("content"), "summary")]
    said = "\n".join(part for part in (blocks.text, *summaries) if part)
    message = Message(role, said, blocks.reasoning, blocks.calls, at=at, parts=_without_text(blocks.parts))
    message.id = identifier(item.get("messageId"))
    message.synthetic = item["role"] == "info"
    rest = left(item, ("role", "content", "messageId")) or {}
    state = dict_of(item, "state")
    message.finish_reason = text(state.get("stopReason")) or (text(state.get("type")) if state else None)
    if state.keys() <= {"type", "stopReason"} and plain(state.get("type")) in ("complete", message.finish_reason):
        rest.pop("state", None)
    untold = [block for block in blocks.rest or () if block.keys() - {"type", "id", "complete"}]
    if untold:
        rest["blocks"] = untold
    message.extra = rest or None
    return message


def _without_text(parts: list[Any] | None) -> list[Any] | None:
    """Parts, those of a summary without the text that is the message's."""
    found: list[Any] = []
    for part in parts or ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "summary":
            found.append({**part, "summary": left(dict_of(part, "summary"), ("summary",))})
        elif kind != "manual_bash_invocation":
            found.append(part)
    return found or None


def _typed(block: dict[str, Any], name: str, at: Any) -> Iterator[Message]:
    """A command that the person ran themselves, and what it gave."""
    call = ToolCall("Bash", block.get("args"), name, "user")
    yield Message("user", "", calls=[call], at=at, synthetic=True, extra=left(block, ("type", "args", "toolRun")))
    result = _result({"toolUseID": name, "run": dict_of(block, "toolRun")})
    result.at = at
    yield result


def _runs(block: dict[str, Any]) -> bool:
    """Whether a call had given nothing yet when the thread was written."""
    run = dict_of(block, "run")
    return run.get("status") in _PENDING and run.get("result") is None


def _running(content: Any) -> list[Any]:
    """What a thread says of calls that have given nothing yet."""
    return [left(block, ("type",)) for block in _of_type(content, "tool_result") if _runs(block)]


def _only_results(item: dict[str, Any]) -> bool:
    """Whether nobody says anything in a message: it hands results to the model."""
    content = item.get("content")
    return isinstance(content, list) and bool(content) and len(_of_type(content, "tool_result")) == len(content)


def _result(block: dict[str, Any]) -> Message:
    """What a run gave."""
    call_id = next((found for key in ("toolUseID", "tool_use_id") if (found := identifier(block.get(key)))), None)
    run = block.get("run")
    if not isinstance(run, dict):
        told = read_result(block)
        return Message("tool", told.text, call_id=call_id, parts=told.parts, failed=told.failed, extra=told.rest)
    state, result = run.get("status"), run.get("result")
    message = Message("tool", call_id=call_id)
    rest = left(block, ("type", "toolUseID", "tool_use_id", "run")) or {}
    ran = left(run, ("status", "result", "error")) or {}
    if result is not None:
        ran |= _output(result, message)
    elif run.get("error") is not None:
        error = run["error"]
        message.content = (
            error if isinstance(error, str) else text(dict_of(run, "error").get("message")) or plain(error)
        )
        ran |= left(dict_of(run, "error"), ("message",)) or {}
    _judge(message, state, result)
    if isinstance(state, str) and state not in ("done", "error"):
        ran["status"] = state
        message.content = message.content or plain(run.get("reason"))
    message.extra = {**rest, **({"run": ran} if ran else {})} or None
    return message


def _output(result: Any, message: Message) -> dict[str, Any]:
    """Put the text of a result into its message; what else the result says."""
    key = next((key for key in _TEXTS if isinstance(obj({"": result}, "").get(key), str)), None)
    if key is not None:
        message.content = result[key]
        return left(result, (key,)) or {}
    if isinstance(result, list) and all(isinstance(item, str) for item in result):
        message.content = "\n".join(result)
    elif isinstance(result, list) and any(obj({"": item}, "").get("type") in ("text", "image") for item in result):
        blocks = read_blocks(result)
        message.content, message.parts = blocks.text, blocks.parts
    else:
        message.content = plain(result)
    return {}


def _judge(message: Message, state: Any, result: Any) -> None:
    """Whether a run failed: its state, or what its result says of itself."""
    said = obj({"": result}, "")
    code = said.get("exitCode")
    if state == "cancelled":
        message.cancelled = True
    elif state in ("rejected-by-user", "error"):
        message.failed = True
        message.condition = "permission_denied" if state == "rejected-by-user" else None
    elif type(code) is int and code != 0:
        message.failed, message.error = True, f"exit {code}"
    elif state == "done":
        message.failed = said.get("success") is False


def _count(item: dict[str, Any], message: Message, told: list[Tokens]) -> None:
    """The tokens of a request: what was fresh, read from the cache and written to it stand apart."""
    usage = dict_of(item, "usage")
    message.model = text(usage.get("model"))
    message.at = text(usage.get("timestamp")) or message.at
    fresh, read, written = (count(usage.get(key)) for key in _COUNTS)
    sent = count(usage.get("totalInputTokens"))
    if sent is None and fresh is not None:
        sent = fresh + (read or 0) + (written or 0)
    given = count(usage.get("outputTokens"))
    if sent is not None or given is not None:
        message.input_tokens, message.output_tokens = sent, given
        told.append(Tokens(sent, given, read, written))


def _ledger(value: dict[str, Any]) -> Tokens | None:
    """The tokens of a thread whose requests are counted apart from its messages."""
    told = [dict_of(event, "tokens") for event in items(dict_of(value, "usageLedger"), "events")]
    return summed(Tokens(count(each.get("input")), count(each.get("output"))) for each in told if each)
