"""Digests of the bytes of a file on disk, filled while it is read."""

from __future__ import annotations

import hashlib

from etl.decode import count


class Digest:
    """SHA-256 and size of the bytes on disk, filled while they are read; also of the first `mark` of them."""

    def __init__(self, mark: int = 0) -> None:
        self.size = 0
        self._sha256 = hashlib.sha256()
        self._mark = mark
        self._of_mark: str | None = None

    def update(self, data: bytes) -> None:
        self._take(data)

    def _take(self, data: bytes | memoryview) -> None:
        if self.size < self._mark <= self.size + len(data):
            first = self._mark - self.size
            self._sha256.update(data[:first])
            self._of_mark = self._sha256.hexdigest()
            self._sha256.update(data[first:])
        else:
            self._sha256.update(data)
        self.size += len(data)

    def begins_with(self, sha256: str | None) -> bool:
        """Whether that is the digest of the bytes up to the mark."""
        return self._of_mark is not None and self._of_mark == sha256

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


class LineDigest(Digest):
    """Also of the whole lines so far: their bytes, number and digest."""

    def __init__(self, mark: int = 0) -> None:
        super().__init__(mark)
        self.whole = self.lines = 0
        self._of_lines = self._sha256.copy()

    def update(self, data: bytes) -> None:
        end = data.rfind(b"\n") + 1
        whole = memoryview(data)
        if end:
            self._take(whole[:end])
            self.whole, self._of_lines = self.size, self._sha256.copy()
            self.lines += count(data, b"\n")
        self._take(whole[end:])

    def lines_hexdigest(self) -> str:
        """Digest of the first `whole` bytes."""
        return self._of_lines.hexdigest()
