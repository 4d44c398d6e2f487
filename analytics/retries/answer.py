"""From frames to the answer of `analyze retries`: groups, frames, signals, findings and notes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import polars as pl

from analytics import buckets, frames
from analytics.analysis import Inputs
from analytics.result import Finding, Result, Status
from analytics.retries import (
    AMPLIFICATION,
    DIVERGENT,
    DUPLICATES,
    EARLY_LOW,
    FRAMES,
    STORM_LOW,
    RetriesParams,
    divergence,
    duplicates,
    findings,
)
from analytics.retries.attempts import attempts_of
from analytics.retries.grouping import LEAST_SURE, MOST_OF_ONE_ID, grouped
from analytics.retries.sequences import Group, sequences_of
from analytics.retries.storms import row as storm_row
from analytics.retries.storms import storms, timeline
from analytics.retries.summary import backoff_rows, early_low, summary_rows
from store.window import Window, format_duration

MEDIAN_ATTEMPTS = 20
NOT_ALL = "only {share:.1%} of the traces could be read, and retries in the others are missed: choose a shorter window"


@dataclass(frozen=True, slots=True)
class Found:
    """What one group says."""

    group: Group
    rows: dict[str, list[dict[str, Any]]]
    doubles: pl.DataFrame
    latest_low: float | None
    findings: list[Finding]


def answer(inputs: Inputs, params: RetriesParams, window: Window) -> Result:
    """Answer over all groups. Status: empty without attempts and calls; refused where only some traces were read."""
    by = list(params.by)
    share = _share_read(inputs)
    attempts = attempts_of(inputs["attempts"], inputs["resends"])
    divergent = divergence.rows(inputs["calls"], by, window)
    if share < 1 or not (attempts.height or divergent):
        status = Status.REFUSED if share < 1 else Status.EMPTY
        words = NOT_ALL.format(share=share) if share < 1 else f"no model requests and no calls sent again in {window}"
        return Result("retries", status, window, asdict(params), frames.empty(by, FRAMES), notes=(words,))
    named, chance = grouped(attempts, [n for n in params.content if n != "none"], params.within_s)
    labelled = frames.label_columns(named, by)
    size = _bucket(labelled, params, window)
    found = [_examine(labels, part, params, window, size) for labels, part in frames.groups(labelled, by)]
    rows = {name: [row for one in found for row in one.rows.get(name, ())] for name in FRAMES}
    rows["divergent"] = divergent
    return Result(
        analysis="retries",
        status=Status.OK,
        window=window,
        params=asdict(params),
        frames={name: frames.build(by, FRAMES[name], rows[name]) for name in FRAMES},
        samples=_samples(found, divergent, by),
        findings=tuple(finding for one in found for finding in one.findings),
        notes=_notes(found, labelled, chance, size),
    )


def _share_read(inputs: Inputs) -> float:
    shares = [frame["share_read"].min() for frame in (inputs["attempts"], inputs["resends"]) if frame.height]
    return min([float(s) for s in shares if isinstance(s, float)], default=1.0)


def _bucket(attempts: pl.DataFrame, params: RetriesParams, window: Window) -> timedelta:
    auto = params.bucket == "auto"
    return buckets.choose(attempts, window, MEDIAN_ATTEMPTS) if auto else buckets.named(params.bucket, window)


def _examine(
    labels: dict[str, str], part: pl.DataFrame, params: RetriesParams, window: Window, size: timedelta
) -> Found:
    group = Group(labels, part, sequences_of(part))
    table = timeline(part, window, size)
    episodes = storms(table, part, size)
    backoff = backoff_rows(group, params.resamples, params.seed)
    doubles = duplicates.twice(group)
    latest = table.filter(pl.col("bucket") == 0)["amplification_low"]
    return Found(
        group,
        {
            "summary": summary_rows(group),
            "backoff": backoff,
            "duplicates": duplicates.rows(group, doubles),
            "timeline": [labels | row for row in table.drop("bucket", "_together").iter_rows(named=True)],
            "episodes": [labels | storm_row(storm) for storm in episodes],
        },
        doubles,
        latest[0] if latest.len() else None,
        [
            *(findings.of_storm(group, storm) for storm in episodes),
            *findings.of_duplicates(group, doubles),
            *findings.of_early(group, backoff),
        ],
    )


def _samples(found: Sequence[Found], divergent: list[dict[str, Any]], by: list[str]) -> dict[str, pl.DataFrame]:
    calls: dict[tuple[str, ...], int] = {}
    for row in divergent:
        key = tuple(str(row[name]) for name in by)
        calls[key] = calls.get(key, 0) + row["calls"]
    values = {
        AMPLIFICATION: [one.group.labels | {"value": one.rows["summary"][0]["amplification"]} for one in found],
        STORM_LOW: [one.group.labels | {"value": one.latest_low} for one in found],
        DUPLICATES: [one.group.labels | {"value": float(one.doubles.height)} for one in found],
        EARLY_LOW: [one.group.labels | {"value": early_low(one.group.sequences)} for one in found],
        DIVERGENT: [dict(zip(by, key, strict=True)) | {"value": float(n)} for key, n in calls.items()],
    }
    return {signal.name: frames.samples(by, rows) for signal, rows in values.items()}


def _notes(found: Sequence[Found], attempts: pl.DataFrame, chance: int, size: timedelta) -> tuple[str, ...]:
    made = [f"buckets of {format_duration(size)}"] if attempts.height else ["no model requests: calls only"]
    for one in found:
        who = ", ".join(value or "(none)" for value in one.group.labels.values()) or "all"
        row = one.rows["summary"][0]
        bad = int(one.group.attempts["failed"].sum())
        if not row["retried"]:
            made.append(f"{who}: no request was tried again; {bad} of {row['attempts']} failed")
        reused = duplicates.reused_ids(one.group)
        made += [f"{who}: {reused} ids came with different prompts: not duplicates"] if reused else []
    if chance:
        made.append(
            f"{chance} requests like a failed one may be so by chance (under {LEAST_SURE:.0%} sure): not joined"
        )
    lost = attempts.filter("failed")
    blind = lost.filter(pl.col("request_id").is_null() & pl.col("input_tokens").is_null()).height
    if blind:
        made.append(
            f"{blind} of {lost.height} failed attempts state neither an id nor prompt tokens: their retries can only "
            "be told by trace, link or resend count"
        )
    ids = attempts.drop_nulls("request_id").group_by("service", "kind", "request_id").len()
    crowded = ids.filter(pl.col("len") > MOST_OF_ONE_ID).height
    made += [f"{crowded} ids have more than {MOST_OF_ONE_ID} attempts each and were not used"] if crowded else []
    return tuple(made)
