"""Inputs and outputs of runs, as frameworks hand them to Langfuse and LangSmith, into a history and answers.

A run's input is a provider's request, a list of messages, the state of a graph, the variables of a template, or plain
text; its output a provider's response, generations of LangChain, messages, calls, or text. LangChain's own messages are
read first (`_langchain.py`), what OpenTelemetry has in common by `_otlp_exchange.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from etl.adapters._blocks import plain
from etl.adapters._langchain import chat_form, is_pair, opened_all, printed_message
from etl.adapters._otlp_exchange import request, response
from etl.adapters._otlp_messages import is_item, joined, messages
from etl.adapters._otlp_threads import atoms
from etl.adapters._otlp_turn import Turn, one_answer
from etl.adapters._run_usage import usage_of
from etl.conversation import Message

_BLOCKS = frozenset(
    {
        "text",
        "image",
        "image_url",
        "input_text",
        "output_text",
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
    }
    | {"document", "input_image", "file", "input_file", "audio", "input_audio", "server_tool_use", "reasoning"}
)
_ASKED = ("messages", "input", "contents", "prompt", "prompts", "chat_history", "query", "question", "new_message")
_AROUND = ("system", "instructions", "system_instruction", "systemInstruction", "system_prompt", "config", "tools")
"""What a request says beside its messages."""
_INSIDE = ("args", "kwargs", "inputs", "request", "body", "data")
"""Keys under which a decorator keeps the arguments that it saw."""
_LINE = re.compile(r"^(system|developer|user|assistant|human|ai): ", re.MULTILINE | re.IGNORECASE)
_ANSWERS = ("output", "outputs", "response", "result", "answer", "final_output", "completion", "return_values")
_TOOLS = ("tools", "functions", "tool_definitions")


class Asked(msgspec.Struct):
    """What a run was given."""

    history: list[Message] = []
    tools: Any = None


def asked(value: Any, known: dict[bytes, list[Message]] | None = None) -> Asked:
    """The history (and the tools that were offered) that an input holds.

    `known`: messages that were read before, by their JSON: every history repeats the one before it. They are shared:
    copy one before changing it.

    >>> [(m.role, m.content) for m in asked('{"messages": [["human", "Hi"]]}').history]
    [('user', 'Hi')]
    >>> asked({"input": "ping"}).history[0].content, asked('{"topic": "bears"}').history[0].content
    ('ping', 'bears')
    """
    value = opened_all(value)
    known = {} if known is None else known
    if value in (None, "", [], {}):
        return Asked()
    if isinstance(value, str):
        return Asked(_transcript(value))
    if isinstance(value, list):
        return _listed(value, known)
    return _given(value, known) if isinstance(value, dict) else Asked([Message("user", plain(value))])


def _given(value: dict[str, Any], known: dict[bytes, list[Message]]) -> Asked:
    """An object: one message, a request, or anything with the words of a person in it."""
    tools = next((value[key] for key in _TOOLS if value.get(key)), None)
    if isinstance(value.get("new_message"), dict):
        value = {**value, "messages": [value["new_message"]]}
    listed = value.get("messages", value.get("prompts"))
    if isinstance(listed, list) and listed:
        told = _listed(listed, known)
        beside = {key: value[key] for key in _AROUND if value.get(key)}
        around = request({**beside, "messages": []}) if beside else None
        leading = [message for message in around.history if message.role != "user"] if around is not None else []
        return Asked([*leading, *told.history], tools or (around.tools if around is not None else None) or told.tools)
    value = chat_form(value)
    if _is_message(value):
        return Asked(finished(messages(value)), tools)
    if any(value.get(key) for key in _ASKED):
        before = _chat_history(value)
        made = request({key: item for key, item in value.items() if not before or key != "chat_history"})
        return Asked(finished([*before, *made.history]), tools or made.tools)
    for key in _INSIDE:
        if isinstance(value.get(key), (dict, list)) and value[key]:
            inner = asked(value[key], known)
            if inner.history:
                return Asked(inner.history, tools or inner.tools)
    only = _only_text(value)
    return Asked([Message("user", only if only is not None else plain(value))], tools)


def _chat_history(value: dict[str, Any]) -> list[Message]:
    """Earlier turns that stand beside the new question."""
    before = value.get("chat_history", value.get("history"))
    question = any(isinstance(value.get(key), str) and value[key] for key in ("input", "question", "query"))
    return messages(before) if isinstance(before, list) and question else []


def _listed(value: list[Any], known: dict[bytes, list[Message]]) -> Asked:
    """A list: messages, the blocks of one message, or texts."""
    if len(value) == 1 and isinstance(value[0], list) and not is_pair(value[0]):
        value = value[0]
    said, tools = _without_tools(value)
    if said and all(_is_block(item) for item in said):
        said = [{"role": "user", "content": said}]
    found: list[Message] = []
    for item in said:
        name = msgspec.json.encode(item)
        if name not in known:
            known[name] = finished(messages(chat_form([item], listed=True)))
        made = known[name]
        if found and made and is_item(item) and found[-1].role == made[0].role == "assistant":
            found[-1], made = joined(found[-1], made[0]), made[1:]
        found += made
    return Asked(found, tools)


def _without_tools(listed: list[Any]) -> tuple[list[Any], Any]:
    """The messages of a list, and the tool definitions that a callback handler puts behind them as `role: tool`."""
    said, tools = [], []
    for item in listed:
        defined = item.get("content") if isinstance(item, dict) and item.get("role") == "tool" else None
        if isinstance(defined, dict) and not item.get("tool_call_id") and _is_definition(defined):
            tools.append(defined)
        else:
            said.append(item)
    return said, tools or None


def _is_definition(value: dict[str, Any]) -> bool:
    inner = value.get("function", value)
    return (
        isinstance(inner, dict)
        and isinstance(inner.get("name"), str)
        and bool(inner.keys() & {"parameters", "input_schema", "inputSchema", "description", "json_schema"})
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def _is_block(value: Any) -> bool:
    kind = value.get("type") if isinstance(value, dict) and "role" not in value else None
    return isinstance(kind, str) and kind in _BLOCKS


def _only_text(value: dict[str, Any]) -> str | None:
    """The text of an object that holds no other."""
    texts = [item for item in value.values() if isinstance(item, str) and item.strip()]
    others = [item for item in value.values() if not isinstance(item, str) and item not in (None, [], {})]
    return texts[0] if len(texts) == 1 and not others else None


def _transcript(text: str) -> list[Message]:
    """Plain text; where it begins with a role and a colon (as some instrumentations print a history), its turns.

    >>> [(m.role, m.content) for m in _transcript("system: Be brief.\\nuser: Say: hi")]
    [('system', 'Be brief.'), ('user', 'Say: hi')]
    """
    starts = list(_LINE.finditer(text))
    if not starts or starts[0].start() != 0:
        printed = printed_message(text)
        return [Message("user", printed["content"] if printed is not None else text)]
    ends = [*(mark.start() for mark in starts[1:]), len(text)]
    turns = [
        {"role": mark[1].lower(), "content": text[mark.end() : end].strip("\n")}
        for mark, end in zip(starts, ends, strict=True)
    ]
    return [made for turn in turns for made in messages(turn)]


def answered(value: Any) -> list[list[Message]]:
    """The answers that an output holds, one list of messages for each choice.

    >>> answered({"generations": [[{"text": "Oslo.", "generation_info": {"finish_reason": "stop"}}]]})[0][0].content
    'Oslo.'
    >>> answered('[{"toolCallId": "c1", "toolName": "search", "input": "{}"}]')[0][0].calls[0].name
    'search'
    """
    value = chat_form(opened_all(value), listed=True)
    if value in (None, "", [], {}):
        return []
    return [one_answer(finished(answer)) for answer in _answers(value) if answer]


def _answers(value: Any) -> list[list[Message]]:
    if isinstance(value, str):
        printed = printed_message(value)
        return [[Message("assistant", printed["content"] if printed is not None else value)]]
    if isinstance(value, list):
        return _answer_list(value)
    if not isinstance(value, dict):
        return [[Message("assistant", plain(value))]]
    if _is_message(value):
        return [messages(_ended(value), "assistant")]
    if isinstance(value.get("generations"), list):
        listed = value["generations"]
        listed = listed[0] if len(listed) == 1 and isinstance(listed[0], list) else listed
        return [made for item in listed if (made := _generation(item))]
    if any(isinstance(value.get(key), list) for key in ("choices", "candidates", "messages")):
        return response(value)
    if isinstance(value.get("message"), dict) or isinstance(value.get("content"), (dict, list)):
        return _response(value)
    if (
        isinstance(value.get("output"), list)
        and value["output"]
        and all(isinstance(item, dict) for item in value["output"])
    ):
        return response(value)
    for key in _ANSWERS:
        if value.get(key) not in (None, "", [], {}):
            return answered(value[key])
    for key in ("content", "text"):
        if isinstance(value.get(key), str) and value[key]:
            return [[Message("assistant", value[key])]]
    only = _only_text(value)
    return [[Message("assistant", only if only is not None else plain(value))]]


def _response(value: dict[str, Any]) -> list[list[Message]]:
    """A message inside something: a choice event, Gemini's content, blocks without a role."""
    inner = value.get("message", value.get("content"))
    if isinstance(inner, list):
        inner = {"role": "assistant", "content": inner}
    reason = next(
        (why for key in ("finish_reason", "finishReason", "stop_reason") if (why := _reason(value.get(key)))),
        None,
    )
    found = messages({"role": "assistant", **inner} if isinstance(inner, dict) else inner, "assistant")
    spoken = [message for message in found if message.role == "assistant"]
    if spoken and spoken[-1].finish_reason is None:
        spoken[-1].finish_reason = reason
    return [found]


def _reason(value: Any) -> str | None:
    """Why an answer ended: a word, or the AI SDK's `{unified, raw}`."""
    value = value.get("unified") if isinstance(value, dict) else value
    return value if isinstance(value, str) else None


def _ended(value: dict[str, Any]) -> dict[str, Any]:
    """A provider's message with the reason why it ended under its usual name."""
    if isinstance(value.get("stop_reason"), str):
        value = {
            **{key: item for key, item in value.items() if key != "stop_reason"},
            "finish_reason": value["stop_reason"],
        }
    if value.get("type") == "message":
        value = {key: item for key, item in value.items() if key not in ("type", "stop_sequence")}
    return value


def _generation(item: Any) -> list[Message]:
    """One generation of LangChain: a chat message with what is known of it, or text."""
    if isinstance(item, list):
        item = item[0] if item else None
    if not isinstance(item, dict):
        return messages(item, "assistant") if item is not None else []
    said = item if _is_message(item) else item.get("message")
    if isinstance(said, dict):
        found = messages({"role": "assistant", **_ended(said)}, "assistant")
    else:
        found = [Message("assistant", plain(item.get("text", item.get("content"))))]
    info = item.get("generation_info", item.get("generationInfo"))
    reason = info.get("finish_reason", info.get("stop_reason")) if isinstance(info, dict) else None
    if found and found[-1].finish_reason is None and isinstance(reason, str):
        found[-1].finish_reason = reason
    return found


def _answer_list(value: list[Any]) -> list[list[Message]]:
    """A list: the calls of an answer, its blocks, its messages, or choices."""
    if len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if value and all(isinstance(item, dict) and "role" not in item and _is_call(item) for item in value):
        return [messages({"role": "assistant", "content": "", "tool_calls": value}, "assistant")]
    if value and all(_is_block(item) for item in value):
        return [messages(chat_form({"role": "assistant", "content": value}), "assistant")]
    if value and all(isinstance(item, dict) and isinstance(item.get("message"), dict) for item in value):
        return response({"choices": value})
    return [messages([_ended(item) if isinstance(item, dict) else item for item in value], "assistant")]


def _is_call(item: dict[str, Any]) -> bool:
    named = isinstance(item.get("toolName"), str) or isinstance(item.get("function"), dict)
    return named or (
        isinstance(item.get("name"), str) and bool(item.keys() & {"args", "arguments"}) and "type" not in item
    )


def finished(found: list[Message]) -> list[Message]:
    """Take off the messages again what LangChain's forms carry along: counts, a failed tool."""
    for message in found:
        extra = message.extra
        if not extra:
            continue
        if message.role == "tool" and isinstance(extra.get("is_error"), bool):
            message.failed = extra.pop("is_error")
        usage = usage_of(extra.get("usage"))
        if usage is not None and message.role == "assistant":
            message.input_tokens, message.output_tokens = usage.input_tokens, usage.output_tokens
            extra.pop("usage")
        message.extra = extra or None
    return found


def turn(given: Asked, said: list[list[Message]]) -> Turn:
    """The turn of one run. The state of a graph comes back with the history in front: this is told once, and what a
    run added before its last word belongs to the history.
    """
    history = list(given.history)
    if len(said) == 1:
        start = _earlier(said[0], history) if history and any(message.role == "user" for message in said[0]) else 0
        history, answer = said[0][:start] + history, said[0][start:]
        answer = _rest(answer, history[start:])
        last = next((index for index in range(len(answer) - 1, -1, -1) if answer[index].role == "assistant"), None)
        if last is None or any(message.role == "user" for message in answer[last:]):
            return Turn(history + answer, [], given.tools)
        history, said = history + answer[:last], [answer[last:]]
    return Turn(history, said, given.tools)


def _rest(answer: list[Message], history: list[Message]) -> list[Message]:
    """The answer without the history that it begins with (system messages aside, which a graph's state has not)."""
    for start in (0, sum(1 for message in history if message.role in ("system", "developer"))):
        told = _words(history[start:])
        if told and len(answer) > len(history) - start and _words(answer[: len(history) - start]) == told:
            return answer[len(history) - start :]
    return answer


def _earlier(answer: list[Message], history: list[Message]) -> int:
    """How many messages of a graph's state stand before those that the graph was given: turns of earlier runs."""
    words = _words(history)
    for start in range(len(answer) - len(history), 0, -1):
        if _words(answer[start : start + len(history)]) == words:
            return start
    return 0


def _words(told: Iterable[Message]) -> list[Any]:
    return [atom for message in told for atom in atoms(message)]
