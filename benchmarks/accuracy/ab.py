"""Size and power of `analyze ab` on simulated latencies, and false alarms under peeking: prints a Markdown table.

Latencies are lognormal with 3 % from a Pareto(2.5) tail. Usage: python -m benchmarks.accuracy.ab [RUNS]
"""

import sys

import numpy as np

from analytics.ab import AbParams
from analytics.ab.arms import Arm
from analytics.ab.compare import Comparison, difference_rows, live
from analytics.stats.smoothed import Array

MINUTES = 60
SCENARIOS = {"none (size)": (1.0, 1.0), "tail x1.5": (1.5, 1.0), "all x1.1": (1.0, 1.1)}


def latencies(rng: np.random.Generator, n: int, tail: float, body: float) -> Array:
    """Simulate seconds."""
    values = np.exp(rng.normal(-1.0, 0.4, n))
    slow = rng.random(n) < 0.03
    values[slow] = (1.0 + rng.pareto(2.5, int(slow.sum()))) * tail
    return values * body


def arm(rng: np.random.Generator, n: int, tail: float = 1.0, body: float = 1.0) -> Arm:
    """One arm over an hour."""
    at = np.sort(rng.integers(0, MINUTES * 60_000_000, n))
    return Arm("x", latencies(rng, n, tail, body), at, at // 60_000_000, n, 0)


def rejections(runs: int, n: int, tail: float, body: float) -> dict[str, float]:
    """Share of runs whose test says that the arms differ, at 5 %."""
    found = dict.fromkeys(("p50_s", "p99_s", "sla"), 0)
    for seed in range(runs):
        rng = np.random.default_rng([seed, n])
        of = Comparison(arm(rng, n), arm(rng, n, tail, body), AbParams(resamples=200, seed=seed))
        for row in difference_rows(of):
            if row["metric"] in found and row.get("ci_low") is not None:
                found[row["metric"]] += row["ci_low"] > 0 or row["ci_high"] < 0
    return {name: hits / runs for name, hits in found.items()}


def decided(runs: int, n: int, tail: float) -> tuple[float, float]:
    """Share of experiments of n per arm that the sequential test decides in 200 looks, and its median stop per arm."""
    stops = []
    for seed in range(runs):
        rng = np.random.default_rng([seed, n, 1])
        test = live(Comparison(arm(rng, n), arm(rng, n, tail), AbParams()))
        if test is not None and test.stop is not None:
            stops.append(test.n_b[test.stop])
    return len(stops) / runs, float(np.median(stops)) if stops else float("nan")


def main() -> None:
    """Print the tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("| difference | n per arm | P50 | P99 | SLA at the baseline's P98 |\n|---|---|---|---|---|")
    for name, (tail, body) in SCENARIOS.items():
        for n in (500, 2_000):
            share = rejections(runs, n, tail, body)
            p99 = f"{share['p99_s']:.3f}" if n >= 2_000 else "refused"
            print(f"| {name} | {n} | {share['p50_s']:.3f} | {p99} | {share['sla']:.3f} |", flush=True)
    print("\n| sequential, 200 looks up to 20,000 per arm | runs | decided | median stop per arm |\n|---|---|---|---|")
    for name, tail, many in (("none (false alarms)", 1.0, 5 * runs), ("tail x1.5", 1.5, runs)):
        share_decided, stop = decided(many, 20_000, tail)
        print(f"| {name} | {many} | {share_decided:.3f} | {stop:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
