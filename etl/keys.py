"""The key of a lake's pseudonyms: given, or made at random and kept outside the data, for the user alone."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from etl.errors import UsageError

LEAST_BYTES = 16
KEYS = Path("~/.local/state/etl/keys")
"""Where the keys of lakes are kept for which nobody gives one, unless XDG_STATE_HOME names another folder of state."""


def given_key(text: str) -> bytes:
    """A key as somebody gives it; UsageError where it is too short to be one."""
    key = text.strip().encode()
    if len(key) < LEAST_BYTES:
        raise UsageError(
            f"the key for pseudonyms has {len(key)} bytes; give at least {LEAST_BYTES}, as random as can be"
        )
    return key


def passing_key() -> bytes:
    """A key that nobody keeps: for what is written nowhere."""
    return secrets.token_bytes(32)


def kept_key(lake_id: str, folder: Path, *, make: bool = True) -> bytes:
    """The key of the lake with that id in a folder of keys, made where there is none; UsageError where it cannot be.

    Whoever loses it gets other pseudonyms for what comes in from then on. Without `make` one that is not there is made
    up and not kept.
    """
    path = folder / f"{lake_id}.key"
    try:
        if not make and not path.exists():
            return passing_key()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return given_key(path.read_text(encoding="ascii"))
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32))
        return given_key(path.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: the key for pseudonyms cannot be kept there ({error}); give one yourself") from None


def lake_key(lake_id: str, *, make: bool = True) -> bytes:
    """The key of a lake for which nobody gives one; where there is none, and none is to be made, one for this once."""
    usual = KEYS.expanduser()
    state = os.environ.get("XDG_STATE_HOME")  # noqa: TID251  (it says where the home folder's own place is)
    folder = Path(state, "etl", "keys") if state else usual
    name = f"{lake_id}.key"
    # Keys that were made before this was honoured stay where they are.
    is_older = os.access(usual / name, os.R_OK) and not os.access(folder / name, os.R_OK)
    return kept_key(lake_id, usual if is_older else folder, make=make)
