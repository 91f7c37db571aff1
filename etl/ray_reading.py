"""Files over a Ray cluster: each task reads a share of them and writes its own Parquet to storage that all nodes share.

The driver does what a single machine does: it tells what has to be read, commits once, and puts conversations together
that span files. A task that is lost with its node is run again elsewhere; what it left half-written is in no commit.
Tried with Ray 2.60.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from etl.errors import LakeError, MissingExtraError
from etl.footprint import settle
from etl.lake import StagedFile, guest
from etl.lake.place import Place
from etl.parts import Work
from etl.reading import Reader
from etl.settings import Settings
from etl.worker import read_task
from etl.workers import OnFile, Queue, ReadOut, shares

TASK_BYTES = 256 << 20
"""Input of one task where there are more bytes than that for each core: what a lost node costs."""
RETRIES = 4
CONNECT_SECONDS = 10
_HOST_PORT = re.compile(r"(?:ray://)?\[?([^/\]]+?)\]?:(\d{1,5})")


@contextlib.contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """The cluster at `address`, or one that is started on this machine, for as long as the block runs.

    MissingExtraError without Ray.
    """
    try:
        import ray
    except ImportError:
        raise MissingExtraError('the engine ray needs Ray: pip install "rollout-etl[ray]"') from None
    started = not ray.is_initialized()
    try:
        if started:
            _start(ray, address)
        yield ray
    finally:
        if started:
            ray.shutdown()


def read_on_ray(ray: Any, works: Sequence[Work], settings: Settings, on_file: OnFile) -> ReadOut:
    """Read every file on a cluster; LakeError where tasks fail again and again."""
    try:
        return _read(ray, works, settings, on_file)
    except ray.exceptions.RayError as error:
        raise LakeError(f"the Ray cluster could not read the files: {' '.join(str(error).split())[:300]}") from error


def _start(ray: Any, address: str | None) -> None:
    try:
        if address is not None and (where := _HOST_PORT.fullmatch(address)):
            # Ray itself tries for minutes.
            socket.create_connection((where[1], int(where[2])), CONNECT_SECONDS).close()
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # noqa: TID251  (Ray calls home otherwise, and has no argument for it)
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level="ERROR",
            include_dashboard=False if not address else None,
        )
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split())[:300]
        raise LakeError(f"no Ray cluster at {address or 'this machine'}: {reason}") from error


def _read(ray: Any, works: Sequence[Work], settings: Settings, on_file: OnFile) -> ReadOut:
    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
    task = ray.remote(max_retries=RETRIES, retry_exceptions=False)(_task)
    queue = Queue(works, settings, on_file)
    staged: list[StagedFile] = []
    round_ = 0
    while tasks := list(iter(queue.next, None)):
        size = sum(work.size for lot in tasks for work in lot)
        given = shares(tasks, min(len(tasks), max(cores, -(-size // TASK_BYTES))))
        waiting = [task.remote(share, settings, f"ray{round_}.{number}") for number, share in enumerate(given)]
        while waiting:
            done, waiting = ray.wait(waiting, num_returns=1)
            for share_results, share_staged in ray.get(done):
                for result in share_results:
                    queue.done(result)
                queue.take_all(share_results)
                staged += share_staged
        round_ += 1
    return ReadOut(queue.results(), staged)


def _task(works: Sequence[Work], settings: Settings, worker: str) -> ReadOut:
    """On a node: read a share; where the lake is in a store, what is staged goes there."""
    settle()
    place = Place(settings.lake)
    with guest(place, settings.batch_id):
        reader = Reader(settings, worker)
        read = ReadOut(read_task(reader, works, lambda _told: None), reader.close())
        if not place.is_remote:
            return read
        return ReadOut(read.results, [_uploaded(place, file, settings.batch_id) for file in read.staged])


def _uploaded(place: Place, file: StagedFile, batch_id: str) -> StagedFile:
    target = place.shared_staging(batch_id) / Path(file.path).name
    with Path(file.path).open("rb") as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink, 8 << 20)
    Path(file.path).unlink()
    return file._replace(path=str(target))
