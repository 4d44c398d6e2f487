"""What the HTTP and the gRPC receiver share: where batches go, and counts of what was taken and refused."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from store.batch import Batch, Receipt

Submit = Callable[[Batch], "Future[Receipt]"]
"""Queue a batch; the future resolves after COMMIT. Raises BusyError when the queue is full."""


class ReceiverCounts:
    """Thread-safe counters. Every request ends in exactly one outcome.

    Outcomes: `stored`, `partial` (stored but for refused spans), `empty`, or why the request was refused: `malformed`,
    `too_large`, `unsupported_type`, `unsupported_encoding`, `busy`, `store_error`, `cut_off`.
    """

    def __init__(self) -> None:
        """Start at zero."""
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str]] = Counter()
        self._spans: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()

    def taken(self, protocol: str, batch: Batch) -> None:
        """Count a batch after COMMIT."""
        outcome = "partial" if batch.drops else "stored" if batch.rows else "empty"
        with self._lock:
            self._requests[protocol, outcome] += 1
            self._spans[protocol] += batch.rows
            self._refused.update(batch.drops)

    def refused(self, protocol: str, reason: str) -> None:
        """Count a request of which nothing was stored."""
        with self._lock:
            self._requests[protocol, reason] += 1

    @property
    def requests(self) -> Mapping[tuple[str, str], int]:
        """Requests by (protocol, outcome); protocols are `http` and `grpc`."""
        with self._lock:
            return dict(self._requests)

    @property
    def spans(self) -> Mapping[str, int]:
        """Spans taken by protocol; ones that were stored before are among them."""
        with self._lock:
            return dict(self._spans)

    @property
    def refused_spans(self) -> Mapping[str, int]:
        """Spans refused by reason."""
        with self._lock:
            return dict(self._refused)
