"""LRU stack distances of a sequence of block accesses: the hit ratio of every cache size at once, and pollution.

A block access hits a cache of C blocks exactly when its stack distance is at most C (Mattson et al. 1970).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
COLD = 0
"""Distance of an access to a block that was never accessed before: no size hits it."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Per access: stack distance (0: first access), previous and next access of its block (-1, n: none)."""

    distance: Ints
    previous: Ints
    following: Ints


@dataclass(frozen=True, slots=True)
class Pollution:
    """Per access, what an LRU cache of one size made of it.

    `expired`: a miss on a block that was evicted; `redundant`: a miss whose block is evicted before it is used again;
    `pending`: a miss whose block is neither used again nor evicted by the end of the accesses.
    """

    hit: Bools
    expired: Bools
    redundant: Bools
    pending: Bools


def stack(blocks: NDArray[Any]) -> Stack:
    """Compute exact stack distances in O(n log n).

    With p the previous access, the distance of access i is 1 + #{j < i: p_j <= p_i} - (p_i + 1): what was first
    accessed within the reuse interval has its own previous access before it.
    """
    n = len(blocks)
    order = np.argsort(blocks, kind="stable")
    same = blocks[order][1:] == blocks[order][:-1]
    previous, following = np.full(n, -1, np.int64), np.full(n, n, np.int64)
    previous[order[1:][same]] = order[:-1][same]
    following[order[:-1][same]] = order[1:][same]
    rank = np.empty(n, np.int64)
    rank[np.argsort(previous, kind="stable")] = np.arange(n)
    distance = _smaller_before(rank) - previous
    return Stack(np.where(previous < 0, COLD, distance), previous, following)


def pollution(found: Stack, size: int) -> Pollution:
    """Say what a cache of `size` blocks makes of each access; equal to a simulation of LRU."""
    n = len(found.distance)
    warm, near = found.distance > 0, found.distance <= size
    hit, expired = warm & near, warm & ~near
    last = found.following == n
    after = np.cumsum(last[::-1])[::-1] - last  # distinct blocks accessed later
    next_hit = np.append(hit, False)[found.following]
    gone = np.where(last, after >= size, ~next_hit)
    return Pollution(hit, expired, ~hit & gone, ~hit & last & ~gone)


def hit_ratios(distance: Ints, sizes: Ints) -> NDArray[np.float64]:
    """Hit ratio of a cache of each size, exact."""
    warm = np.sort(distance[distance > 0])
    return np.searchsorted(warm, sizes, side="right") / max(len(distance), 1)


def sampled_hit_ratios(blocks: NDArray[Any], sizes: Ints, rate: float) -> NDArray[np.float64]:
    """Hit ratios from the share `rate` of the blocks, by hash, with the first-bucket correction.

    SHARDS-adj (Waldspurger et al. 2015): distances of the sample are divided by the rate; the accesses by which the
    sample misses its expected number count as hits at the smallest distance.
    """
    kept = mixed(blocks) < np.uint64(min(int(rate * 2.0**64), 2**64 - 1))
    distance = stack(blocks[kept]).distance
    expected = len(blocks) * rate
    warm = np.sort(distance[distance > 0]) / rate
    hits = np.searchsorted(warm, sizes, side="right") + (expected - len(distance))
    made: NDArray[np.float64] = np.maximum.accumulate(np.clip(hits / max(expected, 1.0), 0.0, 1.0))
    return made


def mixed(blocks: NDArray[Any]) -> NDArray[np.uint64]:
    """Hash block ids evenly over 64 bits (finaliser of SplitMix64)."""
    value = blocks.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _smaller_before(rank: Ints) -> Ints:
    """#{j < i: rank_j < rank_i} of a permutation, bit by bit from the highest (a wavelet tree, one level at a time)."""
    n = len(rank)
    count, at = np.zeros(n, np.int64), np.arange(n)  # positions, grouped by the bits seen so far, in order of time
    for bit in range(max(n - 1, 0).bit_length() - 1, -1, -1):
        value = rank[at]
        group, zero = value >> (bit + 1), (value >> bit) & 1 == 0
        before = np.cumsum(zero) - zero
        begins = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        base = np.repeat(before[begins], np.diff(np.append(begins, n)))
        count[at[~zero]] += (before - base)[~zero]
        at = at[np.argsort(value >> bit, kind="stable")]
    return count
