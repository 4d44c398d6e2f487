"""`SharedSource`: one computation at a time for one question, however many tabs and panels ask it."""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Lock, Semaphore
from typing import TYPE_CHECKING, Any, TypeVar, cast

from analytics.result import Result
from dashboards.source import Source

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")

FRESH_S = 4.0
"""How long an answer serves again at least: the panels of one page load share it, the next refresh does not."""

REST = 4.0
"""An answer also serves for this many times as long as it took, so that open pages cost a fifth of a core at most."""

AT_ONCE = 4
"""Questions computed at the same time; more would only share the same cores and readers."""

KEPT = 64
"""Answers remembered at most."""


class SharedSource:
    """A Source that asks another at most once for equal questions in flight or just answered.

    Without it three tabs on a slow store run every query three times, and each refresh makes it slower. Errors are
    given to all who wait and are not remembered. `clock` counts seconds.
    """

    def __init__(self, source: Source, clock: Callable[[], float] = time.monotonic) -> None:
        self._source, self._clock = source, clock
        self._lock, self._slots = Lock(), Semaphore(AT_ONCE)
        self._known: OrderedDict[str, tuple[float, Future[Any]]] = OrderedDict()  # fresh until, answer

    def result(self, analysis: str, params: Mapping[str, Any], window: str | None) -> Result:
        """Run an analysis, or share the answer of an equal question."""
        key = repr(("result", analysis, sorted(params.items()), window))
        return self._share(key, lambda: self._source.result(analysis, params, window))

    def status(self) -> Mapping[str, Any]:
        """Share the source's status."""
        return self._share("status", self._source.status)

    def trace(self, trace_id: str) -> "pl.DataFrame":
        """Share the spans of one trace."""
        return self._share(repr(("trace", trace_id)), lambda: self._source.trace(trace_id))

    def _share(self, key: str, ask: Callable[[], T]) -> T:
        with self._lock:
            until, future = self._known.get(key, (0.0, None))
            mine = future is None or (future.done() and self._clock() > until)
            if mine:
                future = self._remember(key)
        if mine and future is not None:
            self._compute(key, future, ask)
        return cast("Future[T]", future).result()

    def _remember(self, key: str) -> Future[Any]:
        future: Future[Any] = Future()
        self._known[key] = (0.0, future)
        self._known.move_to_end(key)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return future

    def _compute(self, key: str, future: Future[T], ask: Callable[[], T]) -> None:
        started = self._clock()
        try:
            with self._slots:
                answer = ask()
        except BaseException as error:  # noqa: BLE001  whoever waits for it must get it, whatever it is
            self._settle(key, future, None)
            future.set_exception(error)
            return
        took = self._clock() - started
        self._settle(key, future, self._clock() + max(FRESH_S, REST * took))
        future.set_result(answer)

    def _settle(self, key: str, future: Future[Any], until: float | None) -> None:
        with self._lock:
            if self._known.get(key, (0.0, None))[1] is not future:
                return
            if until is None:
                del self._known[key]
            else:
                self._known[key] = (until, future)
