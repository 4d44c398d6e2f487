"""How often the limits of a decay's three numbers cover the truth, and how often a tau is told where it cannot be.

Run `python benchmarks/accuracy/decay.py [RUNS]`. Simulates scores of conversations with r0 = 0.72, a = 0.38 and
tau = 128 steps, each with an offset of its own, and blocks of a cache that leave after an exponential time or stay (the
clock stops while many are there). Prints a markdown table.
"""

import sys
import time

import numpy as np
import polars as pl

from analytics.cache import survival
from analytics.stats.decay import fit, form

TRUTH = {"r0": 0.72, "a": 0.38, "tau": 128.0}
CASES = {  # conversations, turns, steps between two turns, noise of a score, offset of a conversation
    "20 conversations, steps to 504": (20, 64, 8.0, 0.10, 0.05),
    "50 conversations, steps to 504": (50, 64, 8.0, 0.10, 0.05),
    "200 conversations, steps to 504": (200, 64, 8.0, 0.10, 0.05),
    "200 conversations, much noise": (200, 64, 8.0, 0.30, 0.10),
    "50 conversations, steps to 248": (50, 32, 8.0, 0.10, 0.05),
    "50 conversations, steps to 120": (50, 16, 8.0, 0.10, 0.05),
}
BLOCKS = {"2,000 blocks, seen for 600 s": 2_000, "20,000 blocks, seen for 600 s": 20_000}


def conversations(rng: np.random.Generator, case: tuple[int, int, float, float, float], a: float) -> dict[str, float]:
    """Fit one simulated set; empty where tau is not told."""
    count, turns, gap, noise, offset = case
    step, cluster = np.tile(np.arange(turns) * gap, count), np.repeat(np.arange(count), turns)
    y = (
        form(step, TRUTH["r0"], a, TRUTH["tau"])
        + rng.normal(0, offset, count)[cluster]
        + rng.normal(0, noise, len(step))
    )
    found = fit(step, y, cluster)
    if found is None or not found.told:
        return {}
    values = dict(zip(TRUTH, (found.r0, found.a, found.tau), strict=True))
    return {f"{name}{end}": at for name, three in values.items() for end, at in zip(("", "_low", "_high"), three)}  # noqa: B905


def blocks(rng: np.random.Generator, n: int, tau: float = 60.0) -> dict[str, float]:
    """Fit blocks of which 38 % leave, seen until the clock stops."""
    start = np.sort(rng.uniform(0, 600, n))
    life = np.where(rng.random(n) < TRUTH["a"], rng.exponential(tau, n), np.inf)
    ts = pl.Series((start * 1e6).astype(np.int64)).cast(pl.Datetime("us"))
    frame = pl.DataFrame({"ts": ts, "age_s": np.minimum(life, 600 - start), "evicted": life < 600 - start})
    (row,) = survival.of_events(frame)[1]
    return row if row["verdict"] == "fitted" else {}


def line(name: str, rows: list[dict[str, float]], truth: dict[str, float]) -> str:
    """Share told, then coverage and root mean square error of each number."""
    told = [row for row in rows if row]
    cells = [f"{len(told) / len(rows):.2f}"]
    for key, value in truth.items():
        covered = np.mean([row[f"{key}_low"] <= value <= row[f"{key}_high"] for row in told]) if told else float("nan")
        error = np.sqrt(np.mean([(row[key] / value - 1) ** 2 for row in told])) if told else float("nan")
        cells += [f"{covered:.2f} ({error:.1%})"]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Print the tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    head = "| data | tau told | r0 covered (error) | a covered (error) | tau covered (error) |\n|---|---|---|---|---|"
    print(f"{runs} runs each; limits of 95 %\n\n{head}")
    began = time.perf_counter()
    for name, case in CASES.items():
        print(line(name, [conversations(np.random.default_rng(i), case, TRUTH["a"]) for i in range(runs)], TRUTH))
    each = (time.perf_counter() - began) / (runs * len(CASES))
    truth = {"r0": 1.0, "a": TRUTH["a"], "tau": 60.0}
    for name, n in BLOCKS.items():
        print(line(name, [blocks(np.random.default_rng(i), n) for i in range(runs)], truth))
    flat = [conversations(np.random.default_rng(i), CASES["50 conversations, steps to 504"], 0.0) for i in range(runs)]
    print(
        f"\nNo decay at all: a tau was told in {sum(map(bool, flat))} of {runs} runs. A fit takes {each * 1e3:.0f} ms."
    )


if __name__ == "__main__":
    main()
