"""Cells of an error heatmap: how many that stand out are true, by rule, on simulated weeks.

Run `python benchmarks/accuracy/heatmap.py [WEEKS]` (20 by default); it prints a markdown table. A week has 3 clouds x 8
codes x 168 hours with daily traffic; counts are Poisson over gamma rates (variance of a rate a quarter of its square);
30 random cells have six times the rate, single ones or in bursts of one to six adjacent hours. A second table counts
bursts and episodes (flagged cells, at most one calm one between them) in place of cells, also in three-hour buckets.
"""

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analytics.stats import negative_binomial as nb

CLOUDS, CODES, HOURS = 3, 8, 168
SPREAD, BURSTS, FACTOR = 0.25, 30, 6.0
LENGTHS = ((1, "single hours"), (6, "one to six hours"))
Grid = NDArray[np.float64]
Rule = Callable[[Grid, Grid], NDArray[np.bool_]]


def week(seed: int, longest: int = 1) -> tuple[Grid, Grid, NDArray[np.bool_]]:
    """Return counts, exposure and which cells are bursts, of shape (24, 168)."""
    chance = np.random.default_rng(seed)
    traffic = 2000 * (1 + 0.6 * np.sin(2 * np.pi * np.arange(HOURS) / 24))[None, :] * np.ones((CLOUDS, 1))
    exposure = np.repeat(chance.poisson(traffic).astype(float), CODES, axis=0)
    base = np.exp(chance.uniform(np.log(2e-4), np.log(4e-3), (CLOUDS * CODES, 1)))
    true = np.zeros((CLOUDS * CODES, HOURS), dtype=bool)
    left = BURSTS
    while left > 0:
        row, at, long = (
            chance.integers(len(true)),
            chance.integers(HOURS),
            min(left, int(chance.integers(1, longest + 1))),
        )
        true[row, at : at + long] = True
        left -= long
    rate = base * chance.gamma(1 / SPREAD, SPREAD, true.shape) * np.where(true, FACTOR, 1.0)
    return chance.poisson(rate * exposure).astype(float), exposure, true


def _row_rate(counts: Grid, exposure: Grid) -> Grid:
    return np.asarray(counts.sum(axis=1, keepdims=True) / exposure.sum(axis=1, keepdims=True) * exposure)


def _z(counts: Grid, exposure: Grid) -> NDArray[np.bool_]:
    rate = counts / exposure
    return np.asarray(rate > rate.mean(axis=1, keepdims=True) + 3 * rate.std(axis=1, keepdims=True))


def _poisson(counts: Grid, exposure: Grid) -> NDArray[np.bool_]:
    return np.asarray(nb.adjusted(np.asarray(stats.poisson.sf(counts - 1, _row_rate(counts, exposure)))) <= 0.05)


def _ours(counts: Grid, exposure: Grid) -> NDArray[np.bool_]:
    return np.asarray(nb.adjusted(nb.baseline(counts, exposure).p) <= 0.05)


RULES: dict[str, Rule] = {
    "z > 3 of the row": _z,
    "rate > 3 x mean of the row": lambda y, n: np.asarray(y > 3 * _row_rate(y, n)),
    "Poisson, BH 5 %": _poisson,
    "infractl: negative binomial, BH 5 %": _ours,
}


def score(rule: Rule, weeks: int, longest: int) -> tuple[float, float, float, float]:
    """Return cells flagged a week, false discovery rate, recall, and recall where 3 or more were expected."""
    flagged = false = hits = bursts = big = big_hits = 0
    for seed in range(weeks):
        counts, exposure, true = week(seed, longest)
        found = rule(counts, exposure)
        large = true & (_row_rate(counts, exposure) >= 3)
        flagged, false, hits = flagged + found.sum(), false + (found & ~true).sum(), hits + (found & true).sum()
        bursts, big, big_hits = bursts + true.sum(), big + large.sum(), big_hits + (found & large).sum()
    return flagged / weeks, false / max(flagged, 1), hits / bursts, big_hits / max(big, 1)


def _three_hours(counts: Grid, exposure: Grid) -> NDArray[np.bool_]:
    """Flag three-hour buckets, as hours."""
    y, n = (part.reshape(len(part), HOURS // 3, 3).sum(axis=2) for part in (counts, exposure))
    return np.repeat(_ours(y, n), 3, axis=1)


SIZES: dict[str, Rule] = {"an hour": _ours, "three hours": _three_hours}


def runs(cells: NDArray[np.bool_], gap: int = 0) -> list[tuple[int, int, int]]:
    """Return (row, first, behind the last) of each run; `gap` calm cells within one do not end it."""
    made: list[tuple[int, int, int]] = []
    places: list[list[int]] = np.argwhere(cells).tolist()
    for row, at in places:
        if made and made[-1][0] == row and at - made[-1][2] <= gap:
            made[-1] = (row, made[-1][1], at + 1)
        else:
            made.append((row, at, at + 1))
    return made


def score_episodes(rule: Rule, weeks: int, longest: int) -> tuple[float, float, float]:
    """Return episodes a week, the share of them that touch no burst, and the share of bursts that one touches."""
    many = false = hits = bursts = 0
    for seed in range(weeks):
        counts, exposure, true = week(seed, longest)
        flagged = rule(counts, exposure)
        found, real = runs(flagged, gap=1), runs(true)
        many, false = many + len(found), false + sum(not bool(true[row, a:b].any()) for row, a, b in found)
        bursts, hits = bursts + len(real), hits + sum(bool(flagged[row, a:b].any()) for row, a, b in real)
    return many / weeks, false / max(many, 1), hits / bursts


def main() -> None:
    """Print both tables."""
    weeks = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print("| bursts | rule | flagged a week | false among them | recall | recall, 3 or more expected |")
    print("|---|---|---|---|---|---|")
    for longest, name in LENGTHS:
        for rule, judge in RULES.items():
            many, fdr, recall, large = score(judge, weeks, longest)
            print(f"| {name} | {rule} | {many:.0f} | {fdr:.2f} | {recall:.2f} | {large:.2f} |")
    print("\n| bursts | buckets of | episodes a week | false among them | bursts found |")
    print("|---|---|---|---|---|")
    for longest, name in LENGTHS:
        for size, judge in SIZES.items():
            found, wrong, hit = score_episodes(judge, weeks, longest)
            print(f"| {name} | {size} | {found:.1f} | {wrong:.2f} | {hit:.2f} |")


if __name__ == "__main__":
    main()
