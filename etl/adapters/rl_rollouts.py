"""What trainers dump of their rollouts: verl (`rollout_data_dir`), TRL (`log_completions`), NeMo RL (`*_data_step`).

Prompts and answers are texts that a chat template made, or messages; rewards, advantages, token ids, masks and log
probabilities are kept as logged. Rows with one prompt (and step) are a group, counted in the order of the file. Where
a text shows only by a line with a role who spoke, or a list of texts does not say it, the row is flagged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from etl.adapter import FileContext
from etl.adapters._blocks import identifier
from etl.adapters._records import RecordAdapter, numbered
from etl.adapters._rendered import rendered
from etl.adapters._rollouts import reals, transcript
from etl.conversation import Conversation, Message, Outcome, Record, Unusable, Verdict
from etl.decode import encode
from etl.identity import digest

_VERL = frozenset({"input", "output", "score", "step"})
_TRL = frozenset({"prompt", "completion", "advantage"})
_NEMO = frozenset({"content", "rewards"})
_NEMO_SIGNS = frozenset(
    {"input_lengths", "generation_logprobs", "prev_logprobs", "token_ids", "advantages", "token_loss_mask", "idx"}
)
_NAMES = ("uid", "request_id", "id")
_TOKENS = ("token_ids", "token_loss_mask", "generation_logprobs")


class RlRollouts(RecordAdapter):
    """Rollouts as verl, TRL and NeMo RL write them while they train."""

    name = "rl_rollouts"
    version = 2
    about = "rollout dumps of trainers: verl {input, output, score, step}, TRL completions, NeMo RL {content, rewards}"
    expects = "a rollout is a JSON object with what was asked, what was answered, and its score"

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of the columns that each trainer writes together."""
        return 0.93 if _kind(value) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a rollout; those of one prompt are numbered in the order of the file."""
        yield from numbered(super().parse(records, file))

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One rollout."""
        kind = _kind(value)
        if kind == "verl":
            yield _verl(record, value)
        elif kind == "trl":
            yield _trl(record, value)
        elif kind == "nemo_rl":
            yield _nemo(record, value)
        else:
            yield Unusable(record, "no_messages", "none of the columns of a rollout that verl, TRL or NeMo RL dumps")


def _kind(value: dict[str, Any]) -> str | None:
    """Which trainer wrote the row."""
    if value.keys() >= _VERL and isinstance(value["input"], str) and isinstance(value["output"], str):
        return "verl"
    if value.keys() >= _TRL and value.keys() & {"step"} and isinstance(value["prompt"], (str, list)):
        return "trl"
    content = value.get("content")
    if value.keys() >= _NEMO and isinstance(content, (str, list)) and "role" not in value:
        turns = isinstance(content, list) and bool(content) and all(isinstance(turn, dict) for turn in content)
        return "nemo_rl" if turns or value.keys() & _NEMO_SIGNS else None
    return None


def _verl(record: Record, value: dict[str, Any]) -> Conversation:
    read = rendered(value["input"], value["output"])
    components = {k: v for k, v in value.items() if k not in _VERL and type(v) in (int, float, bool)}
    made = _conversation(record, value, read.messages, "verl", value["input"])
    made.reward = value["score"]
    made.rewards = components or None
    _finish(made, value, _VERL | components.keys(), read.unread, read.bare)
    return made


def _trl(record: Record, value: dict[str, Any]) -> Conversation | Unusable:
    prompt, completion = value["prompt"], value["completion"]
    bare = False
    unread: dict[str, object] = {}
    if isinstance(prompt, str) and isinstance(completion, str):
        read = rendered(prompt, completion)
        messages, bare, unread = read.messages, read.bare, dict(read.unread)
    else:
        asked, answered = transcript(prompt, "user"), transcript(completion, "assistant")
        if isinstance(asked, str) or isinstance(answered, str):
            return Unusable(record, "bad_message", "`prompt` or `completion` holds what is no message of a known role")
        messages = [*asked, *answered]
    components = {k: v for k, v in value.items() if k not in (*_TRL, "step") and type(v) in (int, float)}
    made = _conversation(record, value, messages, "trl", prompt)
    made.rewards = components or None
    made.reward = next(iter(components.values())) if len(components) == 1 else None
    advantage = value["advantage"]
    if type(advantage) in (int, float):
        made.judgments = [Verdict("advantage", "marker", float(advantage))]
    held = {"prompt", "completion", "step", *components} | ({"advantage"} if made.judgments else set())
    _finish(made, value, held, unread, bare)
    return made


def _nemo(record: Record, value: dict[str, Any]) -> Conversation | Unusable:
    content = value["content"]
    bare = False
    unread: dict[str, object] = {}
    if isinstance(content, list) and all(isinstance(turn, dict) for turn in content):
        read_as = transcript([_observed(turn) for turn in content], "user")
        if isinstance(read_as, str):
            return Unusable(record, read_as, "`content` holds what is no message with a known role")
        messages = read_as
        for message in messages:
            message.synthetic = "logged_role" in (message.extra or {})
    else:
        messages, bare, unread = _pieces(content)
    first = next((index for index, m in enumerate(messages) if m.role == "assistant"), len(messages))
    made = _conversation(record, value, messages, "nemo_rl", [(m.role, m.content) for m in messages[:first]])
    made.reward = value["rewards"]
    made.agent = (
        identifier((value.get("agent_ref") or {}).get("name")) if isinstance(value.get("agent_ref"), dict) else None
    )
    held = {"content", "rewards"} | _tokens(made, value)
    _finish(made, value, held, unread, bare)
    return made


def _observed(turn: dict[str, Any]) -> dict[str, Any]:
    """A turn of the environment is what the model is told next; nobody typed it."""
    return {**turn, "role": "user", "logged_role": "environment"} if turn.get("role") == "environment" else turn


def _pieces(content: Any) -> tuple[list[Message], bool, dict[str, object]]:
    """Texts without roles: as a template made them, or in turns."""
    texts = [
        item if isinstance(item, str) else encode(item)
        for item in (content if isinstance(content, list) else [content])
    ]
    joined = "".join(texts)
    if "<|im_start|>" in joined or "<|start_header_id|>" in joined:
        read = rendered(joined, None)
        return read.messages, read.bare, dict(read.unread)
    return [Message(("user", "assistant")[number % 2], text) for number, text in enumerate(texts)], True, {}


def _tokens(made: Conversation, value: dict[str, Any]) -> set[str]:
    """Token ids with their mask and log probabilities, without the padding; the keys that they hold."""
    columns = {key: value[key] for key in _TOKENS if reals(value.get(key)) is not None}
    length = value.get("input_lengths")
    if not columns or type(length) is not int or any(len(column) < length for column in columns.values()):
        return set()
    ids, mask, logprobs = (columns[key][:length] if key in columns else None for key in _TOKENS)
    made.token_ids = ids
    made.loss_mask = None if mask is None else [int(item) if item in (0, 1) else item for item in mask]
    made.logprobs = reals(logprobs)
    return {*columns, "input_lengths"}


def _conversation(
    record: Record, value: dict[str, Any], messages: list[Message], trainer: str, asked: Any
) -> Conversation:
    """The row with its task (what was asked), its group (that, at one step) and the step as the policy's version."""
    task = digest(encode(asked).encode("utf-8", "surrogatepass"))
    step = identifier(value.get("step"))
    return Conversation(
        messages,
        (record,),
        local_id=next((found for key in _NAMES if (found := identifier(value.get(key))) is not None), None),
        task=(trainer, task),
        group=encode([trainer, step, task]),
        policy_version=step,
        flags=None if messages else {"content_not_captured"},
    )


def _finish(
    made: Conversation, value: dict[str, Any], held: Iterable[str], unread: dict[str, object], bare: bool
) -> None:
    """What no column holds, and what a reader should know."""
    taken = {*held, "step"} | {key for key in _NAMES if identifier(value.get(key)) == made.local_id is not None}
    rest = {key: item for key, item in value.items() if key not in taken and item not in (None, [], {})}
    if unread:
        rest["unread"] = unread
    made.extra = rest or None
    flags = {"roles_inferred"} if bare else set()
    flags |= {"unreadable_value"} if unread else set()
    made.flags = {*(made.flags or ()), *flags} or None
