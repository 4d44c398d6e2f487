"""From spans and costs to the answer of `analyze connections`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from analytics import buckets, frames
from analytics.analysis import Inputs
from analytics.connections import FRAMES, HANDSHAKE, KEPT, REUSE, ConnectionsParams, unit_cost
from analytics.connections.cheapest import FOUND, cheapest, curve
from analytics.connections.drop import LEAST_OPENED, Judged, judge, runs
from analytics.connections.findings import finding
from analytics.connections.handshakes import measured, usual
from analytics.connections.opened import connected
from analytics.connections.over_time import Buckets, Group, over_time, summary
from analytics.result import Finding, Result, Status
from store.window import Window, format_duration

NO_ROWS = "no spans of kind server or client in {window}: import an access log, or send traces"
MOST_BUCKETS = 300
_SIDE = "side"


def answer(inputs: Inputs, params: ConnectionsParams, window: Window) -> Result:
    """Answer for every service and side. Status: empty without spans of servers or clients."""
    by = [name for name in params.by if name != _SIDE]  # every answer is by side
    rows = connected(frames.label_columns(inputs["requests"], by), params)
    spans = frames.label_columns(inputs["handshakes"], by)
    groups = _groups(rows, spans, by)
    if not groups:
        return Result(
            "connections", Status.EMPTY, window, asdict(params), frames.empty(by, FRAMES),
            notes=(NO_ROWS.format(window=window),),
        )  # fmt: skip
    size = _size(rows, params, window)
    made: dict[str, list[dict[str, Any]]] = {name: [] for name in FRAMES}
    samples: dict[str, list[dict[str, Any]]] = {signal.name: [] for signal in (REUSE, KEPT, HANDSHAKE)}
    findings: list[Finding] = []
    notes = list(_notes(groups, params, size))
    for group in groups:
        found = over_time(group, window, size)
        judged = judge(found.known, found.opened)
        hours, why = _hours(group, inputs["costs"], params, window, made)
        notes += [f"{', '.join(group.labels.values())}: {why}"] if why else []
        made["buckets"] += _with_costs(_with_judgement(found, judged), hours)
        made["summary"].append(summary(group, window))
        _sample(samples, group, found, judged)
        findings += [finding(group, found, judged, run, size) for run in runs(judged)]
    return Result(
        analysis="connections",
        status=Status.OK,
        window=window,
        params=asdict(params),
        frames={name: frames.build(by, FRAMES[name], made[name]) for name in FRAMES},
        samples={name: frames.samples([*by, _SIDE], rows) for name, rows in samples.items()},
        findings=tuple(findings),
        notes=tuple(notes),
    )


def _groups(rows: pl.DataFrame, spans: pl.DataFrame, by: list[str]) -> list[Group]:
    """Part rows by labels and side; the client's side counts where it says something of its connections."""
    if not rows.height:
        return []
    events = measured(rows, spans, by)
    share = rows["share_read"].min() if "share_read" in rows.columns else None
    mean = usual(events)
    keys = [*by, _SIDE]
    handshakes = {tuple(labels.values()): part for labels, part in frames.groups(events, keys)}
    found = []
    for labels, part in frames.groups(rows, keys):
        mine = handshakes.get(tuple(labels.values()), events.clear())
        found.append(Group(labels, part, mine, share if isinstance(share, float) else 1.0, usual(mine) or mean))
    return [group for group in found if group.labels[_SIDE] == "server" or group.known or group.handshakes.height]


def _size(rows: pl.DataFrame, params: ConnectionsParams, window: Window) -> timedelta:
    """Width of a bucket: of those that open enough connections, the narrowest that a chart can show."""
    if params.bucket != "auto":
        return buckets.named(params.bucket, window)
    opening = rows.filter(pl.col("opens").fill_null(value=False))
    chosen = buckets.choose(opening if opening.height else rows, window, LEAST_OPENED * 2)
    span = window.end.replace(tzinfo=None) - rows["ts"][0]
    return max(chosen, next((size for size in buckets.SIZES if span / size <= MOST_BUCKETS), buckets.SIZES[-1]))


def _with_judgement(found: Buckets, judged: Judged) -> list[dict[str, Any]]:
    return [
        row | {"reuse_high": float(judged.high[i]), "usual": float(judged.usual[i])} for i, row in enumerate(found.rows)
    ]


def _with_costs(rows: list[dict[str, Any]], hours: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add the unit cost of the hour; none where costs are in several currencies."""
    currencies = {hour["currency"] for hour in hours}
    if len(currencies) != 1:
        return rows
    costs = {hour["hour"]: {"unit_cost": hour["unit_cost"], "currency": hour["currency"]} for hour in hours}
    return [row | costs.get(row["ts"].replace(minute=0, second=0, microsecond=0), {}) for row in rows]


def _hours(
    group: Group, costs: pl.DataFrame, params: ConnectionsParams, window: Window, made: dict[str, list[dict[str, Any]]]
) -> tuple[list[dict[str, Any]], str | None]:
    """Add hours of cost and the cheapest concurrency; return the hours, and why there are none."""
    if group.labels[_SIDE] != "server" or not costs.height:
        return [], None
    if set(params.by) != {"service"} and not params.costs:
        return [], "costs join services: no unit cost by other labels, unless --costs says which are meant"
    lines, why = unit_cost.hourly(costs, dict(group.labels), bool(params.costs))
    hours = unit_cost.rows(group, lines, window)
    for currency in dict.fromkeys(hour["currency"] for hour in hours):
        part = [hour for hour in hours if hour["currency"] == currency and hour["concurrency"] > 0]
        concurrency, cost = (np.array([float(hour[name]) for hour in part]) for name in ("concurrency", "unit_cost"))
        row = cheapest(concurrency, cost, params.resamples, params.seed)
        if row.get("unit_cost") is not None:
            row["unit_cost"] = Decimal(repr(row["unit_cost"])).quantize(unit_cost.DIGITS)
        made["cheapest"].append(dict(group.labels) | {"currency": currency} | row)
        if row["verdict"] == FOUND:
            fitted = curve(concurrency, cost)
            values = np.interp(np.log(concurrency), np.log(fitted.concurrency), fitted.cost)
            part = [hour | {"fitted": float(value)} for hour, value in zip(part, values, strict=True)]
        made["unit_costs"] += [dict(group.labels) | hour for hour in part]
    return hours, why


def _sample(samples: dict[str, list[dict[str, Any]]], group: Group, found: Buckets, judged: Judged) -> None:
    last, kept = found.rows[-1], float(judged.kept[-1])
    enough = found.opened[-1] >= LEAST_OPENED
    values = (
        (REUSE, last["reuse"] if enough else None), (KEPT, kept if kept == kept else None),
        (HANDSHAKE, last["handshake_share"]),
    )  # fmt: skip
    for signal, value in values:
        samples[signal.name].append(dict(group.labels) | {"value": value})


def _notes(groups: list[Group], params: ConnectionsParams, size: timedelta) -> list[str]:
    made = [f"buckets of {format_duration(size)}"]
    silent = [group for group in groups if not group.known]
    if groups[0].share_read < 1:
        made.append(
            f"{groups[0].share_read:.1%} of the traces were read: distinct connections cannot be counted; reuse rests "
            "on what requests say themselves (which of its connection it is, new or reused)"
        )
    elif silent:
        names = ", ".join(group.labels.get("service", "") or "(none)" for group in silent[:5])
        made.append(
            f"nothing says on which connections requests came, so no reuse: {names}{' …' if len(silent) > 5 else ''}"
        )
    if any("address" in group.rows["basis"].drop_nulls().unique().to_list() for group in groups):
        made.append(
            f"an address and port that was silent for {params.idle:g} s is another connection; behind a proxy they are "
            "those of the proxy"
        )
    if any(group.rows["network.protocol.version"].str.contains(r"^[23]").any() for group in groups):
        made.append(
            "HTTP/2 and HTTP/3 carry many requests at once on a connection: compare their reuse with their own only"
        )
    untimed = sum(group.rows.filter("request")["seconds"].null_count() for group in groups)
    if untimed:
        made.append(f"{untimed} requests state no duration and count as none in progress")
    return made
