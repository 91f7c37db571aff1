"""Results of `verifiers` evaluations: JSON Lines, one line a rollout of one example, scored by named functions.

A row holds `prompt` and `completion` apart, each reward function's number under the function's own name, and calls as
JSON text whose results have no ids. The environment and the model stand in the `metadata.json` beside the file.
Rollouts of one example are a group. Newer rows name it by `example_id`; the `id` of older ones means different
examples within one file, so prompt and answer tell them apart.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._rollouts import count, numbers, obj, text, transcript
from etl.conversation import Conversation, Message, Outcome, Record, Tokens, Unusable
from etl.decode import JsonError, decode, encode
from etl.identity import digest

_METADATA_BYTES = 1 << 20
_NEEDED = frozenset({"prompt", "completion", "reward"})
_NAMING = frozenset({"example_id", "id", "task"})
_TIMES = frozenset({"generation_ms", "scoring_ms", "total_ms"})
_HELD = frozenset(
    {"prompt", "completion", "reward", "metrics", "token_usage", "tool_defs", "error", "stop_condition", "example_id",
     "id", "is_truncated", "is_completed", "task"}
)  # fmt: skip
_RUN = ("env_args", "sampling_args", "num_examples", "rollouts_per_example", "date", "time", "base_url", "path_to_save")


class _Run(NamedTuple):
    """What the metadata beside the results says of all of them."""

    environment: str | None = None
    model: str | None = None
    settings: dict[str, Any] | None = None


class Verifiers(Adapter):
    """Rollouts that an evaluation with `verifiers` saved."""

    name = "verifiers"
    version = 1
    about = "verifiers evaluation results: {prompt, completion, reward, a key per reward function} a line"
    scores_share = True

    def score(self, sample: Sample) -> float:
        """Sure of prompt, completion and reward beside the id or task of an example."""
        objects = sample.objects()
        hits = sum(_is_rollout(value) for value in objects)
        return 0.9 * hits / len(sample.values) if hits else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a record; rollouts of one example are counted in the order of the file."""
        run = _run_beside(file)
        seen: Counter[str] = Counter()
        for record in records:
            yield _rollout(record, run, seen)


def _is_rollout(value: dict[str, Any]) -> bool:
    return (
        value.keys() >= _NEEDED
        and not value.keys().isdisjoint(_NAMING)
        and isinstance(value["prompt"], (list, str))
        and isinstance(value["completion"], (list, str, type(None)))
    )


def _run_beside(file: FileContext) -> _Run:
    """Environment and model from `metadata.json` in the folder of the results; nothing where that is another file."""
    if file.path is None or "!" in file.uri:
        return _Run()
    path = Path(os.path.abspath(file.path)).parent / "metadata.json"  # noqa: PTH100 (a link keeps its own folder)
    try:
        value = decode(path.read_bytes()).value if path.stat().st_size <= _METADATA_BYTES else None
    except (OSError, JsonError):
        return _Run()
    if not isinstance(value, dict) or "model" not in value or not value.keys() & {"env", "env_id"}:
        return _Run()
    environment = text(value.get("env_id")) or text(value.get("env"))
    settings = {key: value[key] for key in _RUN if value.get(key) not in (None, {}, [])}
    return _Run(environment, text(value.get("model")), settings)


def _rollout(record: Record, run: _Run, seen: Counter[str]) -> Conversation | Unusable:
    value = record.value
    if not isinstance(value, dict):
        return Unusable(record, "not_an_object", "a rollout is a JSON object; this line is none: see what wrote it")
    if "completion" not in value and "prompt" not in value:
        return Unusable(record, "no_messages", "the record has neither prompt nor completion; is this a results file?")
    asked, answered = transcript(value.get("prompt"), "user"), transcript(value.get("completion"), "assistant")
    for key, read in (("prompt", asked), ("completion", answered)):
        if isinstance(read, str):
            return Unusable(record, read, f"`{key}` holds something that is no message with a known role")
    assert not isinstance(asked, str)
    assert not isinstance(answered, str)
    messages = [*asked, *_continued(asked, answered)]
    error = _error(value.get("error"))
    if not messages and error is None:
        return Unusable(record, "no_messages", "prompt and completion are empty, and no error says why")
    example = identifier(value.get("example_id"))
    shown = identifier(value.get("id")) if example is None else example
    named = example if example is not None else digest(_encoded([value.get("prompt"), value.get("answer")]))
    environment = run.environment or ""
    task = text(value.get("task")) or ""
    group = encode([environment, run.model, task, named])
    index = seen[group]
    seen[group] += 1
    rewards = _rewards(value)
    return Conversation(
        messages,
        (record,),
        local_id=shown,
        run=encode([environment, run.model]) if run.environment or run.model else "",
        task=(f"verifiers:{environment}/{task}", named),
        group=group,
        sample_index=index,
        tools=value.get("tool_defs") or obj(value, "info").get("oai_tools"),
        reward=value.get("reward"),
        rewards=rewards or None,
        status=_status(value),
        finish_reason=text(value.get("stop_condition")),
        error=error,
        model=text(value.get("model")) or run.model,
        started_at=obj(value, "timing").get("start_time"),
        usage=_usage(value),
        flags=None if messages else {"content_not_captured"},
        extra=_extra(value, rewards, run) or None,
    )


def _encoded(value: Any) -> bytes:
    return encode(value).encode("utf-8", "surrogatepass")


def _continued(asked: list[Message], answered: list[Message]) -> list[Message]:
    """The completion without the prompt, which some environments put at its head once more."""
    head = answered[: len(asked)]
    again = len(head) == len(asked) > 0 and all(
        (one.role, one.content) == (other.role, other.content) for one, other in zip(asked, head, strict=True)
    )
    return answered[len(asked) :] if again else answered


def _rewards(value: dict[str, Any]) -> dict[str, Any]:
    """The number of every reward function and metric: under its own name, or in `metrics`."""
    own = {name: item for name, item in numbers(value).items() if name not in _HELD | _TIMES and name != "answer"}
    return {**numbers(value.get("metrics")), **own}


def _status(value: dict[str, Any]) -> str | None:
    if value.get("error"):
        return "error"
    if value.get("is_truncated") is True:
        return "truncated"
    return "completed" if value.get("is_completed") is True else None


def _error(value: Any) -> str | None:
    if isinstance(value, dict):
        return text(value.get("error_chain_str")) or text(value.get("error")) or plain(value)
    return plain(value) if value else None


def _usage(value: dict[str, Any]) -> Tokens | None:
    logged = obj(value, "token_usage")
    used = Tokens(count(logged.get("input_tokens")), count(logged.get("output_tokens")))
    return used if used != Tokens() else None


def _extra(value: dict[str, Any], rewards: dict[str, Any], run: _Run) -> dict[str, Any]:
    """What no column holds, and the settings of the run."""
    left = {key: item for key, item in value.items() if key not in _HELD and key not in rewards and item is not None}
    if text(left.get("model")):
        del left["model"]
    info = left.get("info")
    if isinstance(info, dict) and info.get("oai_tools") and not value.get("tool_defs"):
        left["info"] = {key: item for key, item in info.items() if key != "oai_tools"}
    odd = {name: item for name, item in obj(value, "metrics").items() if name not in rewards}
    unread = {
        "metrics": odd or (value.get("metrics") if not isinstance(value.get("metrics"), dict) else None),
        "token_usage": _beyond(value.get("token_usage"), {"input_tokens", "output_tokens"}),
        "error": value.get("error") if isinstance(value.get("error"), (dict, list)) else None,
        "stop_condition": None if text(value.get("stop_condition")) else value.get("stop_condition"),
        "is_truncated": value.get("is_truncated"),
        "is_completed": value.get("is_completed"),
        "task": value.get("task"),
        "id": value.get("id") if "example_id" in value or identifier(value.get("id")) is None else None,
        "example_id": None if identifier(value.get("example_id")) else value.get("example_id"),
        "environment": run.environment,
        "run": run.settings,
    }
    return {**left, **{key: item for key, item in unread.items() if item not in (None, "", {}, [])}}


def _beyond(value: Any, held: set[str]) -> Any:
    """What of an object these keys do not hold; anything else as it is."""
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if key not in held or count(item) is None}
