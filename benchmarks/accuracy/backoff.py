"""Back-off of clients, fitted and known: `python benchmarks/accuracy/backoff.py` prints two tables in Markdown.

First, waits of simulated sequences with the back-offs of common libraries: relative error of base, factor and cap, and
how often the 95 % limits hold the truth. Second, attempts without ids among other traffic: which of the joins by
content are right, and how many of the retries are joined.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from analytics.retries.backoff import Array, fit
from analytics.retries.grouping import grouped

STOP = 0.15
"""Chance that a sequence ends after a retry: it succeeded."""


@dataclass(frozen=True)
class Policy:
    """Mean wait before retry k: min(base x factor^k, cap), spread uniformly by +- jitter."""

    name: str
    base_s: float
    factor: float
    cap_s: float
    jitter: float
    retries: int

    def waits(self, sequences: int, rng: np.random.Generator) -> Array:
        """Draw the waits of sequences, nan after their last one."""
        mean = np.minimum(self.base_s * self.factor ** np.arange(self.retries), self.cap_s)
        made = mean * rng.uniform(1 - self.jitter, 1 + self.jitter, (sequences, self.retries))
        made *= rng.uniform(1.0, 1.01, made.shape)  # timers are late, never early
        ended = np.cumsum(rng.uniform(size=made.shape) < STOP, axis=1)
        return np.where(np.pad(ended, ((0, 0), (1, 0)))[:, :-1] > 0, np.nan, made)


POLICIES = (
    Policy("1 s x 2 to 8 s, +-20 % (gRPC's jitter)", 1.0, 2.0, 8.0, 0.2, 9),
    Policy("0.44 s x 2 to 7 s, +-14 % (OpenAI SDK: 0.5 s to 8 s less up to a quarter)", 0.4375, 2.0, 7.0, 1 / 7, 8),
    Policy("0.5 s x 2 to 10 s, full jitter (AWS, 20 s)", 0.5, 2.0, 10.0, 1.0, 8),
    Policy("1 s x 1.3 to 30 s, +-10 %", 1.0, 1.3, 30.0, 0.1, 16),
    Policy("2 s x 3, no cap, +-50 %", 2.0, 3.0, 1e12, 0.5, 6),
    Policy("5 s constant, no jitter", 5.0, 1.0, 5.0, 0.0, 6),
)


def back_offs(runs: int, sizes: tuple[int, ...]) -> None:
    """Print the first table: medians over `runs`."""
    print(
        "| back-off | sequences | waits | base error | factor error | cap error | jitter error | cap told right |",
        end="",
    )
    print(" base in limits | factor in limits | cap in limits |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for policy in POLICIES:
        for size in sizes:
            print(_row(policy, size, runs))


def _row(policy: Policy, size: int, runs: int) -> str:
    rng = np.random.default_rng(size)
    capped = policy.factor > 1 and policy.base_s * policy.factor ** (policy.retries - 1) > policy.cap_s
    gaps, jitter, right = [], [], 0
    errors: dict[str, list[float]] = {"base": [], "factor": [], "cap": []}
    held: dict[str, list[bool]] = {"base": [], "factor": [], "cap": []}
    truth = {"base": policy.base_s, "factor": policy.factor, "cap": policy.cap_s}
    for seed in range(runs):
        found = fit(policy.waits(size, rng), 200, seed)
        gaps.append(found.gaps)
        right += (found.cap is not None) == capped
        if found.jitter is not None:
            jitter.append(abs(found.jitter - policy.jitter))
        for name, one in (("base", found.base), ("factor", found.factor), ("cap", found.cap if capped else None)):
            if one is not None:
                errors[name].append(abs(one.value / truth[name] - 1))
                late = truth[name] * (1.005 if name != "factor" else 1.0)  # of the timers' mean delay
                held[name].append(one.low <= late * 1.001 and one.high >= late * 0.999)
    cells = [_share(float(np.median(errors[n]))) if errors[n] else "-" for n in errors]
    cells += [f"{np.median(jitter):.3f}" if jitter else "-", _share(right / runs)]
    cells += [_share(float(np.mean(held[n]))) if held[n] else "-" for n in held]
    return f"| {policy.name} | {size} | {np.median(gaps):.0f} | " + " | ".join(cells) + " |"


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def joins(runs: int) -> None:
    """Print the second table: retries after 1 to 20 s among traffic that differs in the length of prompts only."""
    print("| requests per second | kinds of prompts | failures | retried | joins | joins right | retries joined |")
    print("|---|---|---|---|---|---|---|")
    for rate, kinds, retried in ((1, 4000, 0.0), (1, 4000, 0.5), (1, 400, 0.5), (10, 4000, 0.5), (10, 400, 0.5)):
        right = made = there = failures = 0
        for seed in range(runs):
            hit, joined, real, failed = _joined(rate, kinds, retried, np.random.default_rng(seed))
            right, made, there, failures = right + hit, made + joined, there + real, failures + failed
        share = _share(right / made) if made else "-"
        found = _share(right / there) if there else "-"
        print(f"| {rate} | {kinds} | {failures} | {retried:.0%} | {made} | {share} | {found} |")


def _joined(rate: float, kinds: int, retried: float, rng: np.random.Generator) -> tuple[int, int, int, int]:
    n = round(3600 * rate)
    at, prompt = np.sort(rng.uniform(0, 3600, n)), rng.integers(0, kinds, n)
    failed = rng.uniform(size=n) < 0.03
    again = failed & (rng.uniform(size=n) < retried)
    start = np.concatenate([at, at[again] + 0.1 + rng.uniform(1, 20, again.sum())])
    of = np.concatenate([np.arange(n), np.flatnonzero(again)])
    order = np.argsort(start)
    start_us = (start[order] * 1e6).astype(np.int64)
    frame = pl.DataFrame(
        {
            "start": start_us,
            "end": start_us + 100_000,
            "failed": np.concatenate([failed, np.zeros(again.sum(), dtype=bool)])[order],
            "input_tokens": prompt[of][order],
            "of": of[order],
        }
    ).with_row_index("_row")
    texts = ("request_id", "wrapper", "trace_id", "span_id", "parent_span_id", "model", "name", "links")
    frame = frame.with_columns(
        pl.lit("a").alias("service"), pl.lit("client").alias("kind"), pl.lit(None, pl.Int64).alias("resend_count"),
        *(pl.lit(None, pl.String).alias(name) for name in texts),
    )  # fmt: skip
    found = grouped(frame, ["input_tokens"], 120.0)[0].filter(pl.col("told_by").is_not_null())
    pairs = found.group_by("sequence").agg(pl.col("of").n_unique().alias("kinds"), pl.len().alias("n"))
    wrong = int((pairs["kinds"] - 1).sum())
    made = int((pairs["n"] - 1).sum())
    return made - wrong, made, int(again.sum()), int(failed.sum())


def main(tables: tuple[Callable[[int], None], ...] = (lambda runs: back_offs(runs, (20, 100, 500)), joins)) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    for table in tables:
        table(runs)
        print()


if __name__ == "__main__":
    main()
