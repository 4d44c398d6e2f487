"""Numbers as a person reads them: three digits and a unit."""

from collections.abc import Sequence

from analytics.p99.model import Share
from store.columns import Column
from store.tables import SPANS

NAMES = {"ttft_s": "TTFT", "e2e_s": "end-to-end latency", "tpot_s": "time per output token", "queue_s": "queue time"}
"""What people call the usual targets; another one goes by its own name."""


def name_of_target(target: str) -> str:
    """Return what people call a target."""
    return NAMES.get(target, target)


def unit_of_target(target: str) -> str:
    """Return the unit of a target: that of its column, else what its name ends in; empty where unknown."""
    column: Column | None = SPANS.column(target)
    if column is not None:
        return column.unit
    suffixes = (("_ms", "ms"), ("_us", "us"), ("_seconds", "s"), ("_s", "s"))
    return next((unit for suffix, unit in suffixes if target.endswith(suffix)), "")


def quantity(value: float, unit: str) -> str:
    """Write 0.2049 s as '205 ms', 20.34 s as '20.3 s', 2.5e11 bytes/s as '250 GB/s'."""
    if unit == "s" and 0 < abs(value) < 1:
        return f"{value * 1000:.3g} ms"
    short = unit.replace("bytes", "B")
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size and unit != "s":
            scale = 1e3 if prefix == "k" else size
            return f"{value / scale:.3g} {prefix}{short}".strip()
    return f"{value:.4g} {short}".strip() if abs(value) >= 1000 else f"{value:.3g} {short}".strip()


def share(found: Share) -> str:
    """Write a share with its limits: 'requests_waiting, share 0.78 [0.70, 0.85]'."""
    return f"{found.driver}, share {found.share:.2f} [{found.low:.2f}, {found.high:.2f}]"


def quantile(tau: float) -> str:
    """Write a quantile as P99, P99.9."""
    return f"P{100 * tau:g}"


def labels(values: Sequence[str]) -> str:
    """Write the labels of a group; 'all requests' where there are none."""
    return ", ".join(value or "(none)" for value in values) or "all requests"
