"""Gemini `generateContent`, at Google AI or Vertex: contents of parts, calls that usually have no id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etl.adapters._api_form import (
    Answered,
    Asked,
    Body,
    Choice,
    Codec,
    arr,
    count,
    error_text,
    kept,
    obj,
    text,
    total,
    without,
)
from etl.adapters._blocks import identifier, plain
from etl.conversation import Message, Tokens, ToolCall

_ROLES = {"user": "user", "model": "assistant", "function": "user", "system": "system", "assistant": "assistant"}
_OUTPUTS = ("output", "result", "return_value", "error")
_REST = {
    "finish_reason": "finishReason", "usage_metadata": "usageMetadata", "model_version": "modelVersion",
    "response_id": "responseId", "create_time": "createTime", "prompt_feedback": "promptFeedback",
    "block_reason": "blockReason", "prompt_token_count": "promptTokenCount", "executable_code": "executableCode",
    "candidates_token_count": "candidatesTokenCount", "thoughts_token_count": "thoughtsTokenCount",
    "cached_content_token_count": "cachedContentTokenCount", "code_execution_result": "codeExecutionResult",
    "tool_use_prompt_token_count": "toolUsePromptTokenCount",
}  # fmt: skip
"""Keys as Python clients log them → the REST API's own."""
_FUNCTION_KEYS = ("functionDeclarations", "function_declarations")


def _either(body: Body, camel: str, snake: str) -> Any:
    """The REST API's own spelling, or the one that Python clients log."""
    found = body.get(camel)
    return body.get(snake) if found is None else found


def _rest_keys(body: Body) -> Body:
    """A body that a Python client dumped, by the keys of the REST API."""
    return {_REST.get(key, key): value for key, value in body.items()}


def _finish(value: Any) -> str | None:
    """`STOP`, also where an enum's own text was logged."""
    said = text(value)
    return said.removeprefix("FinishReason.") if said else None


def _asked(body: Body) -> Asked:
    """`{contents, systemInstruction, tools[{functionDeclarations}], generationConfig, …}`; the SDK's own `config`."""
    if type(body.get("config")) is dict:
        body = {**without(body, "config"), **body["config"]}
    system = _either(body, "systemInstruction", "system_instruction")
    contents = body.get("contents")
    given = contents if type(contents) is list else [] if contents is None else [contents]
    items: list[Any] = [{"role": "system", **_content(system)}] if system else []
    items += [item if type(item) is dict and "parts" in item else {"role": "user", **_content(item)} for item in given]
    tools, others = _tools(arr(body.get("tools")))
    rest = without(body, "contents", "systemInstruction", "system_instruction", "tools", "model")
    if others:
        rest["tools"] = others
    return Asked(items, tools or None, text(body.get("model")), rest=rest)


def _content(value: Any) -> Body:
    if type(value) is dict and "parts" in value:
        return {key: item for key, item in value.items() if key != "role"}
    return {"parts": value if type(value) is list else [{"text": value} if type(value) is str else value]}


def _tools(logged: list[Any]) -> tuple[list[Any], list[Any]]:
    """Function declarations in the flat form; and the provider's own tools, which have no definition."""
    functions: list[Any] = []
    others: list[Any] = []
    for tool in logged:
        declared = next((tool[key] for key in _FUNCTION_KEYS if key in tool), None) if type(tool) is dict else None
        for function in arr(declared):
            made = dict(obj(function))
            for key in ("parametersJsonSchema", "parameters_json_schema"):
                if key in made:
                    made.setdefault("parameters", made.pop(key))
            functions.append(made)
        left = without(tool, *_FUNCTION_KEYS) if type(tool) is dict else tool
        if left:
            others.append(left)
    return functions, others


def message(item: Any) -> list[Message]:
    """One content: what functions gave is a message each, before the rest."""
    if type(item) is not dict:
        return [Message("user", plain(item))]
    logged = item.get("role")
    role = _ROLES.get(logged) if type(logged) is str else None
    parts = item.get("parts")
    read = _parts(parts if type(parts) is list else [] if parts is None else [parts], role or "user")
    if role is None and logged is not None:
        kept(read[0], role=logged)
    kept(read[-1], **without(item, "role", "parts"))
    return read


def _parts(parts: list[Any], role: str) -> list[Message]:
    made: list[Message] = []
    current = Message(role)
    pieces: list[str] = []
    for part in parts:
        if type(part) is not dict:
            pieces.append(plain(part))
            continue
        part = _rest_keys(part)
        answer = _result(part)
        if answer is not None:
            if role == "assistant" and (pieces or current.calls or current.parts):
                made.append(_closed(current, pieces))
                current, pieces = Message(role), []
            made.append(answer)
        else:
            _take(part, current, pieces)
    if pieces or current.calls or current.parts or current.reasoning or not made:
        made.append(_closed(current, pieces))
    return made


def _closed(message: Message, pieces: list[str]) -> Message:
    message.content = "".join(pieces)
    return message


def _take(part: Body, message: Message, pieces: list[str]) -> None:
    """Text, thought, call or media; a thought's signature stays a part beside what it signs."""
    left = {key: value for key, value in part.items() if value is not None}
    call = left.pop("functionCall", None) or left.pop("function_call", None)
    if type(call) is dict and text(call.get("name")):
        made = ToolCall(call["name"], call.get("args"), identifier(call.get("id")))
        message.calls = [*(message.calls or ()), made]
        _keep(message, without(call, "name", "args", "id"))
    elif call is not None:
        left["functionCall"] = call
    _server_call(left, message)
    if type(left.get("text")) is str:
        said = left.pop("text")
        if left.pop("thought", None) is True:
            message.reasoning = f"{message.reasoning}\n{said}" if message.reasoning else said
        else:
            pieces.append(said)
    if left:
        message.parts = [*(message.parts or ()), left]


def _keep(message: Message, rest: Body) -> None:
    if rest:
        message.parts = [*(message.parts or ()), {"functionCall": rest}]


def _server_call(left: Body, message: Message) -> None:
    """Code that the provider ran, and tools of its own."""
    code = left.get("executableCode")
    if type(code) is dict:
        call = ToolCall("code_execution", code, identifier(code.get("id")), actor="server")
        message.calls = [*(message.calls or ()), call]
        del left["executableCode"]
    own = left.get("toolCall")
    if type(own) is dict:
        name = text(own.get("name")) or text(own.get("toolType")) or "tool"
        arguments = own.get("args") if type(own.get("args")) is dict else without(own, "id", "name", "toolType")
        message.calls = [*(message.calls or ()), ToolCall(name, arguments, identifier(own.get("id")), actor="server")]
        del left["toolCall"]


def _result(part: Body) -> Message | None:
    """What a function, or the provider's own code or tool, gave."""
    found = part.get("functionResponse") or part.get("function_response")
    if type(found) is dict:
        given = found.get("response")
        inner = obj(given)
        said = next((inner[key] for key in _OUTPUTS if key in inner and len(inner) == 1), given)
        made = Message(
            "tool", plain(said), call_id=identifier(found.get("id")), name=text(found.get("name")),
            parts=arr(found.get("parts")) or None, failed=True if set(inner) == {"error"} else None,
        )  # fmt: skip
        return kept(made, result=without(found, "response", "id", "name", "parts"))
    ran = part.get("codeExecutionResult")
    if type(ran) is dict:
        outcome = text(ran.get("outcome"))
        failed = None if outcome is None else outcome != "OUTCOME_OK"
        made = Message(
            "tool", plain(ran.get("output")), name="code_execution", call_id=identifier(ran.get("id")), failed=failed
        )
        return kept(made, outcome=outcome)
    own = part.get("toolResponse")
    if type(own) is dict:
        made = Message(
            "tool", plain(own.get("response")), name=text(own.get("toolType")), call_id=identifier(own.get("id"))
        )
        return kept(made, **without(part, "toolResponse"))
    return None


def usage(logged: Any) -> Tokens | None:
    """`usageMetadata`: thoughts and tool prompts are counted beside, cached tokens inside the prompt."""
    told = _rest_keys(obj(logged))
    found = Tokens(
        total(count(told.get("promptTokenCount")), count(told.get("toolUsePromptTokenCount"))),
        total(count(told.get("candidatesTokenCount")), count(told.get("thoughtsTokenCount"))),
        count(told.get("cachedContentTokenCount")),
        None,
        count(told.get("thoughtsTokenCount")),
    )
    return found if found != Tokens() else None


def _answered(body: Body) -> Answered:
    """`{candidates[{content, finishReason}], promptFeedback, usageMetadata, modelVersion, responseId}`."""
    body = _rest_keys(body)
    choices = []
    for candidate in map(_rest_keys, map(obj, arr(body.get("candidates")))):
        content = obj(candidate.get("content"))
        read = message({**content, "role": "model"})
        rest = without(candidate, "content", "finishReason", "index")
        choices.append(Choice(read, _finish(candidate.get("finishReason")), rest))
    blocked = text(_rest_keys(obj(body.get("promptFeedback"))).get("blockReason"))
    failed = error_text(body) if "error" in body else blocked
    held = ("candidates", "modelVersion", "responseId", "createTime", "error", "unfinished")
    return Answered(
        choices, identifier(body.get("responseId")), text(body.get("modelVersion")), body.get("createTime"),
        usage(body.get("usageMetadata")), failed, body.get("unfinished") is not True, rest=without(body, *held),
    )  # fmt: skip


def _joined(chunks: Sequence[Any]) -> Body:
    """Chunks, each with some parts of each candidate; counts are those of the last chunk that has them."""
    body: Body = {}
    candidates: dict[int, Body] = {}
    for chunk in map(_rest_keys, map(obj, chunks)):
        body.update({key: value for key, value in chunk.items() if key != "candidates" and value is not None})
        for place, part in enumerate(map(_rest_keys, map(obj, arr(chunk.get("candidates"))))):
            logged = part.get("index")
            index: int = logged if type(logged) is int else place
            candidate = candidates.setdefault(index, {"content": {"role": "model", "parts": []}})
            candidate["content"]["parts"] += _run(
                candidate["content"]["parts"], arr(obj(part.get("content")).get("parts"))
            )
            candidate.update({key: value for key, value in part.items() if key != "content" and value is not None})
    if candidates:
        body["candidates"] = [candidates[index] for index in sorted(candidates)]
        if not any(candidate.get("finishReason") for candidate in candidates.values()):
            body["unfinished"] = True
    return body


def _run(before: list[Any], parts: list[Any]) -> list[Any]:
    """The parts that are new; text that goes on is added to the last part, thoughts to thoughts."""
    new: list[Any] = []
    for part in parts:
        last: Any = new[-1] if new else before[-1] if before else None
        if _only_text(part) and _only_text(last) and part.get("thought") == last.get("thought"):
            last["text"] += part["text"]
        else:
            new.append(dict(part) if type(part) is dict else part)
    return new


def _only_text(part: Any) -> bool:
    return type(part) is dict and type(part.get("text")) is str and set(part) <= {"text", "thought"}


GEMINI = Codec("gemini", "google", _asked, message, _answered, _joined)
