"""Which columns a regression can tell apart: constants, variance inflation, and groups that move together."""

from collections.abc import Sequence

import numpy as np

from analytics.stats.smoothed import Array

JOINT_SHARE = 10.0
"""Variance inflation above which shares of single drivers go to the wrong twin in one of four runs."""
JOINT_EFFECT = 30.0
"""Variance inflation above which single slopes are noise: only one of the group is fitted, for all of it."""


def constant_columns(design: Array) -> list[int]:
    """Columns (n, k) whose values do not differ beyond rounding."""
    spread = np.ptp(design, axis=0) if design.size else np.zeros(design.shape[1])
    size = np.abs(design).max(axis=0, initial=0.0)
    return [int(i) for i in np.flatnonzero(spread <= 1e-12 * np.maximum(size, 1e-300))]


def correlation(design: Array) -> Array:
    """Pearson correlation of the columns (no constants), as a matrix."""
    centred = design - design.mean(axis=0)
    scaled = centred / np.sqrt(np.square(centred).sum(axis=0))
    return np.asarray(np.clip(scaled.T @ scaled, -1.0, 1.0))


def variance_inflation(design: Array) -> Array:
    """1 / (1 - R^2) of each column on the others (an intercept included); infinite when it follows from them."""
    k = design.shape[1]
    if k < 2:
        return np.ones(k)
    related = correlation(design)
    inflation = np.empty(k)
    for i in range(k):
        others = np.delete(np.arange(k), i)
        weights = np.linalg.lstsq(related[np.ix_(others, others)], related[others, i], rcond=1e-12)[0]
        left = 1.0 - float(related[i, others] @ weights)
        inflation[i] = 1.0 / left if left > 1e-9 else np.inf
    return inflation


def usable_columns(design: Array) -> tuple[list[int], list[int]]:
    """Split columns into those a fit with intercept can carry, greedily from the left, and those it cannot."""
    constant = set(constant_columns(design))
    kept: list[int] = []
    for i in range(design.shape[1]):
        if i not in constant and np.isfinite(variance_inflation(design[:, [*kept, i]])).all():
            kept.append(i)
    return kept, [i for i in range(design.shape[1]) if i not in kept]


def groups(design: Array, inflation: Array, limit: float) -> list[list[int]]:
    """Columns grouped so that each one with inflation above the limit sits with the column it follows most."""
    k = design.shape[1]
    group = list(range(k))
    if k > 1:
        related = np.abs(correlation(design)) - 2.0 * np.eye(k)
        for i in np.flatnonzero(inflation > limit):
            partner = int(np.argmax(related[i]))
            joined, into = group[int(i)], group[partner]
            group = [into if g == joined else g for g in group]
    return [[i for i in range(k) if group[i] == g] for g in dict.fromkeys(group)]


def name_group(names: Sequence[str], members: Sequence[int]) -> str:
    """Name of a joint driver: 'a + b'."""
    return " + ".join(names[i] for i in members)
