"""What all receivers share: where batches go, and counts of what was taken and refused."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from collector.otlp.arrivals import REASONS
from collector.push.batch import KEPT
from store.batch import Batch, Receipt

Submit = Callable[[Batch], "Future[Receipt]"]
"""Queue a batch; the future resolves after COMMIT. Raises BusyError when the queue is full."""
TRACES, METRICS, LOGS = "traces", "metrics", "logs"


class ReceiverCounts:
    """Thread-safe counters. Every request ends in exactly one outcome.

    Outcomes: `stored`, `partial` (stored but for what was refused), `empty`, or why the request was refused:
    `malformed`, `too_large`, `unsupported_type`, `unsupported_encoding`, `busy`, `store_error`, `cut_off`.
    """

    def __init__(self) -> None:
        """Start at zero."""
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._rows: Counter[tuple[str, str]] = Counter()
        self._refused: Counter[tuple[str, str]] = Counter()

    def taken(self, protocol: str, batch: Batch, signal: str = TRACES) -> None:
        """Count a batch after COMMIT."""
        refused = {reason: n for reason, n in batch.drops.items() if reason not in KEPT and reason not in REASONS}
        outcome = "partial" if refused else "stored" if batch.rows else "empty"
        with self._lock:
            self._requests[protocol, signal, outcome] += 1
            self._rows[protocol, signal] += batch.rows
            self._refused.update({(signal, reason): n for reason, n in refused.items()})

    def refused(self, protocol: str, reason: str, signal: str = TRACES) -> None:
        """Count a request of which nothing was stored."""
        with self._lock:
            self._requests[protocol, signal, reason] += 1

    @property
    def requests(self) -> Mapping[tuple[str, str, str], int]:
        """Requests by (protocol, signal, outcome).

        Protocols are `http` and `grpc` (OTLP) and `remote_write`; signals are `traces`, `metrics` and `logs`.
        """
        with self._lock:
            return dict(self._requests)

    @property
    def rows(self) -> Mapping[tuple[str, str], int]:
        """Rows taken by (protocol, signal); ones that were stored before are among them."""
        with self._lock:
            return dict(self._rows)

    @property
    def refused_rows(self) -> Mapping[tuple[str, str], int]:
        """Spans and samples refused, by (signal, reason)."""
        with self._lock:
            return dict(self._refused)
