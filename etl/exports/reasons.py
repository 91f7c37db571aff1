"""Why a row is left out of an export, and what may be changed in one that stays: every rule by name.

`export.json` counts by these names; a test holds them against the code.
"""

from __future__ import annotations

DROPS: dict[str, str] = {
    "no_messages": "The row has no messages.",
    "content_not_captured": "The log says that a message existed, but not what it said.",
    "planted_leak": "The simulator planted a quote of hidden state in it: in no file, whatever the target.",
    "planted_mistake": "The simulator planted a mistake in it, and this target imitates.",
    "rejected_answer": "Its preference set says that it is not the wanted answer, and this target imitates "
    "(`--keep-rejected` keeps it).",
    "media": "A message holds images, audio or files, which these files do not carry.",
    "invalid_arguments": "The arguments of a call were no JSON object.",
    "missing_result": "A call has no result (see `--missing-results`).",
    "late_result": "The result of a call came only after the next turn of the agent.",
    "orphan_result": "A tool result answers no call, or one that has its answer.",
    "nothing_to_train": "No turn of the agent is this row's own: none, or all inherited, empty or a harness's.",
    "unmaskable_turn": "A turn that another row owns, a harness wrote or that is empty cannot be masked in this form; "
    "`sft-pc`, `openai`, `axolotl`, `slime` and `tokens` mask them.",
    "number_beyond_64_bits": "Arguments or tools hold an integer that readers of this form cannot hold.",
    "no_alternation": "The form wants user and agent to take turns, and here they do not.",
    "no_prompt": "Nobody asked anything that the agent answered.",
    "no_tokens": "The row has no token ids of its own; `--tokenizer NAME` makes them.",
    "control_tokens": "A message holds the text of a special token of the tokenizer, which would take effect as one.",
    "not_renderable": "The chat template refuses the conversation, or renders its turns differently later on.",
    "unscored": "Nobody scored the row.",
    "no_task": "The row names neither a task nor a group.",
    "no_preference": "It takes two scored attempts at the same prompt, one with a higher `reward` than the other.",
    "not_chosen": "Another attempt of its group is the better or the worse one of the pair.",
    "other_attempt": "Another attempt stands for the task: this target has one row a task.",
    "too_few_attempts": "Its task has fewer scored attempts than `--group-min`.",
    "outside_difficulty_band": "The pass rate of its task lies outside `--difficulty`.",
    "unanimous": "All attempts at its task have one reward (`--drop-unanimous`).",
    "too_long": "Longer than `--max-chars` or `--max-tokens`.",
    "duplicate": "Another row says exactly the same.",
    "near_duplicate": "Another row says nearly the same (`--near-duplicates`).",
    "held_out": "It shares a task, a prompt or an n-gram of words with the held-out set.",
    "source_cap": "Its source has more rows than `--max-per-source`.",
    "max_rows": "There are more rows than `--max-rows`.",
}
"""Code → why the row was left out. A row has one: the first that applies."""

REPAIRS: dict[str, str] = {
    "results_moved_up": "Something was said between a call and its result; the result now follows the call.",
    "cut_at_missing_result": "The conversation ends before the first call without a result (`--missing-results cut`).",
    "ends_in_open_calls": "The calls of the last turn have no result (`--missing-results allow-last`).",
    "user_calls_left_out": "Calls that a simulated user made, which the agent never saw, are left out.",
    "tail_cut": "What came after the last turn that is trained is left out.",
    "last_results_cut": "The form ends with the agent: results of its last calls are left out.",
    "developer_as_system": "Chat templates know no role `developer`: it became `system`.",
    "systems_merged": "Several system messages at the start became one.",
    "late_system_as_user": "A system message in the middle, which chat templates refuse, became a user message.",
    "results_merged": "Results of one turn's calls became one message, as the form wants it.",
    "turns_masked": "Turns that another row owns, a harness wrote or that are empty are there, and masked.",
    "reasoning_left_out": "The form, or `--reasoning drop`, leaves the model's reasoning out.",
    "text_beside_calls_left_out": "The form has no place for what the agent said beside its calls.",
    "prompts_differ": "Attempts at one task had different prompts; that of one attempt is used.",
}
"""Code → what was changed in a row that stays. A row may have several."""


class Dropped(Exception):
    """A row that is left out, by the rule of `DROPS` with this name."""

    def __init__(self, reason: str) -> None:
        super().__init__(DROPS[reason])
        self.reason = reason
