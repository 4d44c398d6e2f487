"""Findings: bursts of a code and outages, with what they are called, since when, against what, and example traces."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from analytics.errors import ERROR_BURST, OUTAGE
from analytics.errors.meanings import NOT_FAILED
from analytics.errors.outcomes import Outcomes
from analytics.result import Finding, Severity
from store.window import format_duration, format_time

EXAMPLES = 5


def bursts(
    rows: pl.DataFrame, by: list[str], found: Outcomes, lasting: Mapping[tuple[str, ...], float], end: datetime
) -> list[Finding]:
    """Return a finding per label set, code and episode; those in `lasting` (by labels and code) hold at the end."""
    merged = rows.group_by([*by, "code", "meaning", "start", "end"], maintain_order=True).agg(
        pl.col("errors", "requests", "expected").sum(), pl.col("cloud", "region").unique().sort()
    )
    made, held = [], set()
    for row in merged.sort("start", descending=True).iter_rows(named=True):
        name = (*(row[label] for label in by), row["code"])
        now = name in lasting and name not in held and row["end"] >= end
        held |= {name} if now else set()
        made.append(_burst(row, by, found, lasting.get(name) if now else None))
    return made


def _burst(row: Mapping[str, Any], by: list[str], found: Outcomes, value: float | None) -> Finding:
    who = ", ".join(row[label] or "(none)" for label in by) or "all requests"
    lasting = value is not None
    first, last = (format_time(row[name]) for name in ("start", "end"))
    when = f"since {first}" if lasting else f"from {first} to {last}"
    where = ", ".join(filter(None, (*row["cloud"], *row["region"])))
    done = "given up by their clients" if row["code"] in NOT_FAILED else f"failed with {row['code']} ({row['meaning']})"
    place = f" at {where}" if where else ""
    return Finding(
        trigger=ERROR_BURST.name,
        severity=Severity.INFO if row["code"] in NOT_FAILED and not lasting else ERROR_BURST.severity,
        labels={label: row[label] for label in by} | {"code": row["code"]},
        value=value if lasting else row["errors"] / max(row["expected"], 0.5),
        expected=(0.0, ERROR_BURST.bound),
        since=row["start"].replace(tzinfo=UTC),
        until=None if lasting else row["end"].replace(tzinfo=UTC),
        summary=f"{row['errors']} of {row['requests']} requests to {who}{place} {done} {when}; "
        f"{row['expected']:.2g} were to be expected",
        evidence={"trace_ids": _traces(found, row, by), "expected": row["expected"]},
    )


def _traces(found: Outcomes, row: Mapping[str, Any], by: list[str]) -> list[str]:
    if found.rolled:
        return []
    same = [pl.col(label) == row[label] for label in by]
    inside = found.requests.filter(
        pl.col("code") == row["code"], pl.col("ts") >= row["start"], pl.col("ts") < row["end"], *same
    )
    traces: list[str] = inside["trace_id"].drop_nulls().head(EXAMPLES).to_list()
    return traces


def outages(rows: list[dict[str, Any]], by: list[str], values: Mapping[tuple[str, ...], float]) -> list[Finding]:
    """Return a finding per outage; a lasting one where its value is beyond the bound."""
    made = []
    for row in rows:
        name = tuple(row[label] for label in by)
        value = values.get(name)
        lasting = row["end"] is None and OUTAGE.holds(value)
        who = ", ".join(row[label] or "(none)" for label in by) or "all requests"
        start, end = row["start"], row["end"]
        first = format_time(start.replace(microsecond=0))
        when = f"since {first}" if end is None else f"from {first} to {format_time(end.replace(microsecond=0))}"
        what = f"{row['failed']} failed meanwhile"
        lasted_s = (end - start).total_seconds() if end else value
        made.append(
            Finding(
                trigger=OUTAGE.name,
                severity=OUTAGE.severity,
                labels={label: row[label] for label in by},
                value=value if lasting else lasted_s,
                expected=(0.0, OUTAGE.bound),
                since=start.replace(tzinfo=UTC),
                until=None if lasting else (end or start).replace(tzinfo=UTC),
                summary=f"no request to {who} went well {when}; {what}",
                evidence={"failed": row["failed"], "lasted": _spelt(lasted_s)},
            )
        )
    return made


def _spelt(seconds: float | None) -> str | None:
    """Return seconds as 1m50s; None as it is."""
    return None if seconds is None else format_duration(timedelta(seconds=round(seconds)))
