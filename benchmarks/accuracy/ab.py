"""Size and power of `analyze ab` on simulated latencies, and false alarms under peeking: prints a Markdown table.

Latencies are lognormal with 3 % from a Pareto(2.5) tail. Clustered: each minute has its own level of latency
(lognormal, sigma .3) and its own share of failures (2 % on average, beta, in most minutes none). Both arms share them
where they run at the same time; where one runs before the other nothing cancels.
Usage: python -m benchmarks.accuracy.ab [RUNS]
"""

import sys
from dataclasses import replace

import numpy as np

from analytics.ab import AbParams
from analytics.ab.arms import Arm
from analytics.ab.compare import ALPHA, Comparison, difference_rows, live
from analytics.ab.verdicts import adjust
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


def clustered(rng: np.random.Generator, n: int, level: Array, failing: Array, first: int) -> Arm:
    """One arm over an hour whose minutes have a level and a share of failures of their own."""
    at = np.sort(rng.integers(0, MINUTES * 60_000_000, n))
    minute = at // 60_000_000
    failed = rng.random(n) < failing[minute]
    values = latencies(rng, n, 1.0, 1.0) * level[minute]
    at, cell = at + first * 60_000_000, minute + first
    return Arm("x", values[~failed], at[~failed], cell[~failed], n, int(failed.sum()), cell[failed])


def minutes(rng: np.random.Generator) -> tuple[Array, Array]:
    """Level of latency and share of failures of each minute."""
    return np.exp(rng.normal(0.0, 0.3, MINUTES)), rng.beta(0.1, 4.9, MINUTES)


def false_alarms(runs: int, n: int, *, together: bool) -> dict[str, float]:
    """Share of runs without a difference in which the interval excludes zero, and in which any verdict is given."""
    found = dict.fromkeys(("p50_s", "p90_s", "p99_s", "sla", "error_ratio", "any"), 0)
    params = AbParams(resamples=200, min_effect=0.0)
    for seed in range(runs):
        rng = np.random.default_rng([seed, n, 2])
        shared = minutes(rng)
        a = clustered(rng, n, *shared, 0)
        b = clustered(rng, n, *(shared if together else minutes(rng)), 0 if together else MINUTES)
        rows = difference_rows(Comparison(a, b, replace(params, seed=seed)))
        for row in rows:
            found[row["metric"]] += bool(row.get("ci_low") is not None and (row["ci_low"] > 0 or row["ci_high"] < 0))
        adjust(rows, params)
        found["any"] += any(row.get("p_adj") is not None and row["p_adj"] <= ALPHA for row in rows)
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
    print("\n| clustered, no difference, 4,000 per arm | P50 | P90 | P99 | SLA | errors | any adjusted p |")
    print("|---|---|---|---|---|---|---|")
    for name, together in (("both at the same time", True), ("one after the other", False)):
        share = false_alarms(runs, 4_000, together=together)
        print(f"| {name} | {' | '.join(f'{value:.3f}' for value in share.values())} |", flush=True)
    print("\n| sequential, 200 looks up to 20,000 per arm | runs | decided | median stop per arm |\n|---|---|---|---|")
    for name, tail, many in (("none (false alarms)", 1.0, 5 * runs), ("tail x1.5", 1.5, runs)):
        share_decided, stop = decided(many, 20_000, tail)
        print(f"| {name} | {many} | {share_decided:.3f} | {stop:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
