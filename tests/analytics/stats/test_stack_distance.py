"""Stack distances against a plain simulation of LRU, laws of the curve, and the known ratios of a public trace."""

import gzip
import json
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.stats.stack_distance import hit_ratios, pollution, sampled_hit_ratios, stack

TRACES = st.lists(st.integers(0, 12), min_size=1, max_size=120)


def simulated(blocks: list[int], size: int) -> tuple[list[bool], list[bool], list[bool], list[bool]]:
    """Hit, expired, redundant, pending of every access, by keeping an LRU cache."""
    cache: OrderedDict[int, tuple[int, bool]] = OrderedDict()
    n = len(blocks)
    hit, expired, redundant, pending = ([False] * n for _ in range(4))
    seen: set[int] = set()
    for at, block in enumerate(blocks):
        if block in cache:
            hit[at] = True
            cache[block] = (cache[block][0], True)
            cache.move_to_end(block)
        else:
            expired[at] = block in seen
            cache[block] = (at, False)
            if len(cache) > size:
                _, (loaded, used) = cache.popitem(last=False)
                redundant[loaded] = not used
        seen.add(block)
    for loaded, used in cache.values():
        pending[loaded] = not used
    return hit, expired, redundant, pending


def mooncake(shared: Path) -> np.ndarray:
    with gzip.open(shared / "data/mooncake_trace/conversation_trace.jsonl.gz") as file:
        return np.array([block for line in file for block in json.loads(line)["hash_ids"]])


@given(TRACES, st.integers(1, 15))
def test_every_access_is_what_a_simulated_cache_makes_of_it(blocks: list[int], size: int) -> None:
    made = pollution(stack(np.array(blocks)), size)
    found = (made.hit.tolist(), made.expired.tolist(), made.redundant.tolist(), made.pending.tolist())
    assert found == simulated(blocks, size)


@given(TRACES)
def test_a_larger_cache_never_hits_less_and_pollution_is_a_share(blocks: list[int]) -> None:
    found = stack(np.array(blocks))
    ratios = hit_ratios(found.distance, np.arange(1, 20))
    assert (np.diff(ratios) >= 0).all()
    for size in (1, 3, 9):
        made = pollution(found, size)
        assert 0 <= (made.expired | made.redundant).mean() <= 1
        assert made.hit.mean() == pytest.approx(ratios[size - 1])


def test_the_pollution_of_a_trace_by_hand_is_three_of_four() -> None:
    made = pollution(stack(np.array([ord(name) for name in "ABCA"])), 2)
    assert made.hit.sum() == 0
    assert made.expired.tolist() == [False, False, False, True]
    assert made.redundant.tolist() == [True, True, False, False]
    assert (made.expired.sum() + made.redundant.sum()) / 4 == (made.expired | made.redundant).mean() == 0.75


def test_the_curve_of_the_mooncake_conversations_is_the_known_one(shared: Path) -> None:
    found = stack(mooncake(shared))
    sizes = np.array([1_000, 5_000, 10_000, 30_000, 100_000, 10**9])
    known = [0.04447, 0.11036, 0.21116, 0.32571, 0.36369, 0.36641]
    assert hit_ratios(found.distance, sizes).round(5).tolist() == known
    assert round(float(hit_ratios(found.distance, sizes)[-1]), 6) == 0.366412
    early = [round(float(pollution(found, int(size)).expired.mean()), 5) for size in sizes[:-1]]
    assert early == pytest.approx([0.32194, 0.25605, 0.15525, 0.04070, 0.00272], abs=1.01e-5)


def test_a_tenth_of_the_blocks_gives_the_curve_within_half_a_point(shared: Path) -> None:
    blocks = mooncake(shared)
    sizes = np.linspace(500, 180_000, 200).astype(np.int64)
    exact = hit_ratios(stack(blocks).distance, sizes)
    assert np.abs(sampled_hit_ratios(blocks, sizes, 0.1) - exact).mean() <= 0.005
    assert np.abs(sampled_hit_ratios(blocks, sizes, 1.0) - exact).max() < 1e-12
