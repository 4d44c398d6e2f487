"""The simulated day's incidents: when, with which service, and how each disturbs the model."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sample_data import fleet
from sample_data.fleet import Lengths, Node, Service

BASE_ERROR_RATIO = 0.003
"""Share of requests that fail on an ordinary day."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A labelled change of the model between `start` and `start + span`.

    rate_factor multiplies arrivals; prompt and output replace the lengths; pcie_load adds to the node's PCIe load;
    error_ratio is the share of requests refused with `error_code`.
    """

    id: str
    kind: str
    service: Service
    start: datetime
    span: timedelta
    driver: str | None
    text: str
    rate_factor: float = 1.0
    prompt: Lengths | None = None
    output: Lengths | None = None
    pcie_load: float = 0.0
    error_ratio: float = 0.0
    error_code: str = ""

    @property
    def end(self) -> datetime:
        """When the cause ends."""
        return self.start + self.span

    @property
    def bounds_s(self) -> tuple[float, float]:
        """Start and end in seconds after the start of the simulated window."""
        start = (self.start - fleet.WINDOW.start).total_seconds()
        return start, start + self.span.total_seconds()


def _at(hour: int, minute: int) -> datetime:
    return fleet.END.replace(hour=hour, minute=minute)


DISTURBANCES = (
    Disturbance(
        id="sim-1",
        kind="burst",
        service=fleet.CHAT_API,
        start=_at(11, 10),
        span=timedelta(minutes=15),
        driver="requests_waiting",
        text="chat-api: arrivals rose to 3.5 times the usual; all batch slots were taken and requests queued",
        rate_factor=3.5,
    ),
    Disturbance(
        id="sim-2",
        kind="kv_exhaustion",
        service=fleet.CODE_ASSIST,
        start=_at(12, 30),
        span=timedelta(minutes=25),
        driver="kv_cache_usage_ratio",
        text="code-assist: whole files as prompts filled the KV cache; requests waited for blocks, some were preempted",
        prompt=Lengths(5600, 0.25, 2500, 14_000),
        output=Lengths(660, 0.35, 80, 1600),
    ),
    Disturbance(
        id="sim-3",
        kind="pcie_contention",
        service=fleet.RAG_SEARCH,
        start=_at(13, 40),
        span=timedelta(minutes=25),
        driver="gpu_pcie_bytes_per_second",
        text="rag-search: a backup job on gpu-node-2 filled its PCIe links; prefill waited for documents and KV blocks",
        pcie_load=0.6,
    ),
    Disturbance(
        id="sim-4",
        kind="error_storm",
        service=fleet.RAG_SEARCH,
        start=_at(15, 0),
        span=timedelta(minutes=20),
        driver=None,
        text="rag-search: gcp europe-west4 refused four in ten requests with 429; latency of the others did not change",
        error_ratio=0.4,
        error_code="HTTP_429",
    ),
)


def of_service(service: Service) -> tuple[Disturbance, ...]:
    """Disturbances of one service."""
    return tuple(d for d in DISTURBANCES if d.service is service)


def of_node(node: Node) -> tuple[Disturbance, ...]:
    """Disturbances of a node's PCIe links."""
    return tuple(d for d in DISTURBANCES if d.service.node is node and d.pcie_load)
