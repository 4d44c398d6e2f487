"""Exclusions as conditions on rows: which steps, and which series, they leave out."""

import polars as pl

from analytics.anomalies.exclusions import DAY_MINUTES, Exclusion


def at_times(rule: Exclusion, step_s: int, zone: str) -> pl.Expr:
    """Whether a step (column s: Unix seconds of its start) lies in the rule's times, in part or whole."""
    out = pl.lit(value=True)
    s = pl.col("s")
    if rule.span is not None:
        out = out & (s + step_s > rule.span.start.timestamp()) & (s < rule.span.end.timestamp())
    if rule.until is not None:
        out = out & (s < rule.until.timestamp())
    local = pl.from_epoch(s).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    weekday, minute = local.dt.weekday().cast(pl.Int64) - 1, local.dt.hour().cast(pl.Int64) * 60 + local.dt.minute()
    days = sorted(rule.days) or list(range(7))
    if rule.hours is None:
        return out & weekday.is_in(days) if rule.days else out
    start, end = rule.hours
    early = start - max(step_s // 60 - 1, 0)  # a step that begins before the hours may reach into them
    if end > start:
        return out & weekday.is_in(days) & (minute >= early) & (minute < end)
    after = [(day + 1) % 7 for day in days]  # past midnight: the hours of the evening before
    return out & ((weekday.is_in(days) & (minute >= early) & (minute < DAY_MINUTES)) | (
        weekday.is_in(after) & (minute < end)
    ))  # fmt: skip


def of_series(rule: Exclusion) -> pl.Expr:
    """Whether a row (name, labels as JSON) is of a series that the rule names."""
    out = pl.lit(value=True)
    if rule.name:
        out = out & (pl.col("name") == rule.name)
    for key, value in rule.labels:
        out = out & pl.col("labels").str.json_path_match(f"$['{key}']").eq_missing(pl.lit(value))
    return out
