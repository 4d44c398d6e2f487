"""`Attempt`: what one synthetic request measured."""

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from collector.probe.answer import Answer
from collector.probe.faults import Fault
from collector.probe.timeline import CONNECT, DNS, TLS, Timeline
from collector.probe.tokens import Counted, count_tokens


@dataclass(slots=True)
class Attempt:
    """One request and its answer. Times are seconds; None where that did not happen.

    `model` is the one asked for, `status` the HTTP status, `streamed` whether the answer came as a stream, `body_bytes`
    what came after the head, `resend_count` how often it was sent before because a kept connection had been closed
    meanwhile.
    """

    model: str | None = None
    timeline: Timeline = field(default_factory=Timeline)
    answer: Answer = field(default_factory=Answer)
    status: int | None = None
    fault: Fault | None = None
    streamed: bool | None = None
    end_ns: int = 0
    body_bytes: int = 0
    resend_count: int = 0
    trace_id: str = field(default_factory=lambda: secrets.token_hex(16))
    span_id: str = field(default_factory=lambda: secrets.token_hex(8))
    _counted: Counted | None = None

    @property
    def traceparent(self) -> str:
        """W3C trace context: the server's span becomes a child of this attempt's."""
        return f"00-{self.trace_id}-{self.span_id}-01"

    @property
    def at(self) -> datetime:
        """When it began, UTC."""
        return datetime.fromtimestamp(self.timeline.started_unix_ns / 1e9, UTC)

    @property
    def answered(self) -> bool:
        """Whether the other side answered at all, an error included."""
        return self.fault is None or self.status is not None

    @property
    def counted(self) -> Counted:
        """Events with their tokens; read it when the attempt has ended."""
        if self._counted is None:
            self._counted = count_tokens(self.answer)
        return self._counted

    @property
    def dns_s(self) -> float | None:
        """Name lookup; None for an address and for a kept connection."""
        return self.timeline.seconds(DNS)

    @property
    def tcp_s(self) -> float | None:
        """TCP connect; None for a kept connection."""
        return self.timeline.seconds(CONNECT)

    @property
    def tls_s(self) -> float | None:
        """TLS handshake; None without TLS and for a kept connection."""
        return self.timeline.seconds(TLS)

    @property
    def ttfb_s(self) -> float | None:
        """Start to the head of the answer."""
        return None if self.timeline.head_ns is None else self.timeline.head_ns / 1e9

    @property
    def ttft_s(self) -> float | None:
        """Start, connecting included, to the first event with a part of the answer; None where it came whole."""
        arrivals = self.answer.arrivals
        return arrivals[0].at_ns / 1e9 if self.streamed and arrivals else None

    @property
    def gaps_s(self) -> list[float]:
        """Times between events that carry tokens."""
        return [(later.at_ns - earlier.at_ns) / 1e9 for earlier, later in pairwise(self.counted.arrivals)]

    @property
    def tpot_s(self) -> float | None:
        """Time per token after the first event: (last event - first event) / (tokens - those of the first event)."""
        arrivals, tokens = self.counted.arrivals, self.counted.tokens
        after = (sum(tokens) if tokens else len(arrivals)) - self.counted.first
        return (arrivals[-1].at_ns - arrivals[0].at_ns) / 1e9 / after if len(arrivals) > 1 and after > 0 else None

    @property
    def e2e_s(self) -> float:
        """Start to the end of the answer, or to the failure."""
        return self.end_ns / 1e9
