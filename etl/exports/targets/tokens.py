"""Conversations as token ids, ready to be trained."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.reasons import Dropped
from etl.exports.target import Example, Target
from etl.exports.targets._columns import ROLLOUT_ID
from etl.exports.tokenizing import IGNORED, Tokens


class TokenIds(Target):
    """`labels` for TRL and Together, `loss_mask` for SkyRL and AReaL: the same arrays under two names.

    Without a tokenizer the ids that were logged are taken, with their own mask.
    """

    name = "tokens"
    about = "pretokenised: Parquet of input_ids, labels (TRL, Together) and loss_mask (SkyRL, AReaL); --tokenizer"
    columns = ("token_ids", "loss_mask", "logprobs")

    def schema(self) -> pa.Schema:
        """Lists of one length; `logprobs` only where ids were logged."""
        ids, bits = pa.list_(pa.int32()), pa.list_(pa.int8())
        return pa.schema(
            [
                pa.field("input_ids", ids),
                pa.field("attention_mask", bits),
                pa.field("labels", ids),
                pa.field("loss_mask", bits),
                pa.field("logprobs", pa.list_(pa.float32())),
                ROLLOUT_ID,
            ]
        )

    def record(self, example: Example) -> dict[str, Any]:
        """The tokens of one conversation."""
        said, row = example.dialogue, example.dialogue.row
        logged = example.tokenizer is None
        if example.tokenizer is not None:
            said.masked()
            made = example.tokenizer.tokens(said)
        else:
            inherited = any(turn.role == "assistant" and not turn.trained for turn in said.turns)
            if row["token_ids"] is None or row["loss_mask"] is None or inherited:
                raise Dropped("no_tokens")
            made = Tokens(row["token_ids"], row["loss_mask"])
        if not any(made.mask):
            raise Dropped("nothing_to_train")
        return {
            "input_ids": made.ids,
            "attention_mask": [1] * len(made.ids),
            "labels": [token if bit else IGNORED for token, bit in zip(made.ids, made.mask, strict=True)],
            "loss_mask": made.mask,
            "logprobs": row["logprobs"] if logged else None,
            "rollout_id": said.rollout_id,
        }
