"""What may be asked of redaction, by name: known before anything of it is loaded."""

from __future__ import annotations

from etl.errors import UsageError

POLICIES = ("secrets", "pii", "strict", "none")
"""Secrets; secrets and personal data; these and names and postal addresses; nothing, for rows known to hold none."""
KEYED = frozenset({"pii", "strict"})
"""Policies that need a key for their pseudonyms."""


def check_name(policy: str) -> None:
    """UsageError where there is no such policy."""
    if policy not in POLICIES:
        raise UsageError(f"no redaction policy is called {policy!r}; use one of: {', '.join(map(repr, POLICIES))}")


def check_policy(policy: str) -> None:
    """The same, and MissingExtraError where it needs packages that are not there."""
    check_name(policy)
    if policy == "strict":
        from etl.redact import recognition

        recognition.check()
