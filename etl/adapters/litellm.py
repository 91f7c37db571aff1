"""Logs of a LiteLLM proxy: `StandardLoggingPayload` as its callbacks write it, and rows of its table of spend logs.

Texts of a spend log are JSON once more. Where the proxy is told not to keep messages it puts a placeholder in their
place: such a call has its model, usage and times, and nothing is said to have been asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_calls import Exchange, outcomes
from etl.adapters._api_chain import Memory
from etl.adapters._api_choice import NO_CONVERSATION, kind_of
from etl.adapters._api_form import Body, arr, count, obj, text, without
from etl.adapters._api_rows import conversations
from etl.adapters._chat import parsed
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Tokens, Unusable

_PLACEHOLDERS = frozenset({"default-message-value", "redacted-by-litellm"})
_OTHER_TYPES = (
    ("embedding", "embeddings"), ("moderation", "moderation"), ("image", "media"), ("speech", "media"),
    ("transcription", "media"), ("rerank", "rerank"), ("file", "files"), ("batch", "batches"),
    ("fine_tun", "fine_tuning"), ("count_tokens", "token_count"), ("assistant", "assistants"), ("thread", "assistants"),
)  # fmt: skip
_NONE = ("None", "null", "")


class LiteLlm(Adapter):
    """Calls that went through LiteLLM."""

    name = "litellm"
    version = 4
    about = "LiteLLM proxy and callbacks: StandardLoggingPayload (standard_logging_object) lines, spend log rows"
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = NO_CONVERSATION

    def score(self, sample: Sample) -> float:
        """The share of values with the keys that only LiteLLM writes."""
        return sum(map(_looks, sample.values)) / len(sample.values) if sample.values else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The fragments of every call."""
        memory = Memory()
        for record in records:
            value = _payload(record.value)
            if value is None:
                yield Unusable(record, "no_call", "a LiteLLM record has a call_type and messages; this has none")
                continue
            rule = next((rule for part, rule in _OTHER_TYPES if part in str(value.get("call_type")).lower()), None)
            if rule is not None:
                yield Ignored(rule)
            else:
                yield from outcomes(_exchange(record, value), memory)

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The conversations that the calls of a family are."""
        yield from conversations(family)


def _payload(value: Any) -> Body | None:
    """The payload of a record: itself, or under the name that callbacks hand it on by."""
    inner = obj(value).get("standard_logging_object")
    found = inner if type(inner) is dict else obj(value)
    return found if "call_type" in found else None


def _looks(value: Any) -> float:
    found = _payload(value)
    if found is None or not ({"startTime", "start_time"} & found.keys()):
        return 0.0
    return 0.97 if {"messages", "response"} & found.keys() else 0.5


def _exchange(record: Record, value: Body) -> Exchange:
    log = {key: None if type(item) is str and item in _NONE else item for key, item in value.items()}
    messages, response = _opened(log.pop("messages", None)), _opened(log.pop("response", None))
    parameters = obj(_opened(log.pop("model_parameters", None)))
    for key in ("metadata", "request_tags", "proxy_server_request"):
        if key in log:
            log[key] = _opened(log[key])
    sent = _sent(log)
    if sent is not None:  # newer proxies store what was sent, some of them without messages beside it
        given = sent.pop("messages", None) or sent.pop("input", None)
        parameters = {**parameters, **sent}
        if not messages or messages == given:
            messages = given
            del log["proxy_server_request"]
    made = Exchange((record,), None, response, log=log)
    made.captured = _captured(messages, response, log)
    if not made.captured:
        log["not_captured"] = [item for item in (messages, response) if item and _placeholder(item)]
        made.response = None if _placeholder(response) else response
        messages = []
    made.request = _request(messages, response, parameters, log)
    made.api = _api(made.request, obj(response), str(value.get("call_type")))
    made.id = text(log.pop("id", None)) or text(log.pop("request_id", None))
    if made.id is not None and made.id != text(obj(response).get("id")):
        log["id"] = made.id  # the gateway's own, by which an operator finds the call again
    made.at, made.ended_at = (
        log.pop("startTime", log.pop("start_time", None)),
        log.pop("endTime", log.pop("end_time", None)),
    )
    made.provider = text(log.pop("custom_llm_provider", None))
    made.model = text(log.get("model"))
    made.scope = "/".join(found for found in _scope(log) if found) or None
    made.error = _error(log)
    _usage(made, obj(response), log)
    return made


def _sent(log: Body) -> Body | None:
    """The request as the proxy's client sent it, where the log has it: a body, or HTTP with one."""
    held = obj(log.get("proxy_server_request"))
    body = obj(held.get("body")) or held
    return dict(body) if type(body.get("messages")) is list or type(body.get("input")) in (str, list) else None


def _opened(value: Any) -> Any:
    """A value, or the one that its JSON text says."""
    if type(value) is str and value.lstrip()[:1] in ("{", "["):
        found = parsed(value)
        return value if found is None else found
    return value


def _placeholder(value: Any) -> bool:
    """Whether a placeholder stands where content was."""
    if type(value) is str:
        return value in _PLACEHOLDERS
    if type(value) is list:
        return any(_placeholder(obj(item).get("content")) for item in value)
    said = obj(value)
    if said.get("text") in ("redacted-by-litellm",):
        return True
    return any(_placeholder(obj(obj(item).get("message")).get("content")) for item in arr(said.get("choices")))


def _captured(messages: Any, response: Any, log: Body) -> bool:
    """Whether the log has what was said; a failed call needs no response."""
    return bool(messages) and not _placeholder(messages) and not _placeholder(response)


def _request(messages: Any, response: Any, parameters: Body, log: Body) -> Body:
    given: Any = [{"role": "user", "content": messages}] if type(messages) is str else messages
    body = {**parameters, "model": log.get("model")}
    if "output" in obj(response) or "response" in str(log.get("call_type")):
        return {**body, "input": given}
    return {**body, "messages": given if type(given) is list else [given] if given else []}


def _api(request: Body, response: Body, call_type: str) -> str:
    if "input" in request:
        return "openai_responses"
    if "anthropic" in call_type:
        return "anthropic_messages"
    kind = kind_of(None, request, response)
    # LiteLLM turns every provider's answers into OpenAI's form; its routes for other forms pass them through.
    return (
        kind if kind in ("anthropic_messages", "gemini") and "choices" not in response and response else "openai_chat"
    )


def _scope(log: Body) -> Iterator[str | None]:
    """Whose call it was: the end user, the key, the session that a client declared."""
    metadata = obj(log.get("metadata"))
    yield text(log.get("end_user")) or text(log.get("user"))
    yield text(metadata.get("user_api_key_hash"))
    yield text(log.get("session_id")) or text(metadata.get("session_id"))


def _error(log: Body) -> str | None:
    told = obj(log.get("error_information"))
    failed = log.get("status") == "failure"
    said = text(log.get("error_str")) or text(told.get("error_message"))
    kind = text(told.get("error_class"))
    if not (said or kind or failed):
        return None
    if said and kind and kind not in said:
        return f"{kind}: {said}"
    return said or kind or "the call failed"


def _usage(made: Exchange, response: Body, log: Body) -> None:
    """Counts beside the response, where that has none; zeros under a larger total are no counts."""
    read, written, whole = (count(log.get(key)) for key in ("prompt_tokens", "completion_tokens", "total_tokens"))
    cost = log.get("response_cost", log.get("spend"))
    made.usage = Tokens(cost_usd=cost if type(cost) in (int, float) else None)
    told = without(obj(response.get("usage")), "total_tokens")
    if not told:
        if whole and not (read or written):
            made.flags.add("usage_partial")
        else:
            made.usage.input_tokens, made.usage.output_tokens = read, written
    if made.usage == Tokens():
        made.usage = None
