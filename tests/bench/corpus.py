"""Made-up traffic of any size, seeded, with the shape of real agent logs: long policies, tool schemas, mixed tool
results.

Words are drawn from a Zipf-like vocabulary, so that decoding and compression cost what they cost on real text.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SYLLABLES = "ba be bi bo ca ce co cu da de di do fa fe fi ga ge go ha he in ka ke la le li lo ma me mi mo na ne no pa pe po ra re ri ro sa se si so ta te ti to va ve wi xo ya za".split()
_COMMON = "the of and to in is for that on with as are be this by from or an not at have it was which can will if all has one more".split()


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
                {"id": f"call_{number:x}{turn:x}{n}", "type": "function", "function": {
                    "name": f"tool_{words.random.randrange(6)}",
                    "arguments": json.dumps({"a": words.text(words.size(25, 2_000)), "b": words.random.randint(0, 10**6)})}}
                for n in range(1 if words.random.random() < 0.85 else 2)
            ]  # fmt: skip
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
