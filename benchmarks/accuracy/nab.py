"""The detector of `analyze anomalies` on the Numenta Anomaly Benchmark: `python benchmarks/accuracy/nab.py FOLDER`.

FOLDER holds series.parquet, combined_windows.json and detector_scores.parquet (NAB 1.1, MIT; not shipped here). One
configuration for every series, and no look at the future. Prints the three profiles at the product's one threshold and
at the best threshold per profile (as NAB's own table has them), beside detectors that publish their scores, and what
is left on series that the threshold, or the whole configuration, was not chosen on.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

from analytics.detect.novelty import DEFAULT, NOTICE, Settings, scores
from benchmarks.accuracy.nab_scorer import PROFILES, Floats, Labelled, Weighed, normalised, totals, weigh

THRESHOLDS = np.geomspace(0.002, 1.0, 1200)
SPLITS = 250
LOOKED_AT = 204
"""Configurations tried on these series before the present one was settled on; most differ in one value only."""


def read(folder: Path) -> list[Labelled]:
    """Series with their windows."""
    windows = json.loads((folder / "combined_windows.json").read_text())
    found = []
    for (name,), rows in pl.read_parquet(folder / "series.parquet").group_by("series", maintain_order=True):
        ts = rows["timestamp"].to_list()
        at: dict[str, int] = {}
        for index, text in enumerate(ts):
            at.setdefault(text, index)
        spans = [(at[first[:19]], at[last[:19]]) for first, last in windows[name]]
        found.append(Labelled(str(name), rows["value"].to_numpy(), spans, ts))
    return found


def published(folder: Path, detector: str) -> dict[str, Floats]:
    """Scores that a detector published, by series; empty where the folder has none of it."""
    rows = pl.read_parquet(folder / "detector_scores.parquet").filter(pl.col("detector") == detector)
    return {
        str(name): part["anomaly_score"].cast(pl.Float64).to_numpy()
        for (name,), part in rows.group_by("series", maintain_order=True)
    }


def ours(series: Sequence[Labelled], settings: Settings = DEFAULT) -> dict[str, Floats]:
    """Scores of the product's detector, all series side by side."""
    length = max(len(one.values) for one in series)
    values, hours = np.full((length, len(series)), np.nan), np.zeros((length, len(series)), np.int64)
    for column, one in enumerate(series):
        values[: len(one.values), column] = one.values
        hours[: len(one.values), column] = [int(text[11:13]) for text in one.ts]
    found = scores(values, hours, settings)
    return {one.name: found[: len(one.values), column] for column, one in enumerate(series)}


def best(found: Mapping[str, Floats], weighed: Mapping[str, Weighed]) -> list[float]:
    """Score per profile, each at its best threshold."""
    thresholds = np.unique(np.concatenate(list(found.values())))
    return [float(normalised(found, weighed, profile, thresholds[thresholds > 0]).max()) for profile in PROFILES]


def grid() -> list[Settings]:
    """Neighbours of the configuration, for choosing among them within a half."""
    values = product((300.0, 500.0, 750.0, 1000.0), (0.15, 0.2, 0.25, 0.3), (72, 144), (1.5, 2.0))
    return [replace(DEFAULT, confidence=c, hourly=h, hold=k, raised=r) for c, h, k, r in values]


def curves(found: Mapping[str, Floats], weighed: Mapping[str, Weighed]) -> Floats:
    """Score the standard profile of each series alone before normalisation, by threshold."""
    gain, cost, miss = PROFILES["standard"]
    rows = []
    for name, one in found.items():
        hits, false, missed = totals(one, weighed[name], THRESHOLDS)
        rows.append(gain * hits + cost * false - miss * missed + miss * one_windows(weighed[name]))
    return np.array(rows)


def one_windows(weighed: Weighed) -> int:
    """Windows of a series."""
    return weighed.windows


def held_out(every: Sequence[Floats], windows: Floats, rng: np.random.Generator) -> Floats:
    """Score of one half at the threshold (and configuration) that is best on the other, both ways, for each split."""
    found = []
    for _ in range(SPLITS):
        order = rng.permutation(len(windows))
        for chosen, judged in ((order[::2], order[1::2]), (order[1::2], order[::2])):
            sums = np.array([curve[chosen].sum(axis=0) for curve in every])
            which, at = np.unravel_index(sums.argmax(), sums.shape)
            found.append(100 * every[which][judged, at].sum() / (2 * windows[judged].sum()))
    return np.array(found)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    series = read(folder)
    weighed = {one.name: weigh(one) for one in series}
    windows = np.array([one.windows for one in weighed.values()], float)
    found = ours(series)
    print(f"{len(series)} series, {int(windows.sum())} windows, {sum(len(one.values) for one in series)} points\n")
    print("| detector | threshold | standard | low FP | low FN |\n|---|---|---|---|---|")
    at_one = [float(normalised(found, weighed, profile, np.array([NOTICE]))[0]) for profile in PROFILES]
    rows = {"infractl": ("one, as shipped", at_one), "infractl ": ("best per profile", best(found, weighed))}
    for name in ("ARTime", "numenta", "contextOSE", "randomCutForest", "relativeEntropy", "twitterADVec"):
        if theirs := published(folder, name):
            rows[name] = ("best per profile", best(theirs, weighed))
    for name, (how, three) in rows.items():
        print(f"| {name.strip()} | {how} | " + " | ".join(f"{value:.2f}" for value in three) + " |")
    print(f"\n| standard profile on the other half, {SPLITS} splits | mean | sd |\n|---|---|---|")
    per = [curves(ours(series, settings), weighed) for settings in grid()]
    candidates = {
        "infractl, threshold chosen": [curves(found, weighed)],
        f"infractl, threshold and 1 of {len(per)} configurations chosen": per,
    }
    if theirs := published(folder, "ARTime"):
        candidates["ARTime, threshold chosen"] = [curves(theirs, weighed)]
    for name, every in candidates.items():
        halves = held_out(every, windows, np.random.default_rng(0))
        print(f"| {name} | {halves.mean():.2f} | {halves.std():.1f} |")
    hits = sum(totals(found[one], weighed[one], np.array([NOTICE]))[2][0] for one in found)
    false = sum(int(((found[one] >= NOTICE) & (weighed[one].window == -1)).sum()) for one in found)
    print(f"\nAt the one threshold {int(windows.sum() - hits)} of {int(windows.sum())} windows are found, with {false}")
    print(f"points outside. {LOOKED_AT} configurations were tried on these series beforehand.")


if __name__ == "__main__":
    main()
