"""Results in the spellings of the AI SDK, Haystack and Amp: none of them empty, none of them a success that failed."""

from __future__ import annotations

from etl.adapters._blocks import read
from etl.adapters._chat import chat_messages


def test_an_output_of_the_ai_sdk_says_whether_it_failed() -> None:
    def told(output: dict[str, object]) -> tuple[str, bool | None]:
        (found,) = read([{"type": "tool-result", "toolCallId": "c1", "toolName": "f", "output": output}]).results or []
        return found.text, found.failed

    assert told({"type": "error-text", "value": "down"}) == ("down", True)
    assert told({"type": "json", "value": {"t": 3}}) == ('{"t":3}', None)
    assert told({"type": "execution-denied", "reason": "not now"}) == ("not now", True)
    assert told({"type": "celsius", "value": 3}) == ('{"type":"celsius","value":3}', None)


def test_a_block_of_haystack_says_by_its_key_what_it_is() -> None:
    origin = {"tool_name": "f", "arguments": {"a": 1}, "id": "c1"}
    (call,) = read([{"tool_call": origin}]).calls or []
    assert (call.name, call.arguments, call.id) == ("f", {"a": 1}, "c1")
    made = chat_messages(
        {"role": "tool", "content": [{"tool_call_result": {"result": "42", "error": True, "origin": origin}}]}
    )
    assert not isinstance(made, str)
    assert [(each.content, each.call_id, each.name, each.failed) for each in made] == [("42", "c1", "f", True)]


def test_a_result_of_amp_stands_in_its_run() -> None:
    block = {"type": "tool_result", "toolUseID": "t1", "run": {"status": "error", "error": {"message": "no shell"}}}
    (found,) = read([block]).results or []
    assert (found.call_id, found.text, found.failed) == ("t1", '{"message":"no shell"}', True)
