"""When each phase of one attempt began and ended, on one monotonic clock."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

DNS, CONNECT, TLS = "dns.lookup", "connect", "tls.handshake"


@dataclass(slots=True)
class Phase:
    """One phase; times are ns after the start of the attempt. `end_ns` is None while it lasts."""

    name: str
    start_ns: int
    attributes: Mapping[str, Any]
    end_ns: int | None = None
    failed: bool = False

    @property
    def seconds(self) -> float:
        """How long it took; 0 while it lasts."""
        return 0.0 if self.end_ns is None else (self.end_ns - self.start_ns) / 1e9


@dataclass(slots=True)
class Timeline:
    """Phases of one attempt. `sent_ns`: the request was written; `head_ns`: head of the answer read; None: not yet."""

    started_unix_ns: int = field(default_factory=time.time_ns)
    zero_ns: int = field(default_factory=time.perf_counter_ns)
    phases: list[Phase] = field(default_factory=list)
    sent_ns: int | None = None
    head_ns: int | None = None

    def now_ns(self) -> int:
        """Return ns since the start of the attempt."""
        return time.perf_counter_ns() - self.zero_ns

    @contextmanager
    def phase(self, name: str, attributes: Mapping[str, Any]) -> Iterator[None]:
        """Record a phase around a block; one that is left by an exception has failed."""
        self.phases.append(Phase(name, self.now_ns(), attributes))
        try:
            yield
        except BaseException:
            self._end(name, failed=True)
            raise
        self._end(name, failed=False)

    async def traced(self, event: str, details: Mapping[str, Any]) -> None:
        """Take an event of httpcore's trace extension."""
        del details
        _, name, step = event.split(".")
        if name == "start_tls" and step == "started":
            self.phases.append(Phase(TLS, self.now_ns(), {}))
        elif name == "start_tls":
            self._end(TLS, failed=step == "failed")
        elif name == "send_request_body" and step == "complete":
            self.sent_ns = self.now_ns()
        elif name == "receive_response_headers" and step == "complete":
            self.head_ns = self.now_ns()

    def seconds(self, name: str) -> float | None:
        """Return the time in all phases of a name that succeeded; None without one."""
        times = [phase.seconds for phase in self.phases if phase.name == name and not phase.failed]
        return sum(times) if times else None

    @property
    def failed_phase(self) -> str | None:
        """Name of the phase that failed last, where none succeeded after it."""
        return self.phases[-1].name if self.phases and self.phases[-1].failed else None

    @property
    def connected(self) -> bool:
        """Whether a connection was opened for this attempt."""
        return self.seconds(CONNECT) is not None

    def _end(self, name: str, *, failed: bool) -> None:
        last = next(phase for phase in reversed(self.phases) if phase.name == name)
        last.end_ns, last.failed = self.now_ns(), failed
