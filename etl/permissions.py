"""Who may read what is written: its owner, or the group of a folder that is shared on purpose (setgid)."""

from __future__ import annotations

import os
import stat

PRIVATE = 0o077
"""A umask: nothing for the group, nothing for others."""
SHARED = 0o007
"""A umask: nothing for others, and for the group what the umask of the process leaves it."""


def is_shared(path: str | os.PathLike[str]) -> bool:
    """Whether the folder, or the nearest one above it that is there, has the setgid bit (`chmod g+s`)."""
    place = os.path.abspath(path)  # noqa: PTH100  (resolves no symbolic links)
    while not os.path.isdir(place) and os.path.dirname(place) != place:  # noqa: PTH112, PTH120
        place = os.path.dirname(place)  # noqa: PTH120
    try:
        return bool(os.stat(place).st_mode & stat.S_ISGID)  # noqa: PTH116
    except OSError:
        return False


def folder_mode(path: str | os.PathLike[str]) -> int:
    """The permissions of a folder that is made at `path`."""
    return 0o2770 if is_shared(path) else 0o700
