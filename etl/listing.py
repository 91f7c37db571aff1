"""The objects below a prefix of an object store, one after another in the order of their names, whatever their number.

A store is asked for a thousand at a time, with their sizes and times. It is gone over twice: the first time only lakes
and what stands for folders are noted, as either may be told by what comes later. Stores give names in order; where one
does not, they are held and sorted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from etl.remote import asking
from etl.walk import Exclusion, FoundFile

CHUNK = 1_000
"""So many objects are asked for at a time, as most stores give no more."""
_LOG = "/rollouts/_delta_log/"


class _Known(NamedTuple):
    """What one pass tells of the names below a prefix."""

    lakes: set[str]
    folders: set[str]
    """Empty objects that stand for folders."""
    in_order: bool


def below(given: str, exclude: Exclusion) -> Iterator[FoundFile]:
    """The objects below the URI of a prefix; lakes are left out, and what matches `exclude`."""
    known = _looked_over(_objects(given))
    found = _objects(given)
    for file in found if known.in_order else sorted(found, key=lambda file: os.fsencode(file.uri)):
        if file.uri in known.folders or any(file.uri.startswith(f"{lake}/") for lake in known.lakes):
            continue
        path = file.uri.removeprefix(f"{given.rstrip('/')}/")
        parts = PurePosixPath(path).parts
        if not (exclude and exclude.leaves_out(file.uri, path, parts[-1], *parts[:-1])):
            yield file


def _looked_over(files: Iterator[FoundFile]) -> _Known:
    lakes: set[str] = set()
    empty: set[str] = set()
    folders: set[str] = set()
    in_order, last = True, b""
    for file in files:
        name = os.fsencode(file.uri)
        in_order, last = in_order and last <= name, name
        if _LOG in file.uri:
            lakes.add(file.uri.partition(_LOG)[0])
        if not file.size:
            empty.add(file.uri)
        elif empty:
            folders.update(empty.intersection(_leading(file.uri)))
    return _Known(lakes, folders, in_order)


def _leading(uri: str) -> Iterator[str]:
    """The names of the folders that lead to an object."""
    at = uri.find("://") + 3
    while (at := uri.find("/", at + 1)) > 0:
        yield uri[:at]


def _objects(given: str) -> Iterator[FoundFile]:
    import obstore

    scheme, _, rest = given.rstrip("/").partition("://")
    bucket, _, prefix = rest.partition("/")
    with asking(given):
        store = obstore.store.from_url(f"{scheme}://{bucket}")
        for lot in obstore.list(store, prefix or None, chunk_size=CHUNK):
            for each in lot:
                uri = f"{scheme}://{bucket}/{each['path']}"
                # In whole seconds, which is all that a store says of one object that it is asked for.
                yield FoundFile(uri, uri, each["size"], int(each["last_modified"].timestamp()) * 1_000_000_000)
