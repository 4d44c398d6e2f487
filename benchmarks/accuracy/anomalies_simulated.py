"""Recall of `analyze anomalies` by kind of incident, simulated: `python benchmarks/accuracy/anomalies_simulated.py`.

2,000 series of two weeks at five minutes: gamma noise around a mean with a daily pattern, one incident each at a random
time after day 9. Then hourly cost with a daily and weekly pattern, +40 % from day 40 on: how soon the shift is found.
"""

from collections import defaultdict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from analytics.detect.episodes import Episode, find

Floats = NDArray[np.float64]
POINTS, DAY, START = 4032, 288, 1764547200
SERIES, BATCH = 2000, 200
DRIFT = "drift +10..30 % a day"
SHAPE = 25.0
"""Of the gamma noise: a spread of a fifth of the mean."""


def usual(rng: np.random.Generator, points: int = POINTS) -> Floats:
    """One series: amplitude of the day and size at random."""
    day = 1 + rng.uniform(0.2, 0.8) * np.sin(2 * np.pi * (np.arange(points) + rng.integers(DAY)) / DAY)
    return np.asarray(10 ** rng.uniform(-2, 6) * day * rng.gamma(SHAPE, 1 / SHAPE, points))


def spike(values: Floats, at: int, rng: np.random.Generator) -> int:
    """One to three points, twice the highest value so far or more."""
    until = at + int(rng.integers(1, 4))
    values[at:until] = values[:at].max() * rng.uniform(2, 4)
    return until


def level(values: Floats, at: int, rng: np.random.Generator) -> int:
    """+40 % to +100 %, to the end."""
    values[at:] *= rng.uniform(1.4, 2.0)
    return min(len(values), at + DAY // 2)


def variance(values: Floats, at: int, rng: np.random.Generator) -> int:
    """Noise four to six times as wide, for twelve hours."""
    until = at + DAY // 2
    values[at:until] *= 1 + rng.uniform(4, 6) / 5 * rng.normal(size=until - at)
    return until


def flat(values: Floats, at: int, rng: np.random.Generator) -> int:
    """Hold the last value for six hours."""
    del rng
    values[at : at + 72] = values[at - 1]
    return at + 72


def contextual(values: Floats, at: int, rng: np.random.Generator) -> int:
    """Three hours of the time of day that is half a day away."""
    del rng
    values[at : at + 36] = values[at - DAY // 2 : at - DAY // 2 + 36]
    return at + 36


def drift(values: Floats, at: int, rng: np.random.Generator) -> int:
    """Up by a tenth to three tenths a day, for four days or to the end."""
    until = min(len(values), at + 4 * DAY)
    values[at:until] *= 1 + rng.uniform(0.1, 0.3) * np.arange(until - at) / DAY
    return until


def nothing(values: Floats, at: int, rng: np.random.Generator) -> int:
    """Leave the series alone: how often an episode is there by chance."""
    del values, rng
    return at + DAY // 2


INCIDENTS: dict[str, Callable[[Floats, int, np.random.Generator], int]] = {
    "spike": spike, "level +40..100 %": level, "variance x4..6": variance, "flat": flat, "wrong hour": contextual,
    DRIFT: drift,
    "nothing, for 12 h (chance)": nothing,
}  # fmt: skip


def simulated() -> None:
    """Print recall and false episodes by kind."""
    rng = np.random.default_rng(0)
    names = list(INCIDENTS)
    hits: dict[str, list[tuple[bool, bool, float]]] = defaultdict(list)
    listed, paged, weeks = 0, 0, 0.0
    for batch in range(SERIES // BATCH):
        made, truth = np.empty((POINTS, BATCH)), []
        for column in range(BATCH):
            name = names[(batch * BATCH + column) % len(names)]
            values, at = usual(rng), int(rng.integers(9 * DAY, (10 if name == DRIFT else 13) * DAY))
            truth.append((name, at, INCIDENTS[name](values, at, rng)))
            made[:, column] = values
        by_column: dict[int, list[Episode]] = defaultdict(list)
        for episode in find(made, START + 300 * np.arange(POINTS)):
            by_column[episode.column].append(episode)
        for column, (name, at, until) in enumerate(truth):
            inside = [e for e in by_column[column] if e.first < until + 12 and e.last >= at]
            inside = [e for e in inside if name != DRIFT or e.kind == "drift"]  # others are there by chance in days
            delay = min((max(e.told, at) - at for e in inside), default=np.nan) / 12
            hits[name].append((bool(inside), any(e.page for e in inside), delay))
            before = [e for e in by_column[column] if e.first >= DAY and e.last < at]
            listed, paged, weeks = listed + len(before), paged + sum(e.page for e in before), weeks + (at - DAY) / 2016
    print("| incident | series | found | found, paging | median delay |\n|---|---|---|---|---|")
    for name in names:
        found = np.array(hits[name], float)
        shares = " | ".join(f"{share:.2f}" for share in found[:, :2].mean(axis=0))
        print(f"| {name} | {len(found)} | {shares} | {np.nanmedian(found[:, 2]):.1f} h |")
    print(f"\nBefore the incidents: {listed / weeks:.2f} episodes listed a series-week, {paged / weeks:.3f} paging.")


def cost(rng: np.random.Generator, days: int = 56) -> Floats:
    """Hourly cost: daily and weekly pattern, AR(1) noise of 0.7 and 5 %."""
    hours = np.arange(24 * days)
    pattern = 100 * (1 + 0.4 * np.sin(2 * np.pi * hours / 24)) * np.where(hours // 24 % 7 >= 5, 0.6, 1.0)
    noise = rng.normal(size=hours.size) * 0.05 * np.sqrt(1 - 0.49)
    for at in range(1, hours.size):
        noise[at] += 0.7 * noise[at - 1]
    return np.asarray(pattern * (1 + noise))


def shifted() -> None:
    """Print how soon a level shift of +40 % in hourly cost is seen, and how often without one."""
    rng = np.random.default_rng(1)
    values = np.stack([cost(rng) for _ in range(200)], axis=1)
    at = 40 * 24 + rng.integers(0, 168, 100)
    for column, start in enumerate(at):
        values[start:, column] *= 1.4
    delays = []
    for column, start in enumerate(at):
        told = [e.told for e in find(values[:, [column]], START + 3600 * np.arange(len(values))) if e.last >= start]
        delays.append(min((t - start for t in told if t >= start), default=np.inf))
    calm = find(values[:, 100:], START + 3600 * np.arange(len(values)))
    false = sum(e.first >= 28 * 24 for e in calm)
    print("\n| hourly cost, +40 % | found within 12 h | median delay | false episodes a week, listed | paging |")
    print("|---|---|---|---|---|")
    within, median = np.mean(np.array(delays) <= 12), np.median(delays)
    paging = sum(e.first >= 28 * 24 and e.page for e in calm)
    print(f"| 100 series | {within:.2f} | {median:.0f} h | {false / 400:.3f} | {paging / 400:.3f} |")


if __name__ == "__main__":
    simulated()
    shifted()
