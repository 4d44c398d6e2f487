"""How soon `analyze cost` finds a change, and how often it finds none that is there: prints Markdown tables.

Hourly cost with a daily and a weekly pattern and AR(0.7) noise over 56 days, a change on day 40 at a random hour, and
the plain rule (mean + 2.5 sd of 7 days) beside it; then other kinds of noise; then change points of daily cost.
Usage: python -m benchmarks.accuracy.cost [SERIES]
"""

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from analytics.cost.seasonal import Calendar, Flags, Walk
from analytics.cost.steps import changes
from analytics.stats.smoothed import Array

DAYS, EVENT = 56, 40
FLOOR = 0.01
HOURS = np.arange(DAYS * 24)
WEEK = 168


def pattern() -> Array:
    """Return a cost of 10 an hour, dearer by day, cheaper at weekends; column of hours."""
    day = 1 + 0.4 * np.sin(2 * np.pi * (HOURS % 24 - 8) / 24)
    return np.asarray(10 * (day * np.where((HOURS // 24) % 7 >= 5, 0.75, 1.0))[:, None])


def usual(rng: np.random.Generator, series: int, sigma: float, rho: float = 0.7, *, innovations: bool = False) -> Array:
    """Simulate costs (hours, series). `sigma` is the noise's spread, or that of what each hour adds to it."""
    step = rng.normal(size=(HOURS.size, series)) * sigma * (1.0 if innovations else np.sqrt(1 - rho**2))
    noise = np.zeros_like(step)
    for hour in range(1, len(noise)):
        noise[hour] = rho * noise[hour - 1] + step[hour]
    return np.asarray(pattern() * np.exp(noise))


def seasonal(costs: Array) -> Flags:
    """Hours at which the default says something that it knew at that hour."""
    judged = Walk(np.log(costs + FLOOR), Calendar(HOURS // 24, HOURS % 24, 24)).through()
    return np.asarray(judged.spike | (judged.told & (judged.drift > 0)))


def rolling(costs: Array) -> Flags:
    """Hours above mean + 2.5 sample standard deviations of the 168 hours before."""
    made = np.zeros(costs.shape, bool)
    for hour in range(24, len(costs)):
        past = costs[max(0, hour - WEEK) : hour]
        made[hour] = costs[hour] > past.mean(axis=0) + 2.5 * past.std(axis=0, ddof=1)
    return made


def episodes_per_week(flags: Flags) -> float:
    """Count alerts that are more than a day apart, per series and week."""
    count = 0
    for column in flags.T:
        at = np.flatnonzero(column)
        count += int(1 + (np.diff(at) > 24).sum()) if at.size else 0
    return float(count / flags.shape[1] / (len(flags) / WEEK))


def delays(flags: Flags, begins: NDArray[np.int64], within: int) -> Array:
    """Hours from the change to the first alert within so many; infinity without one."""
    found = [np.flatnonzero(column[at : at + within]) for column, at in zip(flags.T, begins, strict=True)]
    return np.array([float(at[0]) if at.size else np.inf for at in found])


EVENTS: dict[str, tuple[Callable[[NDArray[np.int64]], Array], int]] = {
    "level +40 %": (lambda since: np.where(since >= 0, 1.4, 1.0), 2 * WEEK),
    "level +25 %": (lambda since: np.where(since >= 0, 1.25, 1.0), 2 * WEEK),
    "3 h spike +120 %": (lambda since: np.where((since >= 0) & (since < 3), 2.2, 1.0), 3),
    "trend +40 % a week": (lambda since: np.where(since >= 0, 1.4 ** (since / WEEK), 1.0), 2 * WEEK),
}
METHODS = {"seasonal (default)": seasonal, "rolling": rolling}


def found(series: int, sigma: float, *, innovations: bool, seed: int = 0) -> dict[tuple[str, str], tuple[float, ...]]:
    """Per method false episodes a week, weeks 3 to 8; per method and event share found, median and P90 of the delay."""
    rng = np.random.default_rng([seed, int(innovations)])
    begins = EVENT * 24 + rng.integers(0, 24, series)
    costs = usual(rng, series, sigma, innovations=innovations)
    made: dict[tuple[str, str], tuple[float, ...]] = {}
    for name, method in METHODS.items():
        made[name, "none"] = (episodes_per_week(method(costs)[2 * WEEK :]),)
        for event, (factor, within) in EVENTS.items():
            late = delays(method(costs * factor(HOURS[:, None] - begins)), begins, within)
            made[name, event] = (float(np.isfinite(late).mean()), *np.quantile(late, [0.5, 0.9], method="lower"))
    return made


def noises(rng: np.random.Generator, series: int) -> dict[str, Array]:
    """Costs without a change, under noise that is not what the method was made for."""
    shape = (HOURS.size, series)
    night = (HOURS % 24 < 6)[:, None]
    return {
        "AR(0.7), 20 %": usual(rng, series, 0.2),
        "independent, 5 % by day and 15 % by night": pattern() * np.exp(
            rng.normal(size=shape) * np.where(night, 0.15, 0.03)
        ),
        "about 1,000 requests an hour (Poisson)": rng.poisson(100 * pattern(), shape) * 0.01,
        "about 10 requests an hour (Poisson)": rng.poisson(pattern(), shape) * 1.0,
        "Student t with 3 degrees of freedom, 10 %": pattern() * np.exp(rng.standard_t(3, shape) * 0.1),
        "random walk, 5 % a day": 10 * np.exp(np.cumsum(rng.normal(size=shape) * 0.01, axis=0)),
        "a job of 30 at a random hour once a day": np.where(rng.random(shape) < 1 / 24, 31.0, 1.0),
    }  # fmt: skip


def daily(series: int, seed: int = 0) -> dict[str, float]:
    """Change points of daily cost: hits within two days of +25 %, false ones per series without one and with spikes."""
    rng = np.random.default_rng([seed, 2])
    costs = usual(rng, series, 0.05, innovations=True)
    begins = rng.integers(14, DAYS - 10, series)
    day = HOURS[:, None] // 24
    spike = np.where((day == begins) & (HOURS[:, None] % 24 // 3 == 4), 2.2, 1.0)

    def points(factor: Array | float) -> list[tuple[int, int]]:
        days = (costs * factor).reshape(DAYS, 24, series).sum(axis=1)
        return [(step.series, step.day) for step in changes(np.log(days))]

    level = points(np.where(day >= begins, 1.25, 1.0))
    hits = {of for of, at in level if abs(at - begins[of]) <= 2}
    return {
        "+25 %: found within 2 days": len(hits) / series,
        "+25 %: further ones per series": sum(abs(at - begins[of]) > 2 for of, at in level) / series,
        "no change: false ones per series": len(points(1.0)) / series,
        "3 h spike +120 %: false ones per series": len(points(spike)) / series,
    }


def _hours(delay: float) -> str:
    return f"{delay:.0f} h" if np.isfinite(delay) else "not"


def main() -> None:
    """Print the tables."""
    series = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for innovations in (False, True):
        what = "each hour adds 5 %" if innovations else "spread of 5 %"
        made = found(series, 0.05, innovations=innovations)
        print(
            f"\n| AR(0.7) noise, {what} | false a week | " + " | ".join(EVENTS) + " |\n|---" * 1, end="|---" * 5 + "|\n"
        )
        for name in METHODS:
            cells = [f"{made[name, e][0]:.2f}, {' '.join(map(_hours, made[name, e][1:]))}" for e in EVENTS]
            print(f"| {name} | {made[name, 'none'][0]:.3f} | " + " | ".join(cells) + " |", flush=True)
    print(
        "\n| noise, no change: false a week | weeks 1 and 2 | weeks 3 to 8 | rolling, weeks 3 to 8 |\n|---|---|---|---|"
    )
    for name, costs in noises(np.random.default_rng(3), series).items():
        flags, plain = seasonal(costs), rolling(costs)
        early, late = episodes_per_week(flags[: 2 * WEEK]), episodes_per_week(flags[2 * WEEK :])
        print(f"| {name} | {early:.3f} | {late:.3f} | {episodes_per_week(plain[2 * WEEK :]):.3f} |", flush=True)
    print("\n| change points of daily cost | |\n|---|---|")
    for name, value in daily(series).items():
        print(f"| {name} | {value:.3f} |")


if __name__ == "__main__":
    main()
