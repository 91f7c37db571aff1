"""Made-up traffic of any size, seeded, with the shape of real agent logs: long policies, tool schemas, mixed tool
results.

Words are drawn from a Zipf-like vocabulary, so that decoding and compression cost what they cost on real text.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SYLLABLES = [
    "ba", "be", "bi", "bo", "ca", "ce", "co", "cu", "da", "de", "di", "do", "fa", "fe", "fi", "ga", "ge", "go",
    "ha", "he", "in", "ka", "ke", "la", "le", "li", "lo", "ma", "me", "mi", "mo", "na", "ne", "no", "pa", "pe",
    "po", "ra", "re", "ri", "ro", "sa", "se", "si", "so", "ta", "te", "ti", "to", "va", "ve", "wi", "xo", "ya",
    "za",
]  # fmt: skip
_COMMON = [
    "the", "of", "and", "to", "in", "is", "for", "that", "on", "with", "as", "are", "be", "this", "by", "from",
    "or", "an", "not", "at", "have", "it", "was", "which", "can", "will", "if", "all", "has", "one", "more",
]  # fmt: skip


class Words:
    """A seeded source of words, sentences, values and JSON."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        made = ["".join(self.random.choices(_SYLLABLES, k=self.random.randint(1, 4))) for _ in range(20_000)]
        self._words = _COMMON + made
        weights = [1 / (rank + 3) for rank in range(len(self._words))]
        self._cumulative = list(itertools.accumulate(weights))

    def text(self, characters: int) -> str:
        """About so many characters of prose, with sentences, numbers and line ends."""
        words = self.random.choices(self._words, cum_weights=self._cumulative, k=max(1, characters // 6))
        for at in range(9, len(words), 13):
            words[at] = words[at] + self.random.choice((".", ".", ",", ":", ".\n"))
        for at in range(17, len(words), 41):
            words[at] = str(self.random.randint(1, 99_999))
        return " ".join(words)

    def size(self, median: int, most: int) -> int:
        """A log-normal size."""
        return min(most, int(median * self.random.lognormvariate(0, 1)))

    def data(self, characters: int) -> str:
        """A JSON result of about that size."""
        rows: list[dict[str, Any]] = []
        left = characters
        while left > 0:
            row = {
                "id": self.random.getrandbits(48),
                "name": self.text(18),
                "price": round(self.random.uniform(1, 900), 2),
                "available": self.random.random() < 0.7,
                "note": self.text(self.random.randint(10, 90)),
            }
            rows.append(row)
            left -= 120
        return json.dumps({"rows": rows, "total": len(rows)})


def tools(words: Words, count: int) -> list[dict[str, Any]]:
    """Tool definitions in OpenAI form."""
    return [
        {"type": "function", "function": {"name": f"tool_{n}", "description": words.text(180), "parameters": {
            "type": "object", "required": ["a"], "properties": {
                key: {"type": kind, "description": words.text(60)}
                for key, kind in (("a", "string"), ("b", "integer"), ("c", "string"), ("d", "boolean"))}}}}
        for n in range(count)
    ]  # fmt: skip


def openai_conversations(seed: int = 0) -> Iterator[dict[str, Any]]:
    """Conversations of a support agent, endless: a policy, tools, 2 to 12 calls, some in parallel, a final answer."""
    words = Words(seed)
    policies = [words.text(3_500) for _ in range(5)]
    toolsets = [tools(words, 6) for _ in range(5)]
    for number in itertools.count():
        kind = number % 5
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": policies[kind]},
            {"role": "user", "content": words.text(words.size(120, 4_000))},
        ]
        for turn in range(words.random.randint(2, 12)):
            calls = [
                {
                    "id": f"call_{number:x}{turn:x}{n}",
                    "type": "function",
                    "function": {
                        "name": f"tool_{words.random.randrange(6)}",
                        "arguments": json.dumps(
                            {"a": words.text(words.size(25, 2_000)), "b": words.random.randint(0, 10**6)}
                        ),
                    },
                }
                for n in range(1 if words.random.random() < 0.85 else 2)
            ]
            messages.append(
                {
                    "role": "assistant",
                    "content": None if turn % 2 else words.text(words.size(90, 2_000)),
                    "tool_calls": calls,
                }
            )
            for call in calls:
                size = words.size(700, 30_000)
                content = words.data(size) if words.random.random() < 0.6 else words.text(size)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
            if turn % 4 == 3:
                messages.append({"role": "assistant", "content": words.text(200)})
                messages.append({"role": "user", "content": words.text(words.size(80, 1_000))})
        messages.append({"role": "assistant", "content": words.text(words.size(350, 6_000))})
        yield {
            "id": f"conv-{number}",
            "model": f"demo-{kind}",
            "created_at": 1_772_400_000 + number * 40,
            "messages": messages,
            "tools": toolsets[kind],
            "metadata": {"tenant": f"t{number % 7}", "score": number / 7},
        }


def write(path: Path, records: Iterator[dict[str, Any]], megabytes: int) -> int:
    """Write records as JSON Lines until the file has that size; how many they are."""
    size = count = 0
    with path.open("w", encoding="utf-8") as file:
        for record in records:
            line = json.dumps(record) + "\n"
            file.write(line)
            size += len(line)
            count += 1
            if size >= megabytes * 1_000_000:
                return count
    return count


def sessions(seed: int = 0) -> Iterator[list[dict[str, Any]]]:
    """Claude Code sessions, endless: blocks of a message on lines of their own, tool results with their richer copy."""
    words = Words(seed)
    for number in itertools.count():
        yield list(_session(words, f"session-{seed}-{number}"))


def _session(words: Words, session: str) -> Iterator[dict[str, Any]]:
    clock = itertools.count(1_772_400_000 + words.random.randrange(10**6))
    parent: str | None = None
    number = itertools.count()

    def line(kind: str, message: dict[str, Any], **more: Any) -> dict[str, Any]:
        nonlocal parent
        own = f"{session}-{next(number)}"
        stamp = dt.datetime.fromtimestamp(next(clock), dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        made = {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/srv/demo",
            "sessionId": session,
            "version": "2.1.80",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            "uuid": own,
            "timestamp": stamp,
            **more,
        }
        parent = own
        return made

    yield line("user", {"role": "user", "content": words.text(words.size(150, 3_000))})
    for turn in range(words.random.randint(5, 40)):
        usage = {
            "input_tokens": 9,
            "cache_creation_input_tokens": 300,
            "cache_read_input_tokens": 4_000,
            "output_tokens": 80,
        }
        head = {
            "id": f"msg_{session}_{turn}",
            "type": "message",
            "role": "assistant",
            "model": "claude-demo",
            "usage": usage,
        }
        yield line(
            "assistant",
            {
                **head,
                "content": [{"type": "thinking", "thinking": words.text(words.size(250, 4_000)), "signature": "c2ln"}],
                "stop_reason": None,
            },
        )
        call = f"toolu_{session}_{turn}"
        yield line(
            "assistant",
            {
                **head,
                "content": [
                    {
                        "type": "tool_use",
                        "id": call,
                        "name": "Bash",
                        "input": {"command": words.text(words.size(60, 2_000))},
                    }
                ],
                "stop_reason": "tool_use",
            },
        )
        output = words.text(words.size(1_200, 40_000))
        yield line(
            "user",
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": output}]},
            toolUseResult={"stdout": output, "stderr": "", "interrupted": False},
        )
    yield line(
        "assistant",
        {
            "id": f"msg_{session}_end",
            "type": "message",
            "role": "assistant",
            "model": "claude-demo",
            "content": [{"type": "text", "text": words.text(400)}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 9, "output_tokens": 90},
        },
    )


def write_sessions(folder: Path, made: Iterator[list[dict[str, Any]]], megabytes: int) -> int:
    """Write sessions, one a file, until all of them have that size; how many they are."""
    folder.mkdir(parents=True)
    size = 0
    for number, lines in enumerate(made):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{number:05}.jsonl").write_text(text, encoding="utf-8")
        size += len(text)
        if size >= megabytes * 1_000_000:
            return number + 1
    return 0


def spans(seed: int = 0) -> Iterator[list[dict[str, Any]]]:
    """Traces of GenAI spans, endless: each model call repeats its history, tools have spans of their own, the root
    ends last.
    """
    words = Words(seed)
    for number in itertools.count():
        yield _trace(words, f"{number + 1:032x}")


def _trace(words: Words, trace: str) -> list[dict[str, Any]]:
    start = 1_772_400_000_000_000_000 + words.random.randrange(10**6) * 1_000_000_000
    history: list[dict[str, Any]] = [
        {"role": "user", "parts": [{"type": "text", "content": words.text(words.size(120, 2_000))}]}
    ]
    made: list[dict[str, Any]] = []
    root = f"{trace[-8:]}00000000"

    def span(name: str, attributes: dict[str, Any], parent: str | None = root) -> None:
        number = len(made) + 1
        at = start + number * 1_000_000_000
        values = [
            {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
            for key, value in attributes.items()
        ]
        made.append(
            {
                "traceId": trace,
                "spanId": root if parent is None else f"{trace[-8:]}{number:08x}",
                **({"parentSpanId": parent} if parent else {}),
                "name": name,
                "kind": 3,
                "startTimeUnixNano": str(at),
                "endTimeUnixNano": str(at + 900_000_000),
                "attributes": values,
                "status": {},
            }
        )

    for turn in range(words.random.randint(2, 6)):
        call = {"type": "tool_call", "id": f"call_{turn}", "name": "search", "arguments": {"q": words.text(40)}}
        answer = {
            "role": "assistant",
            "parts": [{"type": "text", "content": words.text(80)}, call],
            "finish_reason": "tool_calls",
        }
        chat = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "demo",
            "gen_ai.usage.input_tokens": 900,
            "gen_ai.usage.output_tokens": 40,
            "gen_ai.input.messages": json.dumps(history),
        }
        span("chat demo", {**chat, "gen_ai.output.messages": json.dumps([answer])})
        result = words.text(words.size(600, 8_000))
        span(
            "execute_tool search",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "search",
                "gen_ai.tool.call.id": f"call_{turn}",
                "gen_ai.tool.call.result": result,
            },
        )
        history = [
            *history,
            answer,
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": f"call_{turn}", "response": result}]},
        ]
    final = {"role": "assistant", "parts": [{"type": "text", "content": words.text(300)}], "finish_reason": "stop"}
    span(
        "chat demo",
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "demo",
            "gen_ai.usage.input_tokens": 900,
            "gen_ai.usage.output_tokens": 90,
            "gen_ai.input.messages": json.dumps(history),
            "gen_ai.output.messages": json.dumps([final]),
        },
    )
    span("invoke_agent demo", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "demo"}, parent=None)
    return made


def attempts() -> Iterator[dict[str, Any]]:
    """Attempts as τ-bench writes them, endless."""
    for number, made in enumerate(openai_conversations(seed=7)):
        info = {"task": {"user_id": f"u{number}", "actions": [], "instruction": "Ask.", "outputs": []}}
        yield {"task_id": number, "reward": float(number % 2), "info": info, "traj": made["messages"], "trial": 0}


def write_spans(path: Path, made: Iterator[list[dict[str, Any]]], megabytes: int) -> int:
    """Write traces as a collector's file exporter does, about 50 spans a line; how many spans they are."""
    size = count = 0
    waiting: list[dict[str, Any]] = []
    with path.open("w", encoding="utf-8") as file:
        for trace in made:
            waiting += trace
            if len(waiting) >= 50:
                scope = {"scope": {"name": "demo"}, "spans": waiting}
                batch = {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [scope]}]}
                size += file.write(json.dumps(batch) + "\n")
                count += len(waiting)
                waiting = []
            if size >= megabytes * 1_000_000:
                return count
    return count
