"""A lane: one daemon thread at a time, so that a call that never returns holds up nothing but itself."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")


class Lane(Generic[T]):
    """Runs tasks one after the other. Not concurrent.futures: its threads would keep the process from ending."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._future: Future[T] | None = None
        self._since = 0.0

    @property
    def busy(self) -> bool:
        """Whether a task runs."""
        return self._future is not None and not self._future.done()

    @property
    def stuck_s(self) -> float:
        """For how long the task in this lane has not returned; 0 where none runs."""
        return monotonic() - self._since if self.busy else 0.0

    def start(self, task: Callable[[], T]) -> bool:
        """Start a task; False, and nothing started, while the last one still runs."""
        if self.busy:
            return False
        self._future, self._since = Future(), monotonic()
        Thread(target=_run, args=(task, self._future), name=self.name, daemon=True).start()
        return True

    def result(self, timeout_s: float) -> T:
        """Return what the task returned or raise what it raised; TimeoutError where it needs longer."""
        if self._future is None:
            raise RuntimeError(f"lane {self.name}: nothing started")
        return self._future.result(max(timeout_s, 0.0))


def _run(task: Callable[[], T], future: "Future[T]") -> None:
    try:
        future.set_result(task())
    except BaseException as error:  # noqa: BLE001 - raised again by result(), in the thread that waits
        future.set_exception(error)
