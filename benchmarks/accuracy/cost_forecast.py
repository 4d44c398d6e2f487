"""Forecasts of cost to the month's end where the truth is known: error and coverage beside naive and known methods.

Usage: python benchmarks/accuracy/cost_forecast.py [--runs 200] [--real FOLDER]

FOLDER holds recorded demand: Microsoft's cloud monitoring dataset and NAB's taxi passengers. Each day of a series from
the 28th on (every fifth) forecasts the ten days after it.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analytics.cost.levels import newest
from analytics.cost.projection import fit, paths

Array = NDArray[np.float64]
PEER_RUNS = 20
"""Series that the slow methods (a second each) are run on."""
WEEK = np.array([1.1, 1.15, 1.15, 1.1, 1.0, 0.75, 0.75])


def autoregressive(rng: np.random.Generator, n: int, rho: float, sd: float) -> Array:
    """Noise that follows itself."""
    made = rng.normal(0, sd, n)
    for t in range(1, n):
        made[t] = rho * made[t - 1] + np.sqrt(1 - rho**2) * made[t]
    return made


def weekly(rng: np.random.Generator, n: int, sd: float = 0.05, rho: float = 0.5) -> Array:
    """About 100 a day, less at weekends."""
    return 100 * WEEK[np.arange(n) % 7] * np.exp(autoregressive(rng, n, rho, sd))


def hourly(rng: np.random.Generator, n: int) -> Array:
    """Sum hours with a daily pattern and noise of 5 % that follows itself (0.7)."""
    hours = np.arange(24 * n)
    pattern = (1 + 0.5 * np.sin(2 * np.pi * (hours % 24) / 24)) * np.repeat(WEEK[np.arange(n) % 7], 24)
    return (100 / 24 * pattern * np.exp(autoregressive(rng, 24 * n, 0.7, 0.05))).reshape(n, 24).sum(axis=1)


def sparse(rng: np.random.Generator, n: int) -> Array:
    """Jobs on two days of five."""
    return np.where(rng.uniform(size=n) < 0.4, 100 * rng.lognormal(0, 0.5, n), 0.0)


Make = Callable[[np.random.Generator, int], Array]
SERIES: dict[str, Make] = {
    "hours, 5 % noise": hourly,
    "days, 5 % noise": weekly,
    "days, 25 % noise": lambda rng, n: weekly(rng, n, 0.25, 0.3),
    "level wanders 2 % a day": lambda rng, n: weekly(rng, n) * np.exp(np.cumsum(rng.normal(0, 0.02, n))),
    "grows 5 % a week": lambda rng, n: weekly(rng, n) * np.exp(0.007 * np.arange(n)),
    "a day in 33 costs thrice": lambda rng, n: weekly(rng, n) * (1 + 2 * (rng.uniform(size=n) < 0.03)),
    "jobs on 2 days of 5": sparse,
}


@dataclass
class Score:
    """Errors of each method, and how often limits held."""

    errors: dict[str, list[float]] = field(default_factory=dict)
    held: dict[str, list[bool]] = field(default_factory=dict)
    widths: list[float] = field(default_factory=list)

    def missed(self, method: str, forecast: float, truth: float) -> None:
        """Add an absolute error, as a share of the truth."""
        self.errors.setdefault(method, []).append(abs(forecast - truth) / truth)

    def limits(self, method: str, drawn: Array, truth: float) -> None:
        """Add whether 80 and 95 % limits hold the truth."""
        for share in (80, 95):
            low, high = np.quantile(drawn, [0.5 - share / 200, 0.5 + share / 200])
            self.held.setdefault(f"{method}{share}", []).append(bool(low <= truth <= high))

    def cells(self, methods: tuple[str, ...], held: tuple[str, ...]) -> list[str]:
        """Means as percentages."""
        made = [f"{100 * np.mean(self.errors[m]):.1f}" if m in self.errors else "-" for m in methods]
        return made + [f"{100 * np.mean(self.held[h]):.0f}" if h in self.held else "-" for h in held]


def peers(score: Score, known: Array, ahead: int, truth: float, seed: int) -> None:
    """Theta (M4's second, Assimakopoulos & Nikolopoulos 2000) and ETS(A,N,A), both of statsmodels."""
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel
    from statsmodels.tsa.forecasting.theta import ThetaModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = "multiplicative" if known.min() > 0 else "additive"
        theta = ThetaModel(known, period=7, deseasonalize=True, use_test=False, method=method).fit(disp=False)
        score.missed("theta", float(theta.forecast(ahead).sum()), truth)
        ets = ETSModel(known, error="add", trend=None, seasonal="add", seasonal_periods=7).fit(disp=False)
        score.missed("ets", float(ets.forecast(ahead).sum()), truth)
        drawn = ets.simulate(ahead, anchor="end", repetitions=200, rng=np.random.default_rng(seed))
        score.limits("ets", np.asarray(drawn).reshape(ahead, -1).sum(axis=0), truth)


def run(make: Make, days: int, ahead: int, runs: int, *, changed: int = 0, told: bool = False) -> Score:
    """Forecast `runs` series of `days` known days, `ahead` days on; the level rose 40 % `changed` days ago."""
    score = Score()
    for seed in range(runs):
        values = make(np.random.default_rng(seed), days + ahead)
        values[days - changed if changed else values.size :] *= 1.4
        restart = days - changed if told else newest(values[:days])
        judge(score, values, days, ahead, restart, seed, with_peers=ahead == 20 and seed < PEER_RUNS)
    return score


def judge(score: Score, values: Array, days: int, ahead: int, restart: int, seed: int, *, with_peers: bool) -> None:
    """Forecast the `ahead` days after the first `days`."""
    known, truth = values[:days], float(values[days : days + ahead].sum())
    if truth <= 0:
        return
    fitted = fit(known, np.arange(days) % 7, restart)
    drawn = paths(fitted, [(days + i) % 7 for i in range(ahead)], 1.0, seed).sum(axis=1)
    score.missed("ours", float(np.median(drawn)), truth)
    score.limits("ours", drawn, truth)
    score.widths.append(float(np.quantile(drawn, 0.975) - np.quantile(drawn, 0.025)) / truth)
    of_month = min(days, max(30 - ahead, 1))
    score.missed("elapsed", float(known[-of_month:].mean()) * ahead, truth)
    score.missed("week", float(sum(known[-7:][i % 7] for i in range(ahead))), truth)
    if with_peers and days >= 14 and known.any():
        peers(score, known, ahead, truth, seed)


REAL = {
    "crashes, 7 series (Microsoft)": "cloud_monitoring_dataset/application-crash-rate-2__*.csv",
    "purchases, 4 series (Microsoft)": "cloud_monitoring_dataset/consumer-purchase-rate__*.csv",
    "taxi passengers, 7 months (NAB)": "nab/series.parquet",
}


def daily(path: Path) -> Array:
    """Sum a recorded series by day; the first and the last, which may be cut, are left out."""
    import polars as pl

    if path.suffix == ".parquet":
        frame = pl.read_parquet(path).filter(pl.col("series").str.contains("nyc_taxi")).drop("series")
    else:
        frame = pl.read_csv(path, infer_schema=False)
    time, value = frame.columns[:2]
    day = pl.col(time).str.slice(0, 10)
    sums = frame.select(day.alias("day"), pl.col(value).cast(pl.Float64)).group_by("day").agg(pl.col(value).sum())
    return sums.sort("day")[value].to_numpy()[1:-1]


def recorded(paths_of: list[Path]) -> Score:
    """Forecast ten days from every fifth day of recorded series."""
    score = Score()
    for path in paths_of:
        values = daily(path)
        for i, days in enumerate(range(28, values.size - 10, 5)):
            start = max(0, days - 84)
            known = values[start : days + 10]
            size = days - start
            judge(score, known, size, 10, newest(known[:size]), i, with_peers=i < PEER_RUNS)
    return score


METHODS = ("ours", "elapsed", "week", "theta", "ets")
HELD = ("ours80", "ours95", "ets80", "ets95")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--real", type=Path)
    given = parser.parse_args()
    runs = given.runs
    print(
        "| series | days known | ahead | infractl | spent/elapsed | last week again | Theta | ETS | held 80 % | ",
        end="",
    )
    print("held 95 % | width | ETS held 80 % | ETS held 95 % |")
    print("|" + "---|" * 13)
    for name, make in SERIES.items():
        for days, ahead in ((10, 20), (21, 20), (56, 10), (56, 20)):
            line(name, days, ahead, run(make, days, ahead, runs))
    for changed in (2, 5, 10):
        for told in (True, False):
            name = f"+40 % {changed} days ago, {'told' if told else 'not told'}"
            line(name, 56, 20, run(weekly, 56, 20, runs, changed=changed, told=told))
    for name, pattern in REAL.items() if given.real else ():
        line(name, 28, 10, recorded(sorted(given.real.glob(pattern))))


def line(name: str, days: int, ahead: int, score: Score) -> None:
    """Print a row."""
    cells = score.cells(METHODS, HELD)
    cells.insert(len(METHODS) + 2, f"{100 * np.mean(score.widths):.0f}")
    print(f"| {name} | {days} | {ahead} | " + " | ".join(cells) + " |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
