"""The simulated fleet: three services over two clouds, eight GPUs on two nodes, declared as values.

Lengths and rates are typical of 8 to 70 B models on H100-class cards; they are shapes, not measurements.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from store.window import Window

END = datetime(2026, 11, 30, 16, tzinfo=UTC)
"""Eighteen minutes before the recording starts, so that both parts lie in one day and never overlap."""
WINDOW = Window(END - timedelta(hours=6), END)
SCRAPE_S = 15.0
PCIE_BYTES_PER_SECOND = 63.0e9
"""PCIe 5.0 x16, one way, before packet overhead: 32 GT/s x 16 lanes x 128/130 / 8."""


@dataclass(frozen=True, slots=True)
class Node:
    """A GPU host; `pcie_load` is the usual share of its PCIe links in use."""

    name: str
    cloud_provider: str
    cloud_region: str
    cloud_zone: str
    pcie_load: float


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lognormal length in tokens: median, log standard deviation, limits."""

    median: float
    sigma: float
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Service:
    """One vLLM engine that serves one model on a tensor-parallel group of GPUs of one node.

    rate_rps: mean arrivals per second over the day. slots: sequences that may run at once. kv_tokens: room of the KV
    cache. prefill_tokens_per_second, itl_s: speed of an otherwise idle engine; itl_slope: how much each further running
    sequence adds to the time between tokens, as a share. shared_ratio: share of a prompt that an earlier prompt began
    with. pcie_share: how far prefill waits for the PCIe link (KV blocks and documents fetched from host memory).
    """

    name: str
    model: str
    node: Node
    gpus: tuple[int, ...]
    rate_rps: float
    prompt: Lengths
    output: Lengths
    slots: int
    kv_tokens: int
    prefill_tokens_per_second: float
    itl_s: float
    itl_slope: float
    shared_ratio: float
    pcie_share: float


NODE_1 = Node("gpu-node-1", "aws", "us-east-1", "us-east-1a", pcie_load=0.16)
NODE_2 = Node("gpu-node-2", "gcp", "europe-west4", "europe-west4-a", pcie_load=0.22)
NODES = (NODE_1, NODE_2)

CHAT_API = Service(
    name="chat-api",
    model="meta-llama/Llama-3.1-70B-Instruct",
    node=NODE_1,
    gpus=(0, 1),
    rate_rps=0.64,
    prompt=Lengths(420, 0.45, 40, 4000),
    output=Lengths(190, 0.40, 16, 700),
    slots=16,
    kv_tokens=64_000,
    prefill_tokens_per_second=9_000,
    itl_s=0.022,
    itl_slope=0.03,
    shared_ratio=0.5,
    pcie_share=0.1,
)
RAG_SEARCH = Service(
    name="rag-search",
    model="Qwen/Qwen2.5-72B-Instruct",
    node=NODE_2,
    gpus=(0, 1, 2, 3),
    rate_rps=0.48,
    prompt=Lengths(2600, 0.25, 600, 9000),
    output=Lengths(110, 0.35, 16, 400),
    slots=24,
    kv_tokens=160_000,
    prefill_tokens_per_second=14_000,
    itl_s=0.018,
    itl_slope=0.025,
    shared_ratio=0.3,
    pcie_share=1.0,
)
CODE_ASSIST = Service(
    name="code-assist",
    model="Qwen/Qwen2.5-Coder-32B-Instruct",
    node=NODE_1,
    gpus=(2, 3),
    rate_rps=0.43,
    prompt=Lengths(1400, 0.35, 200, 8000),
    output=Lengths(120, 0.45, 8, 600),
    slots=32,
    kv_tokens=56_000,
    prefill_tokens_per_second=16_000,
    itl_s=0.015,
    itl_slope=0.025,
    shared_ratio=0.6,
    pcie_share=0.1,
)
SERVICES = (CHAT_API, RAG_SEARCH, CODE_ASSIST)
