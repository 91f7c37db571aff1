"""One target under the engine, in a process of its own: `python -m tests.fuzz.engine TARGET SECONDS FOLDER`.

With atheris the code of `etl` is instrumented and inputs that reach something new are kept in FOLDER/corpus; without it
the same mutations are made of the seeds alone. A failure does not end the run: its input and its traceback go to
FOLDER/crashes, once for each place it comes from. What ends the process (a hang, a crash of a library) leaves its input
there too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import sys
import time
import traceback
from pathlib import Path

try:
    import atheris
except ImportError:
    atheris = None

if atheris is not None:
    with atheris.instrument_imports(include=["etl"], enable_loader_override=False):
        from tests.fuzz.targets import LONGEST, Target, mutated, private_folder, run, seeds, targets

        targets()  # loads every adapter
else:
    from tests.fuzz.targets import LONGEST, Target, mutated, private_folder, run, seeds, targets

from tests.fuzz.path import Wrong, peak_mb

HANG_SECONDS = 180
"""Of the clock, after which an input is a hang whatever the machine does besides."""
MEMORY_MB = 1500
"""Where the engine ends the process; `path.GROWTH_MB` is what one input may take."""


class Session:
    """Counts what is run and keeps what fails."""

    def __init__(self, target: Target, seconds: float, folder: Path, inputs: Path) -> None:
        self.target = target
        self.crashes = folder / "crashes" / target.name
        self.crashes.mkdir(parents=True, exist_ok=True)
        self.inputs = inputs
        self.stats = folder / f"{target.name}.stats.json"
        self.executed = 0
        self.started = self.told = time.monotonic()
        self.ends = self.started + seconds
        self.pool = seeds(target)

    def one(self, data: bytes) -> None:
        """Run an input; an exception is noted."""
        try:
            run(self.target, data, self.inputs)
        except Exception as error:  # noqa: BLE001 (any is what is looked for)
            self.note(error, data)
        self.executed += 1
        now = time.monotonic()
        if now - self.told > 1:
            self.told = now
            self.tell()

    def tell(self) -> None:
        """Write down how far it is, for whoever started it."""
        told = {"executions": self.executed, "seconds": round(time.monotonic() - self.started, 1), "peak_mb": peak_mb()}
        self.stats.write_text(json.dumps(told))

    def note(self, error: Exception, data: bytes) -> None:
        """Keep the input, the shortest for each place in the code."""
        place = signature(error)
        name = f"{type(error).__name__}-{hashlib.sha256(place.encode()).hexdigest()[:10]}"
        kept = self.crashes / name
        if not kept.exists() or kept.stat().st_size > len(data):
            kept.write_bytes(data)
            text = "".join(traceback.format_exception(error))
            kept.with_suffix(".txt").write_text(f"{place}\n{text}", "utf-8", "backslashreplace")

    def mutate(self, data: bytes, most: int, seed: int) -> bytes:
        """An input made of another."""
        rng = random.Random(seed)
        if atheris is not None and rng.random() < 0.2:
            return bytes(atheris.Mutate(data, most))
        return mutated(self.target, data, rng, self.pool)[:most]


def signature(error: Exception) -> str:
    """Where a failure comes from: its type and the last place in the product, or what it says where there is none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/etl/" in frame.filename]
    if isinstance(error, Wrong) or not frames:
        return f"{type(error).__name__}: {str(error).split(':')[0]}"
    last = frames[-1]
    return f"{type(error).__name__} {last.filename.rpartition('/etl/')[2]}:{last.name}:{last.lineno}"


def main(name: str, seconds: float, folder: Path) -> None:
    """Fuzz until the time is over."""
    target = targets()[name]
    corpus, first = folder / "corpus" / name, folder / "seeds" / name
    corpus.mkdir(parents=True, exist_ok=True)
    first.mkdir(parents=True, exist_ok=True)
    with private_folder() as inputs:
        session = Session(target, seconds, folder, Path(inputs))
        for text in session.pool:
            (first / hashlib.sha256(text).hexdigest()[:16]).write_bytes(text)
            session.one(text)  # in any order, and before the peak of memory is looked at
        if atheris is None:
            _mutations_alone(session)
            return
        arguments = [
            sys.argv[0], f"-max_total_time={max(1, int(seconds))}", f"-max_len={LONGEST}", f"-timeout={HANG_SECONDS}",
            f"-rss_limit_mb={MEMORY_MB}", f"-artifact_prefix={session.crashes}/", "-len_control=0", "-reload=0",
            "-report_slow_units=100000", "-print_final_stats=1", "-verbosity=0", str(corpus), str(first),
        ]  # fmt: skip
        atheris.Setup(arguments, session.one, custom_mutator=session.mutate)
        with contextlib.suppress(SystemExit):
            atheris.Fuzz()
        session.tell()


def _mutations_alone(session: Session) -> None:
    seed = 0
    while time.monotonic() < session.ends:
        seed += 1
        text = random.Random(seed).choice(session.pool)
        session.one(session.mutate(text, LONGEST, seed))
    session.tell()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
