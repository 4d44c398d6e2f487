"""Limits and alert of `stream` on simulated hours: `python benchmarks/accuracy/stream.py` prints two Markdown tables.

First, how often the 95 % limits of a group hold the truth (many streams of the same law). Second, how often steady
hours raise StreamsSlower, and how often hours whose last ten minutes are slower do.
"""

import argparse
from functools import cache

import numpy as np

from analytics.result import Result
from tests.analytics.stream.simulated import hour
from tests.analytics.stream.test_stream import run

LIMITED = (("ji_p50", ""), ("ji_pooled", ""), ("ji_overall", ""), ("itl_p50", "_s"), ("itl_p99", "_s"))
TRUTHS = 40
"""Hours whose mean is the truth."""


@cache
def truth(minutes: float, own: float) -> dict[str, float]:
    """Mean of each measure over hours with many streams."""
    rows = [run(hour(10_000 + i, 1500, minutes, own)).frames["groups"].row(0, named=True) for i in range(TRUTHS)]
    return {name: float(np.mean([row[name + unit] for row in rows])) for name, unit in LIMITED}


def covered(runs: int, n: int, minutes: float, own: float) -> dict[str, float]:
    """Share of the hours with limits in which they hold the truth, and of those without, by measure."""
    true = truth(minutes, own)
    rows = [run(hour(i, n, minutes, own)).frames["groups"].row(0, named=True) for i in range(runs)]
    found: dict[str, float] = {}
    for name, unit in LIMITED:
        limits = [(row[f"{name}_low{unit}"], row[f"{name}_high{unit}"]) for row in rows]
        found[name] = float(np.mean([low <= true[name] <= high for low, high in limits if None not in (low, high)]))
        found[f"{name} none"] = float(np.mean([None in pair for pair in limits]))
    return found


def alerts(result: Result) -> tuple[bool, bool]:
    """Say whether StreamsSlower lasts at the end, and whether it is said of any stretch."""
    found = [finding for finding in result.findings if finding.trigger == "StreamsSlower"]
    return any(finding.until is None for finding in found), bool(found)


def told(shares: dict[str, float], name: str) -> str:
    """Write a cell of the first table."""
    none = shares[f"{name} none"]
    return f"{shares[name]:.1%}" + (f" ({none:.1%} without)" if none else "")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    print("| streams | sd of minutes | sd of streams | " + " | ".join(name for name, _ in LIMITED) + " |")
    print("|---|---|---|" + "---|" * len(LIMITED))
    for n, minutes, own in ((200, 0.0, 0.3), (500, 0.1, 0.3), (500, 0.3, 0.3), (2000, 0.1, 0.3)):
        shares = covered(runs, n, minutes, own)
        print(
            f"| {n} | {minutes} | {own} | " + " | ".join(told(shares, name) for name, _ in LIMITED) + " |", flush=True
        )
    print("\n| streams | sd of minutes | last ten minutes | lasts at the end | said of any stretch |")
    print("|---|---|---|---|---|")
    for n, minutes, factor in (
        (500, 0.0, 1.0), (500, 0.1, 1.0), (500, 0.2, 1.0), (200, 0.1, 1.0), (2000, 0.1, 1.0),
        (500, 0.1, 1.5), (500, 0.1, 2.0), (500, 0.1, 3.0), (2000, 0.1, 2.0), (500, 0.2, 3.0),
    ):  # fmt: skip
        found = [alerts(run(hour(i, n, minutes, slow=(3000, 3600, factor)))) for i in range(runs)]
        last, some = (float(np.mean([one[k] for one in found])) for k in (0, 1))
        print(f"| {n} | {minutes} | {factor:g}x | {last:.1%} | {some:.1%} |", flush=True)


if __name__ == "__main__":
    main()
