"""What the exporters of the simulated fleet show: vLLM and DCGM series, by name and label as on the wire."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sample_data import fleet
from sample_data.engine import Engine
from sample_data.fleet import Node, Service
from sample_data.pcie import STEP_S, PcieLoad
from sample_data.workload import Floats

_MIB_PER_GPU = 81_559  # H100 80 GB as dcgm-exporter reports it
_RESERVED_MIB = 560
_WEIGHTS_AND_CACHE_MIB = 73_400  # the engine takes its share at the start and keeps it
_IDLE_W, _BUSY_W = 118.0, 540.0
_COOLANT_C, _C_PER_W = 29.0, 0.062
_THERMAL_S = 120.0  # the die follows its power within minutes
_TX_TO_RX = 0.4  # serving reads more from the host than it writes; the load is that of reading


@dataclass(frozen=True, slots=True)
class Series:
    """One exposed series: where it is scraped, what it is called, its values at the scrape times."""

    job: str
    instance: str
    name: str
    kind: str
    labels: Mapping[str, str]
    values: Floats = field(repr=False)


def scrape_times() -> Floats:
    """Seconds after the window's start at which every target is scraped."""
    return np.arange(fleet.SCRAPE_S, fleet.WINDOW.span.total_seconds() + 0.5, fleet.SCRAPE_S)


def of_engine(engine: Engine) -> list[Series]:
    """Return the gauges and counters of one engine as they stood at the scrape times."""
    service = engine.service
    at = np.searchsorted([s.at_s for s in engine.states], scrape_times(), side="right") - 1
    chosen = [engine.states[i] if i >= 0 else None for i in at.tolist()]
    labels = {"model_name": service.model, "engine": "0", "service": service.name}
    return [
        Series(
            job="vllm",
            instance=f"{service.name}.internal:8000",
            name=name,
            kind=kind,
            labels={**labels, **extra},
            values=np.array([float(getattr(state, source)) if state else 0.0 for state in chosen]),
        )
        for source, (name, kind, extra) in _VLLM.items()
    ]


def of_node(node: Node, engines: list[Engine], link: PcieLoad, rng: np.random.Generator) -> list[Series]:
    """DCGM series of a node's GPUs, each with the service that runs on it."""
    return [s for e in engines for gpu in e.service.gpus for s in _of_gpu(node, gpu, e, link, rng)]


_VLLM: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "running": ("vllm:num_requests_running", "gauge", {}),
    "waiting": ("vllm:num_requests_waiting", "gauge", {}),
    "kv_ratio": ("vllm:kv_cache_usage_perc", "gauge", {}),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "counter", {}),
    "prefix_hits": ("vllm:prefix_cache_hits_total", "counter", {}),
    "prompt_tokens": ("vllm:prompt_tokens_total", "counter", {}),
    "generation_tokens": ("vllm:generation_tokens_total", "counter", {}),
    "preemptions": ("vllm:num_preemptions_total", "counter", {}),
    "successes": ("vllm:request_success_total", "counter", {"finished_reason": "stop"}),
}
"""Field of the engine's state -> name, type and further labels of the series that shows it."""


def _of_gpu(node: Node, gpu: int, engine: Engine, link: PcieLoad, rng: np.random.Generator) -> list[Series]:
    n = scrape_times().size
    busy = np.clip(_activity(engine) + rng.normal(0.0, 0.01, n), 0.0, 1.0)
    power = np.round(_IDLE_W + _BUSY_W * busy + rng.normal(0.0, 2.0, n), 3)
    load = link.ratio[((scrape_times() - STEP_S) / STEP_S).astype(int)] * np.round(rng.normal(1.0, 0.02, n), 6)
    through = np.clip(load, 0.0, 1.0) * fleet.PCIE_BYTES_PER_SECOND
    used = float(_WEIGHTS_AND_CACHE_MIB + 16 * gpu)
    values = {
        "DCGM_FI_DEV_GPU_UTIL": np.rint(busy * 100),
        "DCGM_FI_DEV_FB_USED": np.full(n, used),
        "DCGM_FI_DEV_FB_FREE": np.full(n, _MIB_PER_GPU - _RESERVED_MIB - used),
        "DCGM_FI_DEV_FB_RESERVED": np.full(n, float(_RESERVED_MIB)),
        "DCGM_FI_DEV_POWER_USAGE": power,
        "DCGM_FI_DEV_GPU_TEMP": np.rint(_temperature(power)),
        "DCGM_FI_PROF_PCIE_TX_BYTES": np.rint(through * _TX_TO_RX / 1e5) * 1e5,
        "DCGM_FI_PROF_PCIE_RX_BYTES": np.rint(through / 1e5) * 1e5,
        "DCGM_FI_DEV_XID_ERRORS": np.zeros(n),
    }
    labels = _gpu_labels(node, gpu, engine.service)
    return [Series("dcgm", f"{node.name}:9400", name, "gauge", labels, v) for name, v in values.items()]


def _gpu_labels(node: Node, gpu: int, service: Service) -> dict[str, str]:
    number = fleet.NODES.index(node) * 4 + gpu
    return {
        "gpu": str(gpu),
        "UUID": f"GPU-{number:08x}-0000-4000-8000-{number:012x}",
        "pci_bus_id": f"00000000:{0x1B + 0x22 * gpu:02X}:00.0",
        "device": f"nvidia{gpu}",
        "modelName": "NVIDIA H100 80GB HBM3",
        "hostname": node.name,
        "service": service.name,
    }


def _activity(engine: Engine) -> Floats:
    """Mean since the last scrape of the share of time in which kernels run: more in larger batches."""
    at = np.array([0.0, *(s.at_s for s in engine.states)])
    running = np.array([0.0, *(float(s.running) for s in engine.states)])
    level = np.where(running > 0, 0.45 + 0.5 * np.sqrt(running / engine.service.slots), 0.0)
    total = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(at))])
    edges = np.concatenate([[0.0], scrape_times()])
    mean: Floats = np.diff(np.interp(edges, at, total)) / fleet.SCRAPE_S
    return np.round(mean, 6)


def _temperature(power: Floats) -> Floats:
    """First-order lag behind the steady-state temperature of each power."""
    weight = fleet.SCRAPE_S / (_THERMAL_S + fleet.SCRAPE_S)
    now, out = _COOLANT_C + _C_PER_W * float(power[0]), np.empty_like(power)
    for i, watts in enumerate(power.tolist()):
        now += weight * (_COOLANT_C + _C_PER_W * watts - now)
        out[i] = now
    return out
