"""Samples of lm-evaluation-harness (`--log_samples`): what a model was given and wrote, and how each filter scored it.

A sample that several filters scored stands in the file once for each: it is one row, its rewards named as the harness
names them (`exact_match,strict-match`). Repeats are rows of one group; their score is that of all together and stands
aside. Where the texts were given and only their likelihood was measured, a model says nothing. The model's name is in
another file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import chat_messages, parsed
from etl.adapters._records import ClaimAdapter, left, part
from etl.adapters._rendered import rendered
from etl.adapters._rollouts import items, text
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Unusable
from etl.decode import encode
from etl.identity import digest

_SAMPLE = frozenset({"doc_id", "doc", "arguments", "resps"})
_HELD = frozenset({
    "doc_id", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash", "target_hash",
})  # fmt: skip
_SUMMARY = frozenset({"results", "configs", "n-shot"})
_GIVEN, _WHOLE = "loglikelihood", "run_summary"


class LmEval(ClaimAdapter):
    """Samples of the Language Model Evaluation Harness."""

    name = "lm_eval"
    about = "lm-evaluation-harness samples: {doc_id, doc, arguments, resps, filtered_resps, filter, …} a line"
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        _GIVEN: "a sample of which only the likelihood of given texts was measured: the model wrote nothing",
        _WHOLE: "means over all samples of a run, whose samples are in other files",
    }

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of documents with arguments and responses, and of the summary of a run."""
        if value.keys() >= _SUMMARY:
            return 0.9
        return 0.95 if value.keys() >= _SAMPLE and isinstance(value["resps"], list) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The rows of each sample; records that differ in their filter alone are one."""
        samples: dict[str, list[dict[str, Record]]] = {}
        for record in records:
            value = record.value
            if not isinstance(value, dict) or not value.keys() >= _SAMPLE:
                summary = isinstance(value, dict) and value.keys() >= _SUMMARY
                yield (
                    Ignored(_WHOLE)
                    if summary
                    else Unusable(
                        record, "no_response", "a sample has a document, arguments and responses; this has not"
                    )
                )
            elif not _responses(value):
                yield Ignored(_GIVEN)
            else:
                told = [value.get(key) for key in ("doc_id", "doc", "arguments", "resps")]
                groups = samples.setdefault(digest(encode(told).encode("utf-8", "surrogatepass")), [])
                name = _filter(value)
                group = next((each for each in groups if name not in each), None)
                if group is None:
                    groups.append(group := {})
                group[name] = record
        for groups in samples.values():
            for group in groups:
                yield from _rows(list(group.values()))


def _filter(value: dict[str, Any]) -> str:
    return text(value.get("filter")) or "none"


def _responses(value: dict[str, Any]) -> list[tuple[int, str]]:
    """What the model wrote, each time, with the number of its request: a list for each request of a sample, since 0.7
    without the outer one where there is one request.

    >>> _responses({"resps": [["a", "b"]]}), _responses({"resps": ["a"]}), _responses({"resps": [[["-1.5", "True"]]]})
    ([(0, 'a'), (0, 'b')], [(0, 'a')], [])
    >>> _responses({"resps": [["a"], ["b"]]})
    [(0, 'a'), (1, 'b')]
    """
    listed = value["resps"] if isinstance(value["resps"], list) else []
    nested = all(isinstance(each, list) for each in listed)
    requests = listed if nested else [listed]
    if not all(isinstance(said, str) for request in requests for said in request):
        return []
    return [(number, said) for number, request in enumerate(requests) for said in request]


def _request(value: dict[str, Any], number: int) -> dict[str, Any]:
    """The arguments of a request: an object by their places, or the list that they were before."""
    given = value.get("arguments")
    listed = list(given.values()) if isinstance(given, dict) else given if isinstance(given, list) else []
    found = listed[number] if number < len(listed) else None
    if isinstance(found, list):
        return {f"arg_{place}": each for place, each in enumerate(found)}
    return found if isinstance(found, dict) else {}


def _rows(records: list[Record]) -> Iterator[Outcome]:
    value = records[0].value
    said = _responses(value)
    numbers, others = _metrics([record.value for record in records])
    name = identifier(value.get("doc_id"))
    task = text(value.get("doc_hash")) or digest(encode(value["doc"]).encode("utf-8", "surrogatepass"))
    extra = {**(_about(value) or {}), **others, "filtered_resps": _filtered(records)}
    if (settings := _request(value, 0).get("arg_1")) not in (None, {}):
        extra["generation"] = settings
    for number, (place, response) in enumerate(said):
        messages = _messages(_request(value, place).get("arg_0"), response)
        if isinstance(messages, str):
            yield from (
                Unusable(record, messages, "the prompt of the sample is no text and no chat") for record in records
            )
            return
        alone, again = len(said) == 1, [each for each, _ in said].count(place) > 1
        rest = extra if alone else {**extra, **({"metrics": numbers} if numbers else {})}
        yield Conversation(
            messages,
            records if alone else [part(record, {**record.value, "resps": [[response]]}) for record in records],
            local_id=name,
            attempt=str(number) if number else "",
            task=("lm_eval", task),
            group=f"lm_eval:{digest(records[0].raw)}:{place}" if again else None,
            sample_index=[each for each, _ in said[:number]].count(place) if again else None,
            reward=next(iter(numbers.values())) if alone and len(numbers) == 1 else None,
            rewards=numbers if alone and numbers else None,
            extra={key: item for key, item in rest.items() if item not in (None, [], {})} or None,
            n_records=len(records),
        )


def _messages(prompt: Any, response: str) -> list[Message] | str:
    """What was given, as messages where a chat or a template was, and what came back."""
    if not isinstance(prompt, str):
        listed = prompt
    else:
        listed = parsed(prompt) if prompt[:2] in ("[{", "[ ") else None
        if not isinstance(listed, list):
            return rendered(prompt, response).messages
    if not isinstance(listed, list):
        return "no_prompt"
    made: list[Message] = []
    for item in listed:
        read = chat_messages(item)
        if isinstance(read, str):
            return read
        made += read
    return [*made, Message("assistant", response)]


def _metrics(values: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scores by name (and filter, where there are several), and what stands in their place and is no number."""
    numbers: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for value in values:
        named = [each for each in items(value, "metrics") if isinstance(each, str) and each in value]
        names = named or [key for key in value if key not in _HELD and key not in ("doc", "target")]
        for name in names:
            full = name if len(values) == 1 else f"{name},{_filter(value)}"
            scored = value[name]
            if isinstance(scored, (int, float)):
                numbers[full] = float(scored)
            elif scored is not None:
                others[full] = scored
    return numbers, others


def _filtered(records: list[Record]) -> dict[str, Any]:
    """What each filter took from the answer."""
    return {_filter(record.value): record.value.get("filtered_resps") for record in records}


def _about(value: dict[str, Any]) -> dict[str, Any] | None:
    names = {each for each in items(value, "metrics") if isinstance(each, str)}
    kept = left(value, {*_HELD, *names}) or {}
    if not names:
        kept = {key: item for key, item in kept.items() if key in ("doc", "target")}
    return {key: item if key != "target" else plain(item) for key, item in kept.items()}
