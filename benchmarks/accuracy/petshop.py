"""Root causes in the PetShop benchmark: `python benchmarks/accuracy/petshop.py FOLDER`, FOLDER with its dataset.

68 faults injected into a shop of 41 services (Hardt et al. 2024, CC-BY-4.0); for each, PetSite is slow or fails, and
the question is which service is the root. Prints top-1 and top-3 by group for our ranking, for parts of it, and for
the traversal the benchmark's authors publish, computed here on the same issues. A threshold is chosen on all issues
but the one it is judged on.
"""

import argparse
import csv
import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import polars as pl

from analytics.root_cause import Times, causes
from store.window import Window

STEP = timedelta(minutes=5)
THRESHOLDS = (2.0, 3.0, 5.0, 8.0, 12.0)
Ranking = Callable[["Issue"], list[str]]


@dataclass(frozen=True)
class Issue:
    """A fault: long frames (ts, entity, name, value) of calm time and incident, the calls, and what is known."""

    group: str
    calls: pl.DataFrame
    calm: pl.DataFrame
    incident: pl.DataFrame
    target: str
    metric: str
    root: str
    at: datetime


def read_metrics(path: Path) -> pl.DataFrame:
    """Long rows of a table whose three header rows are service, metric and statistic."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        rows = list(csv.reader(file))
    heads = [(service, f"{metric} {how}") for service, metric, how in zip(*(row[1:] for row in rows[:3]), strict=True)]
    at = [
        (datetime.fromtimestamp(float(row[0]), UTC).replace(tzinfo=None), row[1:]) for row in rows[3:] if any(row[1:])
    ]
    found = [
        (ts, entity, name, float(text))
        for ts, row in at
        for (entity, name), text in zip(heads, row, strict=True)
        if text
    ]
    types = {"ts": pl.Datetime("us"), "entity": pl.String(), "name": pl.String(), "value": pl.Float64()}
    return pl.DataFrame(found, types, orient="row")


def issues(folder: Path) -> Iterable[Issue]:
    """Read all faults below a folder of traffic patterns."""
    for graph in sorted(folder.glob("*_traffic*/graph.csv")):
        with graph.open() as file:
            rows = list(csv.reader(file))
        edges = [
            (row[0], to) for row in rows[1:] for to, there in zip(rows[0][1:], row[1:], strict=True) if float(there)
        ]
        calls = pl.DataFrame(edges, ["caller", "callee"], orient="row")
        calm = read_metrics(next(graph.parent.glob("noissue/metrics.csv*")))
        for path in sorted(graph.parent.glob("t*/issue_*/target.json")):
            said = json.loads(path.read_text())
            target = said["target"]
            yield Issue(
                group=f"{graph.parent.name} {target['metric']}",
                calls=calls,
                calm=calm,
                incident=read_metrics(path.with_name("metrics.csv")),
                target=target["node"],
                metric=f"{target['metric']} {target['agg']}",
                root=said["root_cause"]["node"],
                at=datetime.fromtimestamp(target["timestamp"], UTC),
            )


def windows(issue: Issue, late: int) -> tuple[Window, Window, Window]:
    """Incident (from the row its time lies in, or `late` rows later), calm days, and the rows in between."""
    first, last = (issue.incident["ts"].sort().to_list()[i].replace(tzinfo=UTC) for i in (0, -1))
    calm = [issue.calm["ts"].sort().to_list()[i].replace(tzinfo=UTC) for i in (0, -1)]
    start = issue.at + (late - 1) * STEP
    return Window(start, last + STEP), Window(calm[0], calm[1] + STEP), Window(first, start)


def ours(counts: bool = True, eve: bool = True, late: int = 0) -> Ranking:
    """Rank by what each service added; `counts` and `eve` leave parts out, `late` starts so many rows later."""

    def rank(issue: Issue) -> list[str]:
        both = pl.concat([issue.calm, issue.incident])
        asked = both.filter(pl.col("name") == issue.metric).select("ts", "entity", "value")
        counted = both.filter(pl.col("name") == "requests Sum").select("ts", "entity", calls="value")
        rows = asked.join(counted, on=["ts", "entity"], how="left").with_columns(pl.col("calls").fill_null(0.0))
        rows = rows if counts else rows.with_columns(calls=pl.lit(1.0))
        incident, before, between = windows(issue, late)
        worse: Literal["up", "down"] = "up" if issue.metric.startswith("latency") else "down"
        times = Times(incident, before, between if eve else None)
        return [cause.entity for cause in causes(rows, issue.calls, issue.target, times, worse)]

    return rank


def traversal(threshold: float) -> Ranking:
    """Rank as the published baseline: MAD scores of the third row, or the next in which the target is out of line."""

    def rank(issue: Issue) -> list[str]:
        rows = [scored for _, scored in sorted(_mad_scores(issue).items())][2:]
        scores = next((row for row in rows if row.get(issue.target, 0.0) > threshold), {})
        out = {entity for entity, score in scores.items() if score > threshold}
        callees: dict[str, list[str]] = {}
        for caller, callee in issue.calls.iter_rows():
            callees.setdefault(caller, []).append(callee)
        best: dict[str, float] = {}
        paths: list[tuple[str, ...]] = [(issue.target,)] if issue.target in out else []
        while paths:
            path = paths.pop()
            onward = [callee for callee in callees.get(path[-1], ()) if callee in out and callee not in path]
            paths += [(*path, callee) for callee in onward]
            if not onward:
                best[path[-1]] = max(best.get(path[-1], 0.0), sum(scores[entity] for entity in path))
        return sorted(best, key=lambda entity: -best[entity])

    return rank


def _mad_scores(issue: Issue) -> dict[Any, dict[str, float]]:
    calm = issue.calm.filter(pl.col("name") == issue.metric)
    usual = calm.group_by("entity").agg(pl.col("value").median().alias("middle"), pl.len().alias("n"))
    away = calm.join(usual, on="entity").with_columns((pl.col("value") - pl.col("middle")).abs().alias("away"))
    mad = away.group_by("entity").agg((1.4826 * pl.col("away").median()).alias("mad"))
    rows = issue.incident.filter(pl.col("name") == issue.metric).join(usual.filter(pl.col("n") >= 10), on="entity")
    rows = rows.join(mad, on="entity").with_columns((pl.col("value") - pl.col("middle")).abs().alias("away"))
    found: dict[Any, dict[str, float]] = {ts: {} for ts in issue.incident["ts"].unique()}
    for ts, entity, away_by, spread in rows.select("ts", "entity", "away", "mad").iter_rows():
        found[ts][entity] = away_by / spread if spread > 0 else (1e9 if away_by > 0 else 0.0)
    return found


def places(every: list[Issue], ranking: Ranking) -> list[int]:
    """Place of the true root in each ranking; 99 where it is not listed."""
    ranked = [ranking(issue) for issue in every]
    return [names.index(i.root) + 1 if i.root in names else 99 for i, names in zip(every, ranked, strict=True)]


def chosen_elsewhere(every: list[Issue]) -> list[int]:
    """Places of the traversal with the threshold that is best (top-1, then top-3) on all other issues."""
    by_threshold = [places(every, traversal(threshold)) for threshold in THRESHOLDS]

    def worth(found: list[int], left_out: int) -> tuple[int, int]:
        rest = [place for i, place in enumerate(found) if i != left_out]
        return sum(place <= 1 for place in rest), sum(place <= 3 for place in rest)

    return [max(by_threshold, key=lambda found: worth(found, i))[i] for i in range(len(every))]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="dataset/ of a checkout of petshop-root-cause-analysis")
    every = list(issues(parser.parse_args().folder))
    groups = sorted({issue.group for issue in every})
    rows = {
        "what each service added (ours)": places(every, ours()),
        "ours, told of the incident 5 min late": places(every, ours(late=1)),
        "ours, told of the incident 10 min late": places(every, ours(late=2)),
        "ours, without the eve of the incident": places(every, ours(eve=False)),
        "ours, without counts of calls": places(every, ours(counts=False)),
        "traversal, MAD score > 5 (published)": places(every, traversal(5.0)),
        "traversal, threshold from the other issues": chosen_elsewhere(every),
    }
    sizes = [sum(issue.group == group for issue in every) for group in groups]
    print(
        "| ranking | "
        + " | ".join(f"{g} ({n})" for g, n in zip(groups, sizes, strict=True))
        + f" | all ({len(every)}) |"
    )
    print("|---|" + "---|" * (len(groups) + 1))
    for name, found in rows.items():
        parts = [[p for p, issue in zip(found, every, strict=True) if issue.group == group] for group in groups]
        cells = [
            f"{sum(p <= 1 for p in part) / len(part):.2f} / {sum(p <= 3 for p in part) / len(part):.2f}"
            for part in [*parts, found]
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
