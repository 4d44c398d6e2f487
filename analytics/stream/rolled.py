"""`stream` from rollups, for windows with more requests than are worth reading: gaps and stalls over weeks."""

from dataclasses import asdict
from typing import Any

import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.result import Result, Status
from analytics.stream import FRAMES, StreamParams, rollups
from analytics.stream.groups import FOR_P99, overall
from store.window import Window, format_duration, parse_duration

NOTE = (
    "from rollups of {size}: quantiles of gaps are within 1 %; gaps are those of all events, with repeated ones and "
    "those of streams that were given up; jitter is that of all gaps about their common mean (ji_overall)"
)
NOT_HERE = (
    "rollups hold no single stream: no jitter of requests, worst streams, goodput, tokens per event or chunk advice, "
    "no limits of gap quantiles, no alerts; a shorter window is read row by row"
)


def answer(inputs: Inputs, params: StreamParams, window: Window) -> Result:
    """Sum the rollups of the window."""
    by = list(params.by)
    given = {name: inputs.get(name) for name in ("sums", "gaps", "whole")}
    made = {name: frames.label_columns(frame, by) for name, frame in given.items() if frame is not None}
    requests = int(made["sums"]["requests"].sum()) if made else 0
    gaps = int(made["sums"]["gap_n"].sum()) if made else 0
    if not gaps:
        return _nothing(requests, params, window)
    step = rollups(params, window)["sums"].step_s or 0
    size = format_duration(parse_duration(f"{step}s"))
    groups = [
        labels | _group(part, _measures(made["whole"], labels)) for labels, part in frames.groups(made["sums"], by)
    ]
    rows = {
        "groups": frames.build(by, FRAMES["groups"], [row for row in groups if row["gaps"]]),
        "timeline": frames.build(by, FRAMES["timeline"], _timeline(made["sums"], made["gaps"], by)),
    }
    return Result(
        "stream",
        Status.OK,
        window,
        asdict(params),
        frames.empty(by, FRAMES) | rows,
        notes=(NOTE.format(size=size), NOT_HERE),
    )


def _nothing(requests: int, params: StreamParams, window: Window) -> Result:
    note = f"no model requests in {window}"
    if requests:
        note = f"{requests} requests, none with arrivals of tokens: jitter needs the times when tokens came"
    status = Status.REFUSED if requests else Status.EMPTY
    return Result("stream", status, window, asdict(params), frames.empty(params.by, FRAMES), notes=(note,))


def _measures(whole: pl.DataFrame, labels: dict[str, str]) -> dict[str, dict[str, Any]]:
    same = (pl.col(name) == value for name, value in labels.items())
    return {row["measure"]: row for row in whole.filter(*same).to_dicts()}


def _group(sums: pl.DataFrame, measures: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a row of `groups`: what sums and histograms say; the rest stays null."""
    blocks = sums.group_by("bucket", maintain_order=True).agg(pl.col("gap_n", "gap_sum_s", "gap_sum_squares").sum())
    gap, n = measures.get("gap_s", {}), int(sums["gap_n"].sum())
    return {
        "gaps": n,
        **overall(blocks.filter(pl.col("gap_n") > 0)),
        "itl_p50_s": gap.get("p50"),
        "itl_p99_s": gap.get("p99") if n >= FOR_P99 else None,
        "tpot_s": measures.get("tpot_s", {}).get("p50"),
        "stalls": int(sums["stalls"].sum()),
        "comparable": "not known: rollups do not count tokens per event",
    }


def _timeline(sums: pl.DataFrame, gaps: pl.DataFrame, by: list[str]) -> list[dict[str, Any]]:
    keys = [*by, "bucket"]
    counted = sums.filter(pl.col("gap_n") > 0).group_by(keys).agg(
        pl.col("gap_n").sum().alias("gaps"), pl.col("stalls").sum()
    )  # fmt: skip
    named = gaps.select(*keys, pl.col("p50").alias("gap_p50_s"), pl.col("p99").alias("gap_p99_s"))
    return counted.join(named, on=keys, how="left").sort(keys).rename({"bucket": "ts"}).to_dicts()
