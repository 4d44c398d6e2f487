"""Put the answer of `cost` together: lines to grids, grids to drifts, drifts to rows, findings and samples."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.cost import FRAMES, ITEMS, CostParams, bands, budgets, changes, computed, explained, forecast, notes
from analytics.cost.changes import Change
from analytics.cost.episodes import LEVEL, Drift
from analytics.cost.grid import GRAINS, USAGE, Grid, Lines, grid, grouped
from analytics.cost.judge import Verdict, judge
from analytics.cost.told import Told, findings, samples
from analytics.cost.totals import by_day, totals
from analytics.result import Result, Status
from store.window import Window

MOST_FORECASTS = 20
"""Groups that are forecast: those of the largest cost."""
WEEK = timedelta(days=7)
_BILLED = {"day": "billed daily", "month": "billed monthly"}
_SCALE = Decimal("0.000001")


def answer(inputs: Inputs, params: CostParams, window: Window) -> Result:
    """Run the whole analysis on what was read. Status: empty without lines."""
    labels = list(params.labels)
    planned = [changes.parse(text, params.zone) for text in params.changes]
    billed = _lines(inputs["lines"], labels)
    beside = _computed(inputs, labels, billed)
    if not billed.height and not beside.height:
        return _nothing(inputs, params, window)
    every = pl.concat([billed, beside], how="diagonal_relaxed") if beside.height else billed
    lines = grouped(every, [*labels, "currency", "basis"])
    verdicts = [judge(made, params, planned) for made in _grids(lines, params, window)]
    now = _known_until(verdicts, window)
    told = _told(verdicts, params, planned, labels)
    watched = budgets.watched(inputs, params.budgets, window, now, params.zone, planned)
    rows, shown = _frames(lines, told, params, now, planned)
    made = {name: frames.build(labels, FRAMES[name], found) for name, found in rows.items()}
    made["budgets"] = frames.build([], FRAMES["budgets"], watched.rows)
    shown += [explained.NOTE] if rows["explained"] else []
    made["hours"], bounded = bands.hours(verdicts, labels)
    said = [*notes.of(lines, verdicts, told, params), *shown, bounded, *watched.notes]
    return Result(
        analysis="cost",
        status=Status.OK,
        window=window,
        params=asdict(params),
        frames={name: made[name] for name in FRAMES},
        samples=samples(verdicts, told, labels) | watched.samples,
        findings=(*findings(verdicts, told, labels), *watched.findings),
        notes=tuple(dict.fromkeys(filter(None, said))),
    )


def _lines(read: pl.DataFrame, labels: Sequence[str]) -> pl.DataFrame:
    """Label the lines and say what they are based on."""
    lines = frames.label_columns(read, labels)
    if "grain" not in lines.columns:
        lines = lines.with_columns(pl.lit(None, pl.String).alias("grain"))
    if lines["grain"].null_count():
        lines = lines.with_columns(pl.coalesce("grain", _cadence(labels)).alias("grain"))
    basis = pl.col("grain").replace_strict(_BILLED, default="billed", return_dtype=pl.String)
    return lines.with_columns(basis.alias("basis"))


def _cadence(labels: Sequence[str]) -> pl.Expr:
    """Take lines that do not say when their charge period ends for days where a group never has two within one."""
    apart = pl.col("bucket").unique().sort().diff().min() >= timedelta(hours=23)
    daily = apart.over(labels) if labels else apart
    return pl.when(daily.fill_null(False)).then(pl.lit("day"))


def _computed(inputs: Inputs, labels: Sequence[str], lines: pl.DataFrame) -> pl.DataFrame:
    """Return computed lines of the services that no bill names."""
    if "requests" not in inputs or "prices" not in inputs:
        return pl.DataFrame()
    found = computed.lines(inputs["requests"], inputs["prices"], list(dict.fromkeys([*labels, "service"])))
    if found.height and "service" in lines.columns:
        found = found.filter(~pl.col("service").fill_null("").is_in(lines["service"].unique().implode()))
    elif lines.height:  # nothing tells which requests the bill covers
        return pl.DataFrame()
    return frames.label_columns(found, labels) if found.height else pl.DataFrame()


def _grids(lines: Lines, params: CostParams, window: Window) -> list[Grid]:
    """Lay out what is billed by the hour and by the day. The plain rule takes all lines, the default usage alone."""
    rolling = params.method == "rolling"
    taken = pl.col("cost").is_not_null() if rolling else USAGE
    groups = _by_the_hour(lines.groups) if rolling else lines.groups
    empty = "skip" if rolling and params.empty == "auto" else params.empty
    found = []
    for grain, bases in GRAINS.items():
        series = groups.filter(pl.col("basis").is_in(bases))
        if series.height:
            found.append(grid(lines, taken, series, grain, params.zone, window, empty))
    return [one for one in found if one.starts]


def _by_the_hour(groups: pl.DataFrame) -> pl.DataFrame:
    """Let all lines count in the hour in which their charge period starts, however long it is: the plain rule does.

    A group that has no hourly lines stays by the day.
    """
    keys = [name for name in groups.columns if name not in ("group", "basis")]
    hourly = (pl.col("basis") == "billed").any().over(keys) & (pl.col("basis") != "computed")
    return groups.with_columns(pl.when(hourly).then(pl.lit("billed")).otherwise(pl.col("basis")).alias("basis"))


def _known_until(verdicts: Sequence[Verdict], window: Window) -> datetime:
    ends = [v.grid.end(v.grid.until - 1) for v in verdicts if v.grid.until]
    return max(ends).replace(tzinfo=UTC) if ends else window.end


def _told(verdicts: Sequence[Verdict], params: CostParams, planned: Sequence[Change], labels: list[str]) -> list[Told]:
    """Rows of the drifts, those that last first, then the newest; the largest are explained."""
    pairs = [(verdict, one) for verdict in verdicts for one in verdict.drifts]
    pairs.sort(key=lambda pair: (not pair[1].lasting, -abs(pair[1].impact)))
    why = sorted(range(len(pairs)), key=lambda i: -abs(pairs[i][1].impact))[: params.explain]
    made = []
    for i, (verdict, one) in enumerate(pairs):
        parts = _explained(verdict.grid, one, params, labels) if i in why else []
        made.append(Told(verdict, one, _row(verdict.grid, one, parts, planned, labels), parts))
    return made


def _explained(of_grid: Grid, one: Drift, params: CostParams, labels: list[str]) -> list[dict[str, Any]]:
    key = of_grid.keys[one.series]
    if not set(ITEMS) <= set(of_grid.lines.columns):
        return []
    after = _aware(of_grid.starts[one.first]), _aware(of_grid.end(one.last))
    begins = _aware(of_grid.starts[0])
    before = before_of(after, begins)
    if before is None:
        return []
    part = of_grid.lines.filter(pl.col("series") == one.series).with_columns(pl.col("at").alias("bucket"))
    return explained.rows(part, before, after, {name: str(key[name]) for name in labels}, params.attribution)


def before_of(after: tuple[datetime, datetime], begins: datetime) -> tuple[datetime, datetime] | None:
    """Return the time a drift is compared with: as many weeks earlier as it takes, so that weekdays and hours agree.

    Where the lines do not reach back that far, what there is before it; None where there is nothing.
    """
    weeks = -(-(after[1] - after[0]) // WEEK)
    same = after[0] - weeks * WEEK, after[1] - weeks * WEEK
    if same[0] >= begins:
        return same
    return (begins, after[0]) if begins < after[0] else None


def _row(
    of_grid: Grid, one: Drift, parts: Sequence[Mapping[str, Any]], planned: Sequence[Change], labels: list[str]
) -> dict[str, Any]:
    key = of_grid.keys[one.series]
    since, end = of_grid.starts[one.first], of_grid.end(one.last)
    known = {name: str(value) for name, value in key.items()}
    change = changes.covering(planned, _aware(since), known)
    size = one.size or (None, None, None)
    return {
        **{name: key[name] for name in (*labels, "currency", "basis")},
        "kind": one.kind, "since": since, "until": None if one.lasting or one.settled is not None else end,
        "impact": Decimal(repr(one.impact)).quantize(_SCALE), "impact_ratio": one.ratio, "expected": one.expected,
        "peak_ratio": one.peak, "size": size[0], "size_low": size[1], "size_high": size[2],
        "compared_with": one.basis, "found_by": one.found_by,
        "usual_since": of_grid.end(one.settled) if one.settled is not None else None,
        "planned": change.name if change is not None else None, "explanation": explained.sentence(parts) or None,
    }  # fmt: skip


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC)


def _frames(
    lines: Lines, told: Sequence[Told], params: CostParams, now: datetime, planned: Sequence[Change]
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    charged = totals(lines)
    ahead, more = _forecasts(lines, charged.select("group", "cost"), params, now, planned, told)
    days, cut = by_day(lines, params.zone)
    rows: dict[str, list[dict[str, Any]]] = {
        "drifts": [one.row for one in told],
        "explained": [dict(part) for one in told for part in one.explained],
        "totals": charged.to_dicts(),
        "forecast": ahead,
        "days": days,
    }
    return rows, [more, cut]


def _forecasts(
    lines: Lines,
    sums: pl.DataFrame,
    params: CostParams,
    now: datetime,
    planned: Sequence[Change],
    told: Sequence[Told],
) -> tuple[list[dict[str, Any]], str]:
    """Forecast what is billed of the groups of the largest cost, each currency by itself, from the newest level on."""
    keys = [*params.labels, "currency"]
    billed = Lines(lines.frame, lines.groups.filter(pl.col("basis") != "computed"))
    sizes = sums.join(billed.groups, on="group", how="inner").group_by(keys).agg(pl.col("cost").sum())
    sizes = sizes.sort("cost", *keys, descending=[True, *[False] * len(keys)])
    made: list[dict[str, Any]] = []
    groups = billed.groups.join(sizes.head(MOST_FORECASTS), on=keys, how="semi", nulls_equal=True)
    billed = Lines(billed.frame.filter(pl.col("group").is_in(groups["group"].implode())), groups)
    for row in sizes.head(MOST_FORECASTS).iter_rows(named=True):
        named = {name: str(row[name]) for name in params.labels}
        again = changes.restarts(planned, named) + _levels(told, {name: row[name] for name in keys})
        part = billed.of(row, keys).filter(pl.col("cost").is_not_null())
        if part.height:
            made += forecast.rows(part, named, row["currency"], now, params.zone, again)
    more = sizes.height > MOST_FORECASTS
    return made, f"forecast: of the {MOST_FORECASTS} groups of the largest cost" if more else ""


def _levels(told: Sequence[Told], key: Mapping[str, Any]) -> list[datetime]:
    """Return when the levels of a group began that did not go back."""
    own = [one for one in told if all(one.row[name] == value for name, value in key.items())]
    return [_aware(one.row["since"]) for one in own if one.drift.kind == LEVEL and one.row["until"] is None]


def _nothing(inputs: Inputs, params: CostParams, window: Window) -> Result:
    asked = inputs["requests"].height if "requests" in inputs else 0
    beside = f"; {asked:,} rows of requests have no price or no tokens" if asked else ""
    note = f"no charge lines in {window}{beside}; import a bill (docs/sources/bills.md), or name --since, --window"
    watched = budgets.watched(inputs, params.budgets, window, window.end, params.zone)
    empty = frames.empty(params.labels, FRAMES)
    empty["budgets"] = frames.build([], FRAMES["budgets"], watched.rows)
    return Result(
        "cost", Status.EMPTY, window, asdict(params), empty, notes=(note, *watched.notes),
    )  # fmt: skip
