"""What each flag of a row (`rollouts.flags`) says; the column reference prints it, a test holds it against the code."""

from __future__ import annotations

FLAGS: dict[str, str] = {
    "abandoned": "The log went on elsewhere from an earlier turn: a branch that was left.",
    "ambiguous_parent": "A parent of the row or of a message is named but not there, or several could be meant.",
    "api_error": "The harness put an error of the API in the place of a response; that message is synthetic.",
    "bad_time": "A time could not be read; it is in `extra.unread` as logged.",
    "compacted": "The harness replaced earlier turns by a summary: the model no longer saw them afterwards.",
    "content_not_captured": "The log says that a message existed, but not what it said.",
    "duplicate_keys": "A source record names a JSON key twice: the last counts, earlier ones are kept in `extra`.",
    "edited_history": "A later request repeats an answer otherwise than it was given: calls dropped, text cut.",
    "glued_record": "A source record shared its line with another one, or with a piece of one.",
    "incomplete": "A session whose end was not seen.",
    "interrupted": "A person stopped the model in the middle of a turn.",
    "invalid_arguments": "A call's arguments are not a JSON object; the text is in `steps.raw_arguments`.",
    "invalid_utf8": "Bytes of a text were not UTF-8: now U+FFFD, the original escape is in `message_info.extra`.",
    "lone_surrogate": "A text held half of a UTF-16 pair: now U+FFFD, the original escape is in `message_info.extra`.",
    "missing_result": "A call has no result, and its tool does not run at the provider.",
    "naive_time": "A time without zone was read as UTC.",
    "nan": "A source record holds NaN or an infinity, which JSON does not know; it is kept as text.",
    "nul_padding": "NUL bytes stood around a source record.",
    "number_range": "A number of a source record is beyond a double; it is kept as text.",
    "odd_order": "The turns of a training set do not alternate, or one of the model's is empty: kept as logged.",
    "orphan_result": "A result answers no call that came before it; it is kept where it stood.",
    "reasked": "An answer was given after a complaint about another, and both were left out of what was sent later.",
    "result_elsewhere": "A large result lies in a file beside the log; `message_info.extra.side_file` names it.",
    "reused_call_id": "Two calls had one id: the second became `x#2`, the original is in `message_info.extra`.",
    "roles_inferred": "The log does not say who spoke: roles are read from the order or the layout of the text.",
    "truncated_source": "The source was cut off in this conversation.",
    "unaligned_tokens": "Token ids, mask and log probabilities had different lengths; they are in `extra.unread`.",
    "unlogged_turns": "Some turns of the assistant are known from later requests only: no logged call gave them.",
    "unreadable_value": "A value did not fit its column; it is in `extra.unread` as logged.",
    "usage_mismatch": "The counts of a response do not add up to the total that its provider gives.",
    "usage_partial": "Some model responses have no token counts: `usage` is a lower bound.",
}
"""Name of the flag → what a careful reader should know."""
