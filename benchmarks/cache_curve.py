"""The hit ratios of every cache size against a plain-Python simulation of LRU at several sizes, in one run.

Run `python benchmarks/cache_curve.py TRACE` with a Mooncake trace (JSON lines with hash_ids, gzipped or not); without
one, a Zipf trace of as many accesses is made. Prints a markdown table.
"""

import gzip
import json
import sys
import time
from collections import OrderedDict

import numpy as np

from analytics.stats.stack_distance import hit_ratios, sampled_hit_ratios, stack

SIZES = (1_000, 5_000, 10_000, 30_000, 50_000, 100_000)
RATES = (0.1, 0.01)


def read(arguments: list[str]) -> list[int]:
    """Blocks of the trace named, else of a made one."""
    if not arguments:
        return [int(block) for block in np.random.default_rng(7).zipf(1.2, 288_500) % 200_000]
    with (gzip.open if arguments[0].endswith(".gz") else open)(arguments[0], "rt") as file:
        return [block for line in file for block in json.loads(line)["hash_ids"]]


def simulate(blocks: list[int], size: int) -> float:
    """Hit ratio of an LRU cache."""
    cache: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for block in blocks:
        if block in cache:
            hits += 1
            cache.move_to_end(block)
        else:
            cache[block] = None
            if len(cache) > size:
                cache.popitem(last=False)
    return hits / len(blocks)


def main() -> None:
    """Print the table."""
    blocks = read(sys.argv[1:])
    ids = np.array(blocks)
    began = time.perf_counter()
    simulated = [simulate(blocks, size) for size in SIZES]
    slow = time.perf_counter() - began
    began = time.perf_counter()
    every = np.arange(1, len(np.unique(ids)) + 1)
    exact = hit_ratios(stack(ids).distance, every)
    quick = time.perf_counter() - began
    assert np.allclose([exact[min(size, len(every)) - 1] for size in SIZES], simulated)
    print(f"{len(blocks):,} accesses, {len(every):,} blocks\n")
    print("| method | sizes | s | against the simulation | mean absolute error |\n|---|---|---|---|---|")
    print(f"| simulation of LRU | {len(SIZES)} | {slow:.2f} | 1.0 | - |")
    print(f"| Mattson, every size | {len(every):,} | {quick:.2f} | {slow / quick:.1f} times as fast | 0 |")
    for rate in RATES:
        began = time.perf_counter()
        sampled = sampled_hit_ratios(ids, every, rate)
        took = time.perf_counter() - began
        error = np.abs(sampled - exact).mean()
        print(
            f"| SHARDS-adj, {rate:.0%} | {len(every):,} | {took:.2f} | {slow / took:.0f} times as fast | {error:.4f} |"
        )


if __name__ == "__main__":
    main()
