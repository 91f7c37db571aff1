"""Made-up traffic of a model API: what an agent's calls look like to a proxy, each with all that was said before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.bench.corpus import openai_conversations


def api_calls(seed: int = 0) -> Iterator[dict[str, Any]]:
    """Pairs of request and response, endless: one for each turn of the agent in `openai_conversations`."""
    for conversation in openai_conversations(seed):
        messages, started = conversation["messages"], conversation["created_at"]
        for at, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            request = {"model": conversation["model"], "messages": messages[:at], "tools": conversation["tools"]}
            finish = "tool_calls" if message.get("tool_calls") else "stop"
            response = {
                "id": f"chatcmpl-{conversation['id']}-{at}",
                "object": "chat.completion",
                "created": started + at,
                "model": conversation["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": {"prompt_tokens": 900 + at, "completion_tokens": 40, "total_tokens": 940 + at},
            }
            yield {
                "timestamp": started + at,
                "url": "https://api.openai.com/v1/chat/completions",
                "status": 200,
                "request": request,
                "response": response,
            }
