"""`analyze anomalies` on labelled series of a cloud: `python benchmarks/accuracy/cloud_monitoring.py F`.

F holds the CSV files of microsoft/cloud-monitoring-dataset (MIT; TimeStamp, Value, Label; not shipped here). The same
configuration as everywhere. An incident is a run of labelled points (three unlabelled ones in between do not end it);
it is found if an episode was told within it, or up to three points before or after. Nothing was chosen on these series.
"""

import argparse
import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analytics.detect.episodes import Episode, find

NEAR = 3


@dataclass
class Counts:
    """Sums over the series of a group."""

    series: int = 0
    weeks: float = 0.0
    incidents: int = 0
    found: int = 0
    episodes: int = 0
    right: int = 0
    calm: int = 0
    calm_weeks: float = 0.0
    delays: tuple[float, ...] = ()


def read(path: Path) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Unix seconds, values and labels of a file."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        rows = list(csv.DictReader(file))
    when = [datetime.fromisoformat(row["TimeStamp"].replace("Z", "")).replace(tzinfo=UTC) for row in rows]
    seconds = np.array([int(at.timestamp()) for at in when])
    values = np.array([float(row["Value"] or "nan") for row in rows])
    return seconds, values, np.array([row["Label"] == "1" for row in rows])


def incidents(labels: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last point of each run of labels."""
    at = np.flatnonzero(labels)
    if not at.size:
        return []
    ends = np.flatnonzero(np.diff(at) > NEAR + 1)
    return list(zip(at[np.r_[0, ends + 1]].tolist(), at[np.r_[ends, at.size - 1]].tolist(), strict=True))


def count(into: Counts, episodes: list[Episode], true: list[tuple[int, int]], seconds: NDArray[np.int64]) -> None:
    """Add a series to its group."""
    weeks = (seconds[-1] - seconds[0]) / 604800
    into.series += 1
    into.weeks += weeks
    into.incidents += len(true)
    into.episodes += len(episodes)
    for first, last in true:
        told = [e.told for e in episodes if first - NEAR <= e.told <= last + NEAR]
        into.found += bool(told)
        if told:
            into.delays += (max(0.0, float(seconds[min(told)] - seconds[first])) / 60,)
    into.right += sum(any(first - NEAR <= e.told <= last + NEAR for first, last in true) for e in episodes)
    if not true:
        into.calm += len(episodes)
        into.calm_weeks += weeks


def main() -> None:
    """Print a row per group of series, for all episodes and for those that page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    groups: dict[tuple[str, str], Counts] = defaultdict(Counts)
    for path in sorted(folder.glob("*__*.csv*")):
        if path.name.endswith(".json"):
            continue
        seconds, values, labels = read(path)
        episodes = find(values[:, None], seconds)
        true = incidents(labels)
        for name in (path.name.split("__")[0], "all"):
            count(groups[name, "listed"], episodes, true, seconds)
            count(groups[name, "paging"], [e for e in episodes if e.page], true, seconds)
    print(
        "| series | level | n | incidents | recall | precision | median delay | episodes a week | calm series, a week |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for (name, level), c in groups.items():
        recall = f"{c.found / c.incidents:.2f}" if c.incidents else ""
        precision = f"{c.right / c.episodes:.2f}" if c.episodes else ""
        delay = f"{np.median(c.delays):.0f} min" if c.delays else ""
        calm = f"{c.calm / c.calm_weeks:.2f}" if c.calm_weeks else ""
        cells = (name, level, c.series, c.incidents, recall, precision, delay, f"{c.episodes / c.weeks:.2f}", calm)
        print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main()
