"""References to symbols, for all series of a request at once: from the wire to keys that stay the same over requests.

A request has a table of its own, so the same series comes under other references each time. Every symbol gets a number
for good; the numbers of a series' symbols are its key.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from collector.push.columns import Ints

_FIRST_NUMBER = 0x10000000  # no key may begin like one of protocol 1.0, with byte 0x0A
_MOST = 1_000_000
_NUMBER = np.dtype(">i4")
_LONGEST = 5  # bytes of a reference


class SymbolNumbers:
    """Numbers of symbols. One is never given twice; beyond a million, all are given anew and old keys fall silent."""

    def __init__(self) -> None:
        """Know none."""
        self._numbers: dict[bytes, int] = {}
        self._next = _FIRST_NUMBER

    def table(self, symbols: Sequence[bytes]) -> "SymbolTable":
        """Return the table of a request."""
        if len(self._numbers) > _MOST:
            self._numbers.clear()
        found = list(map(self._numbers.get, symbols))
        for i, number in enumerate(found):
            if number is None:
                found[i] = self._numbers.setdefault(symbols[i], self._next)
                self._next += 1
        return SymbolTable(np.array(found, _NUMBER))


class SymbolTable:
    """The symbols of one request as numbers."""

    def __init__(self, numbers: npt.NDArray[np.int32]) -> None:
        """Hold the numbers, by reference."""
        self._numbers = numbers

    def key(self, refs: Sequence[int]) -> bytes:
        """Return the key of references that lie within the table."""
        return self._numbers[np.array(refs, np.int64)].tobytes()

    def keys(self, blocks: Sequence[bytes]) -> list[bytes | None]:
        """Return a key for each block of references as on the wire; None where one lies outside the table.

        Raises DecodeError for a block that ends within a number.
        """
        refs, ends = _varints(blocks)
        outside = refs >= self._numbers.size
        if not self._numbers.size:
            return [None] * len(blocks)
        joined = self._numbers[np.where(outside, 0, refs)].tobytes()
        bounds = [0, *(ends * _NUMBER.itemsize).tolist()]
        keys: list[bytes | None] = [joined[start:end] for start, end in pairwise(bounds)]
        for i in set(np.searchsorted(ends, np.flatnonzero(outside), "right").tolist()):
            keys[i] = None
        return keys


def _varints(blocks: Sequence[bytes]) -> tuple[Ints, Ints]:
    """Return all numbers of some blocks, none of them empty, and how many there are up to the end of each block."""
    raw = np.frombuffer(b"".join(blocks), np.uint8)
    last = raw < 0x80
    sizes = np.cumsum(np.fromiter(map(len, blocks), np.int64, len(blocks)))
    if not last[sizes - 1].all():
        raise DecodeError("a reference is cut off")
    ends = np.flatnonzero(last)
    starts = np.concatenate([np.zeros(1, np.int64), ends + 1])[: ends.size]
    lengths = ends - starts + 1
    if lengths.max(initial=0) > _LONGEST:
        raise DecodeError("a reference has too many bytes")
    values = np.zeros(ends.size, np.int64)
    for k in range(int(lengths.max(initial=0))):
        has = lengths > k
        values[has] |= (raw[starts[has] + k].astype(np.int64) & 0x7F) << (7 * k)
    counts: Ints = np.cumsum(last, dtype=np.int64)
    return values, counts[sizes - 1]
