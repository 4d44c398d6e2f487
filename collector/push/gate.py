"""`Gate`: how many requests all receivers together take at once; one too many is told at once to try again."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from time import monotonic

from store.errors import BusyError

MAX_REQUESTS, MAX_HELD_BYTES = 64, 128 << 20
"""Requests that are decoded or wait for their commit at once, and bytes of their bodies."""
PATIENCE_S, FEW = 3.0, 4
"""No more than FEW requests are let in while the oldest has waited so long: exporters give up after ten seconds, and a
request that is decoded for nobody keeps the others waiting."""
DECODERS = 2
"""Requests decoded at once. More only wait for each other: decoding holds the interpreter's lock."""


class Gate:
    """Counts the requests under way. Thread-safe."""

    def __init__(self, requests: int = MAX_REQUESTS, held_bytes: int = MAX_HELD_BYTES) -> None:
        """Let in so many requests, and so many bytes (one request is let in whatever its size)."""
        self.decoders = threading.Semaphore(DECODERS)
        self._limits = requests, held_bytes
        self._lock, self._names = threading.Lock(), count()
        self._under_way: dict[int, tuple[float, int]] = {}

    @contextmanager
    def hold(self, size: int) -> Iterator[None]:
        """Count a request of so many bytes as under way. Raises BusyError where it is one too many."""
        name = self._enter(size)
        try:
            yield
        finally:
            with self._lock:
                del self._under_way[name]

    def _enter(self, size: int) -> int:
        with self._lock:
            requests, held_bytes = self._limits
            held = sum(taken for _, taken in self._under_way.values())
            if len(self._under_way) >= requests or (self._under_way and held + size > held_bytes):
                raise BusyError("too many requests at once")
            waited_s = monotonic() - next(iter(self._under_way.values()), (monotonic(), 0))[0]
            if len(self._under_way) >= FEW and waited_s > PATIENCE_S:
                raise BusyError(f"the oldest request has waited for {waited_s:.1f} s")
            name = next(self._names)
            self._under_way[name] = (monotonic(), size)
            return name
