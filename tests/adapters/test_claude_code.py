"""Claude Code sessions: who says what, which calls got which results, what is counted, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.claude_sessions import Session, call, rows, said, text


def test_the_lines_of_a_response_are_one_message() -> None:
    session = Session()
    session.user("Look.")
    thought = {"type": "thinking", "thinking": "First.", "signature": "sig"}
    session.assistant(thought, text("Looking."), call("t1", command="ls"))
    session.result("t1", "a\nb")
    session.assistant(text("Two."), tokens=9)
    (row,) = rows(session.lines)
    assert said(row) == [("user", "Look."), ("assistant", "Looking."), ("tool", "a\nb"), ("assistant", "Two.")]
    assert row["messages"][1]["reasoning_content"] == "First."
    assert row["message_info"][1]["parts"] == [{"type": "thinking", "signature": "sig"}]
    assert [line["uuid"] for line in row["message_info"][1]["extra"]["lines"]] == ["s-1-1", "s-1-2", "s-1-3"]
    assert row["usage"]["output_tokens"] == 5 + 9
    assert row["usage"]["input_tokens"] == 2 * 11
    assert row["usage"]["cached_tokens"] == 20
    assert row["finish_reason"] == "end_turn"


def test_a_response_whose_calls_were_answered_between_its_lines() -> None:
    session = Session()
    session.user("Fetch both.")
    session.assistant(call("t1"), id="m1", tokens=1)
    session.result("t1", "one")
    session.assistant(call("t2"), id="m1", tokens=40)
    session.result("t2", "two")
    (row,) = rows(session.lines)
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "tool", "tool"]
    assert [(step["call_id"], step["result_index"]) for step in row["steps"]] == [("t1", 2), ("t2", 3)]
    assert row["usage"]["output_tokens"] == 40


def test_responses_of_several_requests_under_one_id_stay_apart() -> None:
    session = Session()
    session.user("Fetch both.")
    for number in (1, 2):
        session.assistant(call(f"t{number}"), id="m1", tokens=number)["requestId"] = f"r{number}"
        session.result(f"t{number}", "here")
    session.assistant(text("Both."), id="m1", tokens=4)["requestId"] = "r3"
    (row,) = rows(session.lines)
    assert [message["role"] for message in row["messages"]] == ["user", *["assistant", "tool"] * 2, "assistant"]
    assert (row["messages"][-1]["content"], row["usage"]["output_tokens"]) == ("Both.", 1 + 2 + 4)


def test_a_line_that_has_grown_counts_once() -> None:
    session = Session()
    session.user("Go.")
    early = session.assistant(text("Half"), id="m1", tokens=3)
    late = {**early, "timestamp": "2026-02-03T10:00:09.000Z"}
    late["message"] = {
        **early["message"],
        "content": [text("Half way.")],
        "usage": {"input_tokens": 1, "output_tokens": 30},
    }
    (row,) = rows([*session.lines, late])
    assert said(row) == [("user", "Go."), ("assistant", "Half way.")]
    assert row["usage"]["output_tokens"] == 30
    assert row["n_records"] == 3


def test_lines_that_only_share_an_id_stay_apart() -> None:
    session = Session()
    session.user("One.")
    second = {
        **session.lines[0],
        "message": {"role": "user", "content": "Another."},
        "timestamp": "2026-02-03T10:00:05Z",
    }
    (row,) = rows([*session.lines, second])
    assert said(row) == [("user", "One."), ("user", "Another.")]


def test_a_copy_in_which_something_was_masked_is_the_same_line() -> None:
    session = Session()
    session.user("The key is abc-123.")["uuid"] = "7c311c86-7836-4f47-bffc-aa8c3cbf2601"
    masked = {**session.lines[0], "message": {"role": "user", "content": "The key is REDACTED."}}
    for files in ([session.lines, [masked]], [[masked], session.lines]):
        (row,) = rows(*files)
        assert len(row["messages"]) == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"message": {"content": "Typed."}}, [("user", "Typed.")]),
        ({"message": {"content": "Meta."}, "isMeta": True}, [("program", "Meta.")]),
        ({"message": {"content": "So far: …"}, "isCompactSummary": True}, [("program", "So far: …")]),
        ({"message": {"content": "<command-name>/x</command-name>"}}, [("program", "<command-name>/x</command-name>")]),
        ({"message": {"content": "<bash-input>ls</bash-input>"}}, [("program", "<bash-input>ls</bash-input>")]),
        ({"message": {"content": "[Request interrupted by user]"}}, [("program", "[Request interrupted by user]")]),
        ({"message": {"content": "<task-notification>x</task-notification>"}, "origin": {"kind": "task-notification"}},
         [("program", "<task-notification>x</task-notification>")]),
        ({"message": {"content": "Typed."}, "origin": {"kind": "human"}}, [("user", "Typed.")]),
        ({"message": {"content": "Why? <system-reminder>Be brief.</system-reminder> Really?"}},
         [("user", "Why?"), ("program", "<system-reminder>Be brief.</system-reminder>"), ("user", "Really?")]),
        ({"message": {"content": [text("<ide_selection>x = 1</ide_selection>"), text("Explain."), {"type": "image"}]}},
         [("program", "<ide_selection>x = 1</ide_selection>"), ("user", "Explain.")]),
        ({"message": {"content": "a < b </p>"}}, [("user", "a < b </p>")]),
        ({"message": "no object"}, [("user", "no object")]),
    ],
)  # fmt: skip
def test_what_a_person_typed_and_what_the_program_wrote(line: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    session = Session()
    session.user("")
    session.lines[0].update(line)
    (row,) = rows(session.lines)
    assert said(row) == expected
    typed = [words for who, words in expected if who == "user"]
    assert row["prompt"] == (typed[0] if typed else None)


def test_a_result_keeps_of_its_structured_copy_what_it_does_not_say() -> None:
    session = Session()
    session.assistant(call("t1", command="cat"), call("t2", "Edit", old_string="a long old string of text"), call("t3"))
    session.result("t1", "out", toolUseResult={"stdout": "out", "stderr": "", "interrupted": False, "durationMs": 12})
    copy = {"oldString": "a long old string of text", "originalFile": "the whole file before", "userModified": False}
    session.result("t2", "updated", toolUseResult=copy)
    session.result("t3", '{"n": "1"}', mcpMeta={"structuredContent": {"n": "1"}}, toolUseResult='{"n": "1"}')
    (row,) = rows(session.lines)
    kept = [info["extra"] for info in row["message_info"][1:]]
    assert kept[0]["toolUseResult"] == {"durationMs": 12}
    assert kept[1]["toolUseResult"] == {"originalFile": "the whole file before"}
    assert not kept[2].keys() & {"toolUseResult", "mcpMeta"}
    assert row["steps"][0]["duration_ms"] == 12.0


def test_failed_cancelled_refused_and_missing_calls_are_told_apart() -> None:
    session = Session()
    session.user("Do.")
    session.assistant(*[call(f"t{number}") for number in range(6)])
    session.result("t0", "Exit code 1\nno", is_error=True)
    session.result(
        "t1", "<tool_use_error>Cancelled: parallel tool call Bash(x) errored</tool_use_error>", is_error=True
    )
    session.result("t2", "The user doesn't want to proceed with this tool use.", is_error=True)
    session.result("t3", "<tool_use_error>InputValidationError: no file_path</tool_use_error>", is_error=True)
    session.result("t4", "fine", is_error=False)
    session.assistant(text("Done."))
    (row,) = rows(session.lines)
    assert [(step["status"], step["condition"]) for step in row["steps"]] == [
        ("error", "error"),
        ("cancelled", None),
        ("error", "permission_denied"),
        ("error", "invalid_arguments"),
        ("ok", "success"),
        ("missing", None),
    ]
    assert row["flags"] == ["missing_result"]


def test_calls_without_ids_are_linked_by_the_lines_around_them() -> None:
    session = Session()
    session.user("Do.")
    made = session.assistant(call(None, command="ls"))
    session.result(None, "a", sourceToolAssistantUUID=made["uuid"], sourceToolUseID="src-1")
    made = session.assistant(call(None, command="pwd"))
    session.result(None, "/", isMeta=True)
    (row,) = rows(session.lines)
    assert [(step["status"], step["result_index"]) for step in row["steps"]] == [("ok", 2), ("ok", 4)]
    assert row["steps"][0]["call_id"] == "src-1"
    assert row["message_info"][4]["synthetic"] is False


def test_images_and_references_of_results_go_to_parts() -> None:
    session = Session()
    session.assistant(call("t1"))
    session.result(
        "t1", [text("see"), {"type": "image", "source": {"data": "aaaa"}}, {"type": "tool_reference", "tool_name": "x"}]
    )
    (row,) = rows(session.lines)
    assert said(row)[1] == ("tool", "see")
    assert [part["type"] for part in row["message_info"][1]["parts"]] == ["image", "tool_reference"]


def test_a_large_result_in_a_file_beside_the_log_is_named() -> None:
    session = Session()
    session.assistant(call("t1"))
    session.result(
        "t1",
        "<persisted-output>\nOutput too large (36KB). Full output saved to: /x/r.txt\n\nPreview:\na</persisted-output>",
    )
    (row,) = rows(session.lines)
    assert row["message_info"][1]["extra"]["side_file"] == "/x/r.txt"
    assert "result_elsewhere" in row["flags"]


def test_an_error_of_the_api_is_no_answer_of_the_model() -> None:
    session = Session()
    session.user("Go.")
    session.assistant(text("Going."))
    session.user("On.")
    failed = session.assistant(text("API Error: 529"), isApiErrorMessage=True)
    failed["message"]["model"] = "<synthetic>"
    session.line("system", subtype="turn_duration", durationMs=5)
    (row,) = rows(session.lines)
    assert (row["status"], row["error"], row["final_text"]) == ("error", "API Error: 529", "Going.")
    assert (row["model"], row["usage"]["output_tokens"]) == ("claude-demo-4", 5)
    assert "api_error" in row["flags"]


def test_compaction_breaks_the_chain_and_not_the_row() -> None:
    session = Session()
    session.user("Plan.")
    session.assistant(text("Planned."))
    before = session.last
    session.line(
        "system", parent=None, logicalParentUuid=before, subtype="compact_boundary", content="Conversation compacted"
    )
    session.user("Summary of all that.", isCompactSummary=True)
    session.user("Next.")
    session.assistant(text("Nexted."))
    (row,) = rows(session.lines)
    assert [who for who, _ in said(row)] == ["user", "assistant", "program", "user", "assistant"]
    assert row["message_info"][1]["extra"]["notes"][0]["subtype"] == "compact_boundary"
    assert row["flags"] == ["compacted"]


def test_messages_kept_by_a_compaction_stay_where_they_were_said() -> None:
    session = Session()
    session.user("Plan.")
    kept = session.assistant(text("Planned."))
    boundary = session.line(
        "system",
        parent=None,
        logicalParentUuid=kept["uuid"],
        subtype="compact_boundary",
        content="Conversation compacted",
    )
    summary = session.user("Summary.", isCompactSummary=True)
    session.user("Next.", parent=kept["uuid"])
    kept["parentUuid"] = summary["uuid"]
    boundary["compactMetadata"] = {"preservedMessages": {"anchorUuid": summary["uuid"], "uuids": [kept["uuid"]]}}
    (row,) = rows(session.lines)
    assert [words for _, words in said(row)] == ["Plan.", "Planned.", "Summary.", "Next."]
    assert row["flags"] == ["compacted", "incomplete"]


def test_the_queue_says_nothing_twice_and_loses_nothing() -> None:
    session = Session()
    queued = {"type": "queue-operation", "sessionId": "s-1"}
    session.lines.append(
        {**queued, "operation": "enqueue", "content": "Start  now.", "timestamp": "2026-02-03T10:00:00Z"}
    )
    session.user("Start now.")
    session.assistant(text("Started."))
    session.lines.append(
        {**queued, "operation": "enqueue", "content": "Parser first.", "timestamp": "2026-02-03T10:00:02.5Z"}
    )
    session.lines.append(
        {**queued, "operation": "remove", "content": "Parser first.", "timestamp": "2026-02-03T10:00:02.6Z"}
    )
    session.lines.append(
        {**queued, "operation": "enqueue", "content": "Never sent.", "timestamp": "2026-02-03T10:00:02.7Z"}
    )
    session.assistant(text("Parser first, done."))
    (row,) = rows(session.lines)
    assert said(row) == [
        ("user", "Start now."),
        ("assistant", "Started."),
        ("user", "Parser first."),
        ("assistant", "Parser first, done."),
    ]
    assert [note.get("content") for note in row["message_info"][2]["extra"]["notes"]] == ["Never sent."]


def test_snapshots_of_files_tell_what_is_new_in_them() -> None:
    session = Session()
    first = {"/a.py": {"backupFileName": "a@v1", "version": 1}}
    both = {**first, "/b.py": {"backupFileName": "b@v1", "version": 1}}
    session.user("Change both.")
    for number, backups in enumerate((first, both, both)):
        snapshot = {
            "messageId": "s-1-0",
            "trackedFileBackups": backups,
            "timestamp": f"2026-02-03T10:00:0{number + 2}Z",
        }
        session.lines.append({"type": "file-history-snapshot", "messageId": "s-1-0", "snapshot": snapshot})
    (row,) = rows(session.lines)
    notes = row["message_info"][0]["extra"]["notes"]
    assert [list(note["trackedFileBackups"]) for note in notes] == [["/a.py"], ["/b.py"]]


def test_a_prompt_typed_while_the_model_worked() -> None:
    session = Session()
    session.user("Start.")
    session.line(
        "attachment", attachment={"type": "queued_command", "prompt": "Also the tests.", "commandMode": "prompt"}
    )
    session.line(
        "attachment", attachment={"type": "queued_command", "prompt": "done", "commandMode": "task-notification"}
    )
    session.line("attachment", attachment={"type": "nested_memory", "path": "a.md", "content": "Always lint."})
    session.line("attachment", attachment={"type": "hook_success", "content": "", "stdout": "{}"})
    (row,) = rows(session.lines)
    assert said(row) == [
        ("user", "Start."),
        ("user", "Also the tests."),
        ("program", "done"),
        ("program", "Always lint."),
    ]
    assert row["message_info"][3]["extra"]["notes"][0]["attachment"]["type"] == "hook_success"
    assert row["n_turns"] == 2


def test_a_command_that_the_model_answers_is_the_prompt() -> None:
    named, typed = Session("s-1"), Session("s-2")
    for session in (named, typed):
        session.user("<command-name>/model</command-name>\n<command-args>demo</command-args>")
        session.user("<local-command-stdout>Set model to demo</local-command-stdout>")
    named.user(
        "<command-message>mend</command-message>\n<command-name>/mend</command-name>\n<command-args>net</command-args>"
    )
    named.user([text("Mend what is named.")], isMeta=True)
    typed.user("Mend the net.")
    prompts = []
    for session in (named, typed):
        session.assistant(text("Mended."))
        session.user("Thanks.")
        (row,) = rows(session.lines)
        prompts.append(row["prompt"])
    assert prompts == ["/mend net", "Mend the net."]
