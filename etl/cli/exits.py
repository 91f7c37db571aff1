"""What the exit codes of `etl` mean."""

from __future__ import annotations

DONE = 0
FAILED = 1
"""Nothing half-written is visible. Also where `verify` found a fault that it did not repair."""
WRONG_USAGE = 2
"""The command line, or the SQL, says something that cannot be meant."""
DONE_WITH_FAILURES = 3
"""Done, but a file failed (or records were rejected and `--fail-on-reject` was given)."""
INTERRUPTED = 130
"""Ctrl-C, as shells say it: 128 + SIGINT."""
CLOSED_PIPE = 141
"""The reader of stdout went away, as shells say it: 128 + SIGPIPE."""
