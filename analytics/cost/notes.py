"""What the answer of `cost` says beside its numbers: how it judged, what it left out, what may still change."""

from collections.abc import Sequence
from datetime import UTC, datetime

from analytics.cost import CostParams
from analytics.cost.grid import Lines
from analytics.cost.judge import Verdict, name_of
from analytics.cost.told import Told
from store.window import format_time


def of(
    lines: Lines,
    verdicts: Sequence[Verdict],
    told: Sequence[Told],
    params: CostParams,
) -> list[str]:
    """Return the notes, those about what was judged first."""
    notes = [note for verdict in verdicts for note in verdict.notes]
    notes += [_method(params), *_newest(verdicts)]
    notes += [
        f"{name_of(one.verdict.grid, one.drift.series)}: the {one.drift.kind} of "
        f"{format_time(_aware(one.row['since']))} begins in the planned change {one.row['planned']}: no alert"
        for one in told
        if one.planned
    ]
    counts = {
        "groups are billed for months: in totals, not judged": (lines.groups["basis"] == "billed monthly").sum(),
        "sums of lines state no cost (usage reports): not counted": lines.frame["cost"].null_count(),
    }
    notes += [f"{count:,} {what}" for what, count in counts.items() if count]
    notes += [
        f"{verdict.grid.left_out:,} groups of the least cost are not judged: too many hours and groups"
        for verdict in verdicts
        if verdict.grid.left_out
    ]
    currencies = lines.groups["currency"].unique().drop_nulls().sort().to_list()
    if len(currencies) > 1:
        notes.append(f"amounts of {', '.join(currencies)} are never added up or converted")
    if (lines.groups["basis"] == "computed").any():
        notes.append(
            "computed: tokens at list prices, for services that no bill names; without batch discounts, tiers for long "
            "prompts and failed requests"
        )
    if not verdicts:
        notes.append("no usage lines with a cost by the hour or day: nothing is judged")
    return notes


def _method(params: CostParams) -> str:
    if params.method == "rolling":
        hours = "count as 0" if params.empty == "zero" else "are left out"
        return (
            f"rolling: all lines of an hour; above mean + {params.k:g} sample standard deviations of the 7 days before "
            f"(24 hours at least); hours without a line {hours}; an hour alerts once, so a silence of 15 minutes "
            "changes nothing; what is billed for a day or month counts in its first hour"
        )
    empty = {"auto": "cost 0 where the bill has other lines of that hour", "zero": "cost 0", "skip": "are left out"}
    return (
        f"seasonal: usage against the same hour of the week, 4 weeks (fewer: see compared_with); hours without a line "
        f"{empty[params.empty]}; drifts of less than {params.least_money:g} or {params.least_percent:g} % are left "
        "out; one drift is one finding"
    )


def _newest(verdicts: Sequence[Verdict]) -> list[str]:
    notes = []
    for verdict in verdicts:
        made = verdict.grid
        if made.until and made.until < len(made.starts):
            count = len(made.starts) - made.until
            newest = f"{count} {made.grain}s" if count > 1 else made.grain
            notes.append(
                f"the newest {newest} (from {format_time(_aware(made.end(made.until - 1)))}) has fewer "
                "lines than usual or is not over: not judged yet"
            )
    if verdicts:
        notes.append("late and restated lines are in the next run, and may change what this one says")
    return notes


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC)
