"""The kept rule set: Kingfisher's, with its nearly 500 rules for the tokens and keys of named services.

It is MongoDB's scanner with the rules of Betterleaks and Veles in it, kept by people whose work that is; it reads 400
MB/s per core, forks safely and has wheels for Linux, macOS and Windows on both processor families. What else was
tried: detect-secrets (0.16 MB/s, last release 2024), its fork bc-detect-secrets (0.18 MB/s), betterleaks-py (32 MB/s,
hangs after a fork, stops at the first NUL, gives no offsets), credsweeper (pulls in 30 packages, among them pandas
and an ONNX runtime).

Reading everything with it costs as much again as our own rules, and loading it half a second: Hyperscan looks for its
patterns along with our signs, and it is loaded and asked only where one of them is (`SCANNED`).

Only the offline scanner is used; its validation and revocation, which would use the network, are not.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etl.redact import kept_signs
from etl.redact.credentials import is_value
from etl.redact.escapes import View
from etl.redact.sieve import Scanned
from etl.redact.spans import LABEL, Span
from etl.redact.texts import Texts

if TYPE_CHECKING:
    import kingfisher_sdk

PACKAGE = "kingfisher-secret-scanner"
WINDOW = 1 << 16
"""Characters that go to the scanner at once. Its worst cases are quadratic in this, not in the length of a string."""

_RANK = 2
_COVERED = frozenset(
    {
        "betterleaks.generic-credential-uri", "betterleaks.mongodb-connection-string", "betterleaks.curl-auth-user",
        "betterleaks.azure-servicebus-connection-string",
    }
)  # fmt: skip
"""Rules that take a whole URL or login, or a placeholder in one, where a rule of our own takes the password."""
_HEADER = "betterleaks.curl-auth-header"
"""It takes placeholders too."""
_HELPER_IS_SECRET = re.compile(r"secret|passphrase|security[-_]token")
_NO_SECRET = re.compile(r"[-_](?:id|name)(?:\.\d+)?$")
_HEX = re.compile(r"[0-9a-fA-F]+")


@functools.cache
def version() -> str:
    """Name and version of the package the rules come from."""
    return f"{PACKAGE}-{metadata.version(PACKAGE)}"


@functools.cache
def _scanner() -> kingfisher_sdk.Scanner:
    """One compiled scanner per process, shared by all threads and inherited by forked workers.

    Compiling takes 3 s once per machine and rule set; the package keeps the result in the user's cache folder, and
    then it takes 0.5 s and 60 MB. Few runs need it but the first of a machine, whose signs are made from its rules.
    """
    import kingfisher_sdk

    return kingfisher_sdk.Scanner(kingfisher_sdk.Rules(), base64=False)


def spans(view: View) -> Iterator[Span]:
    """What the rule set finds in a view, in places of the raw text."""
    for finding in _scanner().scan(view.data):
        name = rule_name(finding.rule_id)
        if not _is_taken(finding.rule_id, visible=finding.visible):
            continue
        start, end = finding.location["start_offset"], finding.location["end_offset"]
        secret = view.text[start:end]
        end -= len(secret) - len(secret.rstrip("'`,; \n\t"))
        if finding.rule_id == _HEADER and not is_value(secret, ""):
            continue
        if '"' in secret or LABEL.search(secret) or (not finding.visible and _HEX.fullmatch(secret)):
            continue
        yield view.span(start, end, name, _RANK)


def details() -> list[dict[str, Any]]:
    """What the package tells of each of its rules."""
    rules = _scanner().rules
    return [rules.detail(rule["id"]) for rule in rules.metadata()]


def _signs() -> Iterator[str]:
    """Of the rules whose findings `spans` may take."""
    for rule in details():
        if _is_taken(rule["id"], visible=rule["visible"]):
            yield kept_signs.sign(rule["detection_regex"] or "")


def _signs_version() -> str:
    made = b"".join(Path(module).read_bytes() for module in (kept_signs.__file__, __file__))
    return f"{version()} {hashlib.sha256(made).hexdigest()}"


def _suspects(texts: Texts) -> set[int]:
    """The places of the texts that may hold something, found by scanning them joined, a window at a time."""
    data, starts = texts.plain
    found: set[int] = set()
    start, last = starts[0], len(starts) - 1
    while start < starts[last]:
        index = bisect.bisect_right(starts, start + WINDOW) - 1
        stop = starts[index] if starts[index] > start else starts[index + 1]
        for finding in _scanner().scan(data[start:stop]):
            if not _is_taken(finding.rule_id, visible=finding.visible):
                continue
            first = bisect.bisect_right(starts, start + finding.location["start_offset"]) - 1
            final = bisect.bisect_right(starts, start + finding.location["end_offset"] - 1) - 1
            found.update(range(first, final + 1))
        start = stop
    return {index for index in found if index < last}


SCANNED = Scanned(PACKAGE, _signs_version, _signs, _suspects)
"""What tells which texts `spans` is worth asking for."""


def rule_name(rule_id: str) -> str:
    """The name a rule has in labels and counts: without its catalogue, in lower snake case.

    >>> rule_name("betterleaks.aws-access-token"), rule_name("veles.secrets/npmjsaccesstoken")
    ('aws_access_token', 'npmjsaccesstoken')
    """
    bare = re.split(r"[./]", rule_id.removeprefix("veles.secrets/").removeprefix("betterleaks."))[0]
    return re.sub(r"[^a-z0-9]+", "_", bare.lower()).strip("_")


def _is_taken(rule_id: str, *, visible: bool) -> bool:
    """False for what only completes a pair and is not the secret half of it, and for ids of clients and accounts."""
    if rule_id in _COVERED or _NO_SECRET.search(rule_id):
        return False
    return visible or bool(_HELPER_IS_SECRET.search(rule_id))
