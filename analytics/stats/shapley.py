"""Shapley (LMG) shares: what each driver adds to a fit, averaged over the orders in which drivers could enter."""

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np

from analytics.stats.smoothed import Array

EXACT_PLAYERS = 6
_ORDERS = 24

Worth = Callable[[frozenset[int]], Array]
"""Worth of a coalition of players: an array, so that all resamples share one pass."""


def orders(players: int, seed: int) -> list[tuple[int, ...]]:
    """All orders up to EXACT_PLAYERS players; above, 24 drawn ones, each with its reverse to halve the noise."""
    if players <= EXACT_PLAYERS:
        return list(permutations(range(players)))
    rng = np.random.default_rng(seed)
    drawn = [tuple(int(i) for i in rng.permutation(players)) for _ in range(_ORDERS // 2)]
    return drawn + [order[::-1] for order in drawn]


def values(players: int, worth: Worth, in_orders: Sequence[tuple[int, ...]]) -> Array:
    """Shapley values, (players, …shape of worth); they add up to worth(all) - worth(none)."""
    known: dict[frozenset[int], Array] = {}

    def of(coalition: frozenset[int]) -> Array:
        if coalition not in known:
            known[coalition] = worth(coalition)
        return known[coalition]

    total = np.zeros((players, *of(frozenset()).shape))
    for order in in_orders:
        before = frozenset[int]()
        for player in order:
            total[player] += of(before | {player}) - of(before)
            before |= {player}
    return np.asarray(total / len(in_orders))


def shares(parts: Array) -> Array:
    """Scale parts (players, …) to add up to 1 along the first axis; the largest takes the rounding error.

    Parts below 0 (a fit that got worse by noise) count as 0; where nothing is left, every share is null (nan).
    """
    kept = np.maximum(parts, 0.0)
    total = kept.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(total > 0, kept / total, np.nan)
    top = np.argmax(kept, axis=0)[None]
    rest = share.sum(axis=0) - np.take_along_axis(share, top, 0)[0]
    np.put_along_axis(share, top, (1.0 - rest)[None], 0)
    return share
