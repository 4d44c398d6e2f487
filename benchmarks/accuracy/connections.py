"""Accuracy of `analyze connections` on simulated connections and hours of cost: prints Markdown tables.

The regimes are the documents' figures: reuse 14.2 → 2.1, handshakes 11 → 47 % of the time; cheapest concurrency 800,
1200 and 2100 with 237, 169 and 92 % more at three times that. Usage: python -m benchmarks.accuracy.connections [RUNS]
"""

import sys
from datetime import timedelta

import numpy as np
import polars as pl

from analytics.connections.cheapest import FOUND, cheapest
from tests.analytics.connections.simulated import AFTER, BEFORE, Regime, run, traffic, unit_costs, window_of
from tests.analytics.frames_of import START

HOUR = 3600.0
CHANGE = 3 * HOUR
DOCUMENTS = {"ALB": (800.0, 2.37), "Front Door": (1200.0, 1.69), "GCP LB": (2100.0, 0.92)}
THIRD = Regime(1.5, 4.73, 0.12, 0.2106)
SHAPES = {"bend": "bend", "smooth": "parabola", "saturating": "levels off"}


def falls(runs: int, after: Regime, timed: float) -> dict[str, float]:
    """Errors of both regimes, and whether and how late the fall is found."""
    errors: dict[str, list[float]] = {name: [] for name in ("before", "after", "share before", "share after", "delay")}
    for seed in range(runs):
        result = run(traffic(seed, (CHANGE, BEFORE), (HOUR, after), timed=timed), window_of(CHANGE + HOUR))
        rows, change = result.frames["buckets"], START + timedelta(seconds=CHANGE)
        for name, regime, part in (
            ("before", BEFORE, rows.filter(pl.col("ts") < change)),
            ("after", after, rows.filter(pl.col("ts") >= change)),
        ):
            share = regime.handshake_s / (regime.handshake_s + regime.reuse * regime.request_s)
            errors[name].append(float(np.median(part["reuse"].drop_nulls())) / regime.reuse - 1)
            errors[f"share {name}"].append(float(np.median(part["handshake_share"].drop_nulls())) - share)
        lasting = [f for f in result.findings if f.until is None]
        if lasting:
            errors["delay"].append((lasting[0].since.replace(tzinfo=None) - change).total_seconds() / 60)
    worst = {name: float(np.max(np.abs(values))) for name, values in errors.items() if name != "delay"}
    return worst | {"found": len(errors["delay"]) / runs, "late": float(np.median(errors["delay"] or [np.nan]))}


def false_alarms(days: int) -> tuple[int, int]:
    """Count findings, and buckets that were judged, in days of steady traffic."""
    found = judged = 0
    for seed in range(days):
        result = run(traffic(1000 + seed, (24 * HOUR, BEFORE)), window_of(24 * HOUR))
        found += len(result.findings)
        judged += result.frames["buckets"]["usual"].count()
    return found, judged


def minima(runs: int, best: float, growth: float, shape: str, days: int) -> dict[str, float]:
    """Cheapest concurrency over the true one, how often within its limits, and the growth over the true one."""
    at, inside, grown, within = [], [], [], []
    for seed in range(runs):
        row = cheapest(*unit_costs(seed, best, growth, hours=24 * days, shape=shape), resamples=200, seed=seed)
        if row["verdict"] != FOUND:
            continue
        x = row["highest"] / best
        truth = {
            "bend": growth * (x - 1) / 2,
            "smooth": growth * (np.log(x) / np.log(3)) ** 2,
            "saturating": growth * (1 - np.exp(-3 * (x - 1))) / (1 - np.exp(-6)),
        }[shape]
        at.append(row["concurrency"] / best)
        inside.append(row["low"] <= best <= row["high"])
        grown.append(row["growth"] / truth)
        within.append(row["growth_low"] <= truth <= row["growth_high"])
    return {
        "found": len(at) / runs, "at": float(np.median(at)), "least": min(at), "most": max(at),
        "inside": float(np.mean(inside)), "growth": float(np.median(grown)), "within": float(np.mean(within)),
    }  # fmt: skip


def main() -> None:
    """Print the tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    columns = ("before", "after", "share before", "share after")
    print("| reuse, time in handshakes | handshakes logged | worst error of reuse before | after | ", end="")
    print("of the share before | after | found | median minutes late |\n|---|---|---|---|---|---|---|---|")
    for name, after, timed in (
        ("14.2 → 2.1, 11 → 47 %", AFTER, 1.0),
        ("14.2 → 2.1, 11 → 47 %", AFTER, 0.1),
        ("14.2 → 4.73, 11 → 27 %", THIRD, 1.0),
    ):
        row = falls(runs, after, timed)
        errors = " | ".join(f"{100 * row[c]:.1f} {'points' if c.startswith('share') else '%'}" for c in columns)
        print(f"| {name} | {timed:.0%} | {errors} | {row['found']:.2f} | {row['late']:.0f} |")
    found, judged = false_alarms(max(runs // 4, 1))
    print(f"\nSteady traffic: {found} findings in {max(runs // 4, 1)} days ({judged} buckets judged).\n")
    print(
        "| cheapest at, rise at three times that | shape of the rise | days | found | concurrency / true (median, ",
        end="",
    )
    print("range) | true one in limits | rise / true | true one in limits |\n|---|---|---|---|---|---|---|---|")
    for name, (best, growth) in DOCUMENTS.items():
        for shape, words in SHAPES.items():
            for days in (7, 28):
                row = minima(runs, best, growth, shape, days)
                spread = f"{row['at']:.2f} ({row['least']:.2f} to {row['most']:.2f})"
                print(
                    f"| {name}: {best:.0f}, +{growth:.0%} | {words} | {days} | {row['found']:.2f} | {spread} ", end=""
                )
                print(f"| {row['inside']:.2f} | {row['growth']:.2f} | {row['within']:.2f} |")


if __name__ == "__main__":
    main()
