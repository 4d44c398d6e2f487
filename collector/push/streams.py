"""State by stream, dropped when the stream falls silent."""

from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Generic, TypeVar

S = TypeVar("S")

KEPT_US = timedelta(hours=1) // timedelta(microseconds=1)
"""How long a silent stream is remembered: a sender of deltas says nothing while nothing happens."""
_SWEEP_US = timedelta(minutes=1) // timedelta(microseconds=1)


class Streams(Generic[S]):
    """States by key, each with the time (us) it was last asked for."""

    def __init__(self) -> None:
        """Start without any."""
        self._states: dict[Hashable, S] = {}
        self._seen_us: dict[Hashable, int] = {}
        self._swept_us = 0

    def __len__(self) -> int:
        return len(self._states)

    def get(self, key: Hashable, now_us: int, make: Callable[[], S]) -> S:
        """Return the state of a stream, a new one where it is not known."""
        self._sweep(now_us)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = make()
        self._seen_us[key] = now_us
        return state

    def _sweep(self, now_us: int) -> None:
        if now_us - self._swept_us > _SWEEP_US:
            self._swept_us = now_us
            for key in [key for key, seen_us in self._seen_us.items() if seen_us < now_us - KEPT_US]:
                del self._states[key], self._seen_us[key]
