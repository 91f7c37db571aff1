"""What each flag of a row (`rollouts.flags`) says; the column reference prints it, a test holds it against the code."""

from __future__ import annotations

FLAGS: dict[str, str] = {
    "abandoned": "The log went on elsewhere from an earlier turn: a branch that was left.",
    "ambiguous_parent": "A parent of the row or of a message is named but not there, or several could be meant.",
    "api_error": "The harness put an error of the API in the place of a response; that message is synthetic.",
    "compacted": "The harness replaced earlier turns by a summary: the model no longer saw them afterwards.",
    "content_not_captured": "The log says that a message existed, but not what it said.",
    "duplicate_keys": "A source record names a JSON key twice; the last value counts.",
    "incomplete": "A session whose end was not seen.",
    "interrupted": "A person stopped the model in the middle of a turn.",
    "invalid_arguments": "A call's arguments are not a JSON object; the text is in `steps.raw_arguments`.",
    "lone_surrogate": "A text held half of a UTF-16 pair: now U+FFFD, the original escape is in `message_info.extra`.",
    "missing_result": "A call has no result, and its tool does not run at the provider.",
    "naive_time": "A time without zone was read as UTC.",
    "nan": "A source record holds NaN or an infinity, which JSON does not know.",
    "number_range": "A number of a source record is larger than its reader can hold exactly.",
    "orphan_result": "A result answers no call that came before it; it is kept where it stood.",
    "result_elsewhere": "A large result lies in a file beside the log; `message_info.extra.side_file` names it.",
    "reused_call_id": "Two calls had one id: the second became `x#2`, the original is in `message_info.extra`.",
    "truncated_source": "The source was cut off in this conversation.",
    "usage_partial": "Some model responses have no token counts: `usage` is a lower bound.",
}
"""Name of the flag → what a careful reader should know."""
