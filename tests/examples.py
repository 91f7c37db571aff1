"""How many examples a property is tried with, where the number of the profile does not suit it."""

from __future__ import annotations

from hypothesis import settings


def examples(number: int) -> settings:
    """So many with `--thorough`, as in `make check`; a quarter of them, and at least three, in `make test`."""
    thorough = settings.get_current_profile_name() == "thorough"
    return settings(max_examples=number if thorough else max(3, number // 4))
