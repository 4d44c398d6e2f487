"""Quantile regression against statsmodels in one run: `python benchmarks/quantile_regression.py [--million] [--ten]`.

Same data, same quantile; prints a table with times, their ratio and how far the coefficients are apart. statsmodels'
default tolerance (1e-6) and covariance are left as they are: that is what a person would call.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from analytics.stats.quantile_regression import QuantileFit, fit
from analytics.stats.smoothed import Array

TAU = 0.99
KINDS = ("continuous", "quantised", "heavy tail")


def data(n: int, kind: str) -> tuple[Array, Array]:
    """Make requests with four drivers and a latency whose Gumbel tail one driver widens."""
    rng = np.random.default_rng(0)
    drivers = (rng.gamma(2, 100, n), rng.poisson(0.5, n).astype(float), rng.random(n), rng.standard_normal(n))
    design = np.column_stack([np.ones(n), *drivers])
    y = 1 + 0.01 * design[:, 1] + 2 * design[:, 2] + rng.gumbel(0, 1, n) * (1 + design[:, 3])
    if kind == "quantised":
        y = np.round(y * 10) / 10
    if kind == "heavy tail":
        y = y + rng.pareto(1.5, n)
    return design, y


def timed(call: Callable[[], Any], times: int) -> tuple[float, Any]:
    """Median wall time of some calls, and the last answer."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        answer = call()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken)), answer


def row(n: int, kind: str, peer: bool) -> str:
    """One line of the table."""
    design, y = data(n, kind)
    ours_s, ours = timed(lambda: fit(design, y, TAU), 3)
    assert isinstance(ours, QuantileFit)
    line = f"| {n:,} | {kind} | {ours_s:.3f} | {'yes' if ours.exact else 'no'} | {ours.subgradient:.2f} |"
    if not peer:
        return f"{line} – | – | – | – |"
    from statsmodels.regression.quantile_regression import QuantReg

    peer_s, theirs = timed(lambda: QuantReg(y, design).fit(q=TAU, max_iter=5000), 1)
    residuals = y - design @ theirs.params
    loss = float(TAU * residuals.sum() - residuals[residuals < 0].sum())
    apart = float(np.max(np.abs(ours.coefficients - theirs.params) / np.maximum(np.abs(theirs.params), 1e-3)))
    return f"{line} {peer_s:.2f} | {peer_s / ours_s:.0f}x | {apart:.1e} | {loss / ours.loss - 1:+.1e} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true", help="compare at a million rows too (statsmodels: a minute)")
    parser.add_argument("--ten", action="store_true", help="time ten million rows (2 GB of memory), ours alone")
    given = parser.parse_args()
    print(
        "| rows x 4 drivers | latency | infractl s | exact | subgradient | statsmodels s | ratio | apart | their loss |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    sizes = [100_000, *([1_000_000] if given.million else [])]
    for n in sizes:
        for kind in KINDS:
            print(row(n, kind, peer=True), flush=True)
    if given.ten:
        for kind in KINDS:
            print(row(10_000_000, kind, peer=False), flush=True)


if __name__ == "__main__":
    main()
