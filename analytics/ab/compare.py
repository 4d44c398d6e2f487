"""Two arms compared: quantiles by Harrell-Davis and blocks of time, shares by Newcombe, the tail sequentially."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.ab import LEAST_TAIL, AbParams
from analytics.ab.arms import Arm
from analytics.stats import harrell_davis, sequential
from analytics.stats.block_bootstrap import block_counts, interval
from analytics.stats.proportion import newcombe, wilson
from analytics.stats.smoothed import Array

TAUS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
BEYOND = 20
"""Requests beyond a quantile, in each arm, below which its difference is not given."""
LEAST_QUANTILE = 100
CALIBRATION = 2_000
"""First requests of the baseline: they set the threshold of the sequential test and are not counted by it."""
MOST_LOOKS = 200
ALPHA = 0.05
_POWER = 1.959964 + 0.841621


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of both arms with its resamples."""

    tau: float
    a: float
    b: float
    boot_a: Array
    boot_b: Array
    blocks: int

    @property
    def estimate(self) -> float:
        """Variant minus baseline."""
        return self.b - self.a

    def limits(self) -> tuple[float, float]:
        """95 % limits of the difference."""
        return _limits(self.estimate, self.boot_b - self.boot_a, self.blocks)

    def error(self) -> float:
        """Return the standard error of the difference."""
        return float(np.nanstd(self.boot_b - self.boot_a))

    def p(self) -> float:
        """Two-sided p-value: Student's t of the difference over its resampled error."""
        from scipy.special import stdtr

        error = self.error() * np.sqrt(self.blocks / max(self.blocks - 1, 1))
        if error == 0:
            return 1.0 if self.estimate == 0 else 0.0
        return float(2 * stdtr(max(self.blocks - 1, 1), -abs(self.estimate) / error))


def _limits(estimate: float, boot: Array, blocks: int) -> tuple[float, float]:
    low, high = interval(np.array([estimate]), boot[np.isfinite(boot)][:, None], float(max(blocks, 2)))
    return float(low[0]), float(high[0])


class Comparison:
    """Baseline and variant with everything drawn once, so that all numbers rest on the same resamples."""

    def __init__(self, a: Arm, b: Arm, params: AbParams) -> None:
        self.a, self.b, self.params = a, b, params
        self.threshold = params.limit_s or (harrell_davis.quantile(a.values, 0.98) if a.values.size else 0.0)
        used, cells = np.unique(np.concatenate([a.cell, b.cell]), return_inverse=True)
        self._cell_a, self._cell_b = cells[: a.values.size], cells[a.values.size :]
        in_a = np.isin(np.arange(used.size), self._cell_a)
        in_b = np.isin(np.arange(used.size), self._cell_b)
        self._counts = self._draw(in_a, in_b)
        self._seen: dict[float, Quantile | None] = {}

    def _draw(self, in_a: NDArray[np.bool_], in_b: NDArray[np.bool_]) -> Array:
        """How often each block is drawn. Arms that hardly share blocks (before and after) are drawn each by itself."""
        n, seed = self.params.resamples, self.params.seed
        if float((in_a & in_b).mean()) > 0.5:
            return block_counts(in_a.size, 1, n, seed)
        counts = np.zeros((n, in_a.size))
        for offset, own in enumerate((in_a, in_b & ~in_a)):
            if own.any():
                counts[:, np.flatnonzero(own)] = block_counts(int(own.sum()), 1, n, seed + offset)
        return counts

    def quantile(self, tau: float) -> Quantile | None:
        """Return a quantile of both arms; None where fewer than 20 requests lie beyond it in either."""
        if tau not in self._seen:
            smallest = min(self.a.values.size, self.b.values.size)
            enough = smallest * min(1 - tau, tau) >= BEYOND - 1e-9
            self._seen[tau] = self._quantile(tau) if enough else None
        return self._seen[tau]

    def _quantile(self, tau: float) -> Quantile:
        boots = []
        for arm, cell in ((self.a, self._cell_a), (self.b, self._cell_b)):
            middle = harrell_davis.quantile(arm.values, tau)
            effect = arm.design_effect(arm.values > middle)
            boots.append((middle, harrell_davis.resampled(arm.values, cell, self._counts, tau, effect)))
        (a, boot_a), (b, boot_b) = boots
        return Quantile(tau, a, b, boot_a, boot_b, min(self.a.blocks, self.b.blocks))

    def share(self, hits_a: float, n_a: float, hits_b: float, n_b: float, effect: float) -> dict[str, Any]:
        """Difference of two shares with Newcombe's limits; both sizes are divided by the design effect."""
        from scipy.special import ndtr

        sizes = (n_a / effect, n_b / effect)
        low, high = newcombe(hits_a / effect, sizes[0], hits_b / effect, sizes[1])
        a, b = hits_a / n_a, hits_b / n_b
        pooled = (hits_a + hits_b) / (n_a + n_b)
        error = float(np.sqrt(pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1])))
        p = float(2 * ndtr(-abs(b - a) / error)) if error else 1.0
        return {
            "estimate": b - a, "ci_low": float(low), "ci_high": float(high), "p": p, "_error": error, "_base": a,
            "relative": (b - a) / a if a else None, "detectable": _POWER * error / a if a and error else None,
        }  # fmt: skip


def variant_row(arm: Arm, of: Comparison) -> dict[str, Any]:
    """Row of frame `variants`."""
    baseline = arm is of.a
    hit = arm.values <= of.threshold
    effect = arm.over_all(hit, failed=False)
    low, high = wilson(hit.sum() / effect, arm.total / effect) if arm.total else (None, None)
    row: dict[str, Any] = {"variant": arm.name, "n": arm.values.size, "failed": arm.failed, "blocks": arm.blocks}
    row |= {"design_effect": effect, "sla": hit.sum() / arm.total if arm.total else None, "sla_low": low}
    row |= {"sla_high": high}
    for tau, name in ((0.5, "p50_s"), (0.9, "p90_s"), (0.99, "p99_s")):
        row[name] = harrell_davis.quantile(arm.values, tau) if arm.values.size >= LEAST_QUANTILE else None
    found = of.quantile(0.99)
    if found is not None:
        boot = found.boot_a if baseline else found.boot_b
        row["p99_low"], row["p99_high"] = _limits(found.a if baseline else found.b, boot, arm.blocks)
    return row


def quantile_rows(of: Comparison) -> list[dict[str, Any]]:
    """Rows of frame `quantiles`: the quantile treatment effect as a curve."""
    rows = []
    for tau in TAUS:
        found = of.quantile(tau)
        if found is not None:
            low, high = found.limits()
            rows.append({
                "variant": of.b.name, "tau": tau, "baseline_s": found.a, "variant_s": found.b,
                "difference_s": found.estimate, "ci_low": low, "ci_high": high,
            })  # fmt: skip
    return rows


def difference_rows(of: Comparison) -> list[dict[str, Any]]:
    """Rows of frame `difference` without verdicts and adjusted p-values: quantiles, SLA, errors."""
    rows = []
    smallest = min(of.a.values.size, of.b.values.size)
    for tau, name in ((0.5, "p50_s"), (0.9, "p90_s"), (0.99, "p99_s")):
        found = of.quantile(tau) if tau < 0.99 or smallest >= LEAST_TAIL else None
        row: dict[str, Any] = {"variant": of.b.name, "metric": name}
        if found is not None:
            low, high = found.limits()
            row |= {"estimate": found.estimate, "ci_low": low, "ci_high": high, "p": found.p(), "_base": found.a}
            if found.a > 0:
                row |= {"relative": found.estimate / found.a, "detectable": _POWER * found.error() / found.a}
        rows.append(row)
    if of.a.total and of.b.total:
        within = [arm.values <= of.threshold for arm in (of.a, of.b)]
        none = [np.zeros(arm.values.size, dtype=bool) for arm in (of.a, of.b)]
        effect = max(arm.over_all(hit, failed=False) for arm, hit in zip((of.a, of.b), within, strict=True))
        storms = max(arm.over_all(miss, failed=True) for arm, miss in zip((of.a, of.b), none, strict=True))
        hits = [float(hit.sum()) for hit in within]
        shares = {
            "sla": (hits[0], of.a.total, hits[1], of.b.total, effect),
            "error_ratio": (of.a.failed, of.a.total, of.b.failed, of.b.total, storms),
        }
        rows += [{"variant": of.b.name, "metric": m} | of.share(*numbers) for m, numbers in shares.items()]
    return rows


@dataclass(frozen=True, slots=True)
class Live:
    """The sequential test at its looks: times, counts, shares, always-valid p-values; `stop` is the deciding one."""

    threshold: float
    at_us: NDArray[np.int64]
    n_a: Array
    n_b: Array
    rate_a: Array
    rate_b: Array
    p: Array
    stop: int | None


def live(of: Comparison) -> Live | None:
    """Test how often the arms exceed the P99 of the baseline's first 2,000 requests, which are not counted.

    The threshold is set once, before the first look: one that is estimated again at each look follows the data that it
    judges. None where the baseline has no 2,000 requests beyond those, or the variant fewer than 100.
    """
    a, b = of.a, of.b
    if a.values.size < CALIBRATION + LEAST_QUANTILE or b.values.size < LEAST_QUANTILE:
        return None
    threshold = harrell_davis.quantile(a.values[:CALIBRATION], 0.99)
    over_a, over_b = a.values[CALIBRATION:] > threshold, b.values > threshold
    looks = _looks(a.at_us[CALIBRATION:], b.at_us)
    n_a, hits_a = _upto(a.at_us[CALIBRATION:], over_a, looks)
    n_b, hits_b = _upto(b.at_us, over_b, looks)
    effect = max(a.design_effect(a.values > threshold), b.design_effect(over_b))
    p = sequential.always_valid_p(sequential.log_ratio(hits_a, n_a, hits_b, n_b, effect))
    decided = np.flatnonzero(p <= ALPHA)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Live(
            threshold, looks, n_a, n_b, hits_a / n_a, hits_b / n_b, p, int(decided[0]) if decided.size else None
        )


def _looks(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return times of at most 200 looks, evenly among the requests of both arms."""
    merged = np.sort(np.concatenate([a, b]))
    at = np.linspace(0, merged.size - 1, min(MOST_LOOKS, merged.size)).astype(np.intp)
    return merged[at]


def _upto(at: NDArray[np.int64], hit: NDArray[np.bool_], looks: NDArray[np.int64]) -> tuple[Array, Array]:
    n = np.searchsorted(at, looks, side="right")
    return n.astype(np.float64), np.concatenate([[0.0], np.cumsum(hit)])[n]
