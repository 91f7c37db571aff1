"""Results of Agent Lightning's example agents, JSON Lines: games of twenty questions, and questions to a database.

A game is `{answer, category, correct, interactions: [{question, response}]}`: the agent asks, the environment answers.
A record with an error in the place of the game is a row without messages, so that the attempt counts. A question to a
database is `{db_id, question, gold, pred, reward}`. The model is not in the records: sets of runs by different models
want a `--source` each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etl.adapters._blocks import identifier, plain
from etl.adapters._records import RecordAdapter
from etl.adapters._rollouts import items, text
from etl.conversation import Conversation, Message, Outcome, Record, Unusable
from etl.decode import encode

_GAME = frozenset({"answer", "category", "correct", "interactions"})
_LOST = frozenset({"answer", "category", "error", "exception"})
_QUERY = frozenset({"db_id", "question", "gold", "pred", "reward"})


class AgentLightning(RecordAdapter):
    """What Agent Lightning's examples wrote down of their rollouts."""

    name = "agent_lightning"
    version = 1
    about = (
        "Agent Lightning example results: twenty questions {interactions, correct}, text to SQL {pred, gold, reward}"
    )
    expects = "a game or a query is a JSON object"

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of the keys that a game, a lost game or a query has together."""
        return 0.9 if any(value.keys() >= keys for keys in (_GAME, _LOST, _QUERY)) else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One game or query."""
        if value.keys() >= _QUERY:
            yield _query(record, value)
        elif items(value, "interactions") or value.get("error"):
            yield _game(record, value)
        else:
            yield Unusable(record, "no_messages", "neither a game nor a query of an example agent, nor its error")


def _game(record: Record, value: dict[str, Any]) -> Conversation:
    messages: list[Message] = []
    unread: list[Any] = []
    for turn in items(value, "interactions"):
        if not isinstance(turn, dict):
            unread.append(turn)
            continue
        rest = {key: item for key, item in turn.items() if key not in ("question", "response") and item is not None}
        messages.append(Message("assistant", plain(turn.get("question")), extra=rest or None))
        if turn.get("response") is not None:
            messages.append(Message("user", plain(turn["response"]), synthetic=True))
    error = plain(value["error"]) if value.get("error") else None
    correct = value.get("correct")
    held = {"interactions", "id", "correct", "error"}
    extra = {key: item for key, item in value.items() if key not in held and item not in (None, "", [], {})}
    if unread:
        extra["interactions"] = unread
    return Conversation(
        messages,
        (record,),
        local_id=identifier(value.get("id")) or identifier(value.get("index")),
        task=("agent_lightning:twenty_questions", encode([value.get("category"), value.get("answer")])),
        status="error" if error else "completed",
        error=error,
        reward=correct if isinstance(correct, bool) else None,
        flags=None if messages else {"content_not_captured"},
        extra=extra,
    )


def _query(record: Record, value: dict[str, Any]) -> Conversation | Unusable:
    asked, answered = text(value.get("question")), value.get("pred")
    if asked is None:
        return Unusable(record, "no_messages", "the query has no question")
    messages = [Message("user", asked)]
    if answered is not None:
        messages.append(Message("assistant", plain(answered)))
    held = {"question", "reward"} | ({"pred"} if isinstance(answered, str) else set())
    return Conversation(
        messages,
        (record,),
        task=("agent_lightning:sql", encode([value.get("db_id"), asked])),
        reward=value.get("reward"),
        extra={key: item for key, item in value.items() if key not in held and item is not None} or None,
    )
