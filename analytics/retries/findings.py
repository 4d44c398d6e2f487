"""Findings of a group of attempts."""

from datetime import UTC, datetime
from typing import Any

import polars as pl

from analytics.result import Finding, Trigger
from analytics.retries import EARLY, STORM, TWICE
from analytics.retries.sequences import Group
from analytics.retries.storms import Storm
from analytics.retries.summary import early, early_low
from store.window import format_time

EXAMPLES = 5


def of_storm(group: Group, storm: Storm) -> Finding:
    """Make the finding of a storm; one that is over has an end."""
    since, until = (at.replace(microsecond=0) for at in (storm.since, storm.until))
    when = f"since {_time(since)}" if storm.lasting else f"from {_time(since)} to {_time(until)}"
    code = f" after {storm.error_code}" if storm.error_code else ""
    inside = group.attempts.filter(pl.col("ts") >= storm.since, pl.col("ts") < storm.until, pl.col("failed"))
    return Finding(
        trigger=STORM.name,
        severity=STORM.severity,
        labels=group.labels,
        value=storm.low,
        expected=(1.0, STORM.bound),
        since=_aware(storm.since),
        until=None if storm.lasting else _aware(storm.until),
        summary=f"{storm.retries} of {storm.attempts} requests to {_who(group)} were the same ones again{code}, {when}",
        evidence={"trace_ids": inside["trace_id"].drop_nulls().head(EXAMPLES).to_list()},
    )


def of_duplicates(group: Group, found: pl.DataFrame) -> list[Finding]:
    """Make the finding of requests that succeeded more than once, where there are any."""
    if not found.height:
        return []
    since: datetime = found["first_ts"].min()  # type: ignore[assignment]
    extra = found["extra_output_tokens"].sum()
    traces = [trace for row in found["trace_ids"].head(EXAMPLES) for trace in row][: 2 * EXAMPLES]
    summary = (
        f"{found.height} requests to {_who(group)} succeeded more than once since {_time(since)}: "
        f"a client sent again what had worked, {extra} output tokens generated twice"
    )
    return [_finding(group, TWICE, float(found.height), since, summary, {"trace_ids": traces})]


def of_early(group: Group, backoff: list[dict[str, Any]]) -> list[Finding]:
    """Make the finding of clients that give up before the error is over, where the alert holds."""
    value = early_low(group.sequences)
    if not EARLY.holds(value):
        return []
    gone = early(group.sequences)
    since = datetime.fromtimestamp(float(gone["start"].to_numpy().min()) / 1e6, UTC)
    retried = group.sequences.filter(pl.col("attempts") > 1, pl.col("failed_at").is_not_null()).height
    worst = gone["error_code"].drop_nulls().mode().sort()[0] if gone["error_code"].drop_nulls().len() else None
    row = next((row for row in backoff if row["error_code"] == worst), {})
    summary = (
        f"{gone.height / retried:.0%} of {retried} retried requests to {_who(group)} gave up before {worst or 'the '}"
        f"{'' if worst else 'error'} was over{_waits(row)}; since {_time(since.replace(tzinfo=None))}"
    )
    examples = group.attempts.filter(pl.col("sequence").is_in(gone["sequence"].head(EXAMPLES).to_list()))
    evidence = {"trace_ids": examples["trace_id"].unique(maintain_order=True).head(EXAMPLES).to_list(), "backoff": row}
    return [_finding(group, EARLY, float(value or 0.0), since, summary, evidence)]


def _waits(row: dict[str, Any]) -> str:
    if row.get("recovery_p50_s") is None:
        return ""
    tries = f"after {row['gives_up_after']:.0f} attempts" if row.get("gives_up_after") else ""
    cap = f", waits of at most {row['cap_s']:.3g} s on average" if row.get("cap_s") else ""
    return f": {tries}{cap}, while the error lasts {row['recovery_p50_s']:.3g} s (median)"


def _finding(
    group: Group, trigger: Trigger, value: float, since: datetime, summary: str, evidence: dict[str, Any]
) -> Finding:
    kept = {k: v for k, v in evidence.items() if v}
    if "backoff" in kept:
        kept["backoff"] = {k: v for k, v in kept["backoff"].items() if k not in group.labels and v is not None}
    return Finding(
        trigger=trigger.name,
        severity=trigger.severity,
        labels=group.labels,
        value=value,
        expected=(0.0, trigger.bound),
        since=_aware(since),
        summary=summary,
        evidence=kept,
    )


def _who(group: Group) -> str:
    return ", ".join(value or "(none)" for value in group.labels.values()) or "all services"


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC)


def _time(at: datetime) -> str:
    return format_time(at.replace(microsecond=0))
