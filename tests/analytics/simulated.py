"""Requests whose tail is known to come from one driver: queue, KV misses or PCIe contention, in persistent windows."""

import numpy as np
import polars as pl

from analytics.stats.smoothed import Array
from tests.analytics.frames_of import metric, requests, times

WINDOWS, PER_WINDOW, SECONDS = 240, 60, 60
DRIVERS = {"queue": "requests_waiting", "kv": "kv_cache_usage_ratio", "pcie": "gpu_pcie_bytes_per_second"}


def _persistent(rng: np.random.Generator, phi: float = 0.6) -> Array:
    series = np.zeros(WINDOWS + 50)
    for i in range(1, series.size):
        series[i] = phi * series[i - 1] + np.sqrt(1 - phi**2) * rng.standard_normal()
    return series[50:]


def scenario(cause: str | None, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Requests and metrics; the tail comes from `cause`, the other drivers have no effect beyond prompt length."""
    rng = np.random.default_rng(seed)
    window = np.repeat(np.arange(WINDOWS), PER_WINDOW)
    n = window.size
    level = {
        "queue": np.maximum(np.round(4 * _persistent(rng)), 0),
        "kv": 1 / (1 + np.exp(-_persistent(rng))),
        "pcie": 2e10 * (1 + np.exp(0.5 * _persistent(rng))),
    }
    prompt = rng.gamma(2, 400, n)
    ttft = 0.03 + 0.0001 * prompt * rng.lognormal(0, 0.2, n)
    heavy = rng.pareto(3, n)
    effect = {
        "queue": 0.05 * level["queue"][window] * rng.exponential(1, n),
        "kv": 0.4 * level["kv"][window] * (rng.random(n) < 0.2) * (1 + heavy),
        "pcie": 0.1 * (level["pcie"][window] / 4e10) * heavy,
    }
    ttft += effect[cause] if cause else 0.05 * rng.exponential(1, n)
    at = times(window * SECONDS + rng.random(n) * SECONDS)
    spans = requests({"ts": at, "ttft_s": ttft, "input_tokens": prompt.astype(int)})
    scraped = times(np.arange(WINDOWS) * float(SECONDS))
    samples = [metric(DRIVERS[k], scraped, v, series_id=i) for i, (k, v) in enumerate(level.items())]
    cpu = 0.9 * level["queue"] + 0.1 * rng.standard_normal(WINDOWS)
    samples.append(metric("twin_of_waiting", scraped, cpu, series_id=9))
    return spans, pl.concat(samples).sort("ts")
