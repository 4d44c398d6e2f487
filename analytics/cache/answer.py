"""Put the answer of `cache` together, one group of labels after the other."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.cache import EXCESS, FRAMES, POLLUTED, POLLUTION, CacheParams, balance, counters, events, traces
from analytics.cache.curve import curve
from analytics.cache.findings import LEVEL, RUNNING, dominant, excess, finding
from analytics.result import Finding, Result, Status
from store.window import Window

Rows = dict[str, list[dict[str, Any]]]


def answer(inputs: Inputs, params: CacheParams, window: Window) -> Result:
    """Run the whole analysis on what was read."""
    by = list(params.by)
    labelled = {name: frames.label_columns(frame.drop_nulls("ts"), by) for name, frame in inputs.items()}
    seen = [labelled[name].select(by) for name in ("events", "blocks", "counters")]
    rows: Rows = {name: [] for name in FRAMES}
    samples: dict[str, list[dict[str, Any]]] = {POLLUTION.name: [], EXCESS.name: []}
    findings: list[Finding] = []
    notes: dict[str, None] = {}
    keys = pl.concat(seen).unique().sort(by).to_dicts() if by else [{}] * any(f.height for f in _caches(labelled))
    for labels in keys:
        part = {name: _of(frame, labels) for name, frame in labelled.items()}
        made = _group(part, params, notes)
        for name, found in made.items():
            rows[name] += [labels | row for row in found]
        _judge(labels, made["windows"], params, samples, findings)
    if not rows["windows"]:
        return _nothing(any(f.height for f in _caches(labelled)), params, window)
    return Result(
        analysis="cache",
        status=Status.OK,
        window=window,
        params=asdict(params),
        frames={name: frames.build(by, FRAMES[name], rows[name]) for name in FRAMES},
        samples={name: frames.samples(by, values) for name, values in samples.items()},
        findings=tuple(findings),
        notes=tuple(notes),
    )


def _caches(labelled: Mapping[str, pl.DataFrame]) -> list[pl.DataFrame]:
    return [labelled[name] for name in ("events", "blocks", "counters")]


def _of(frame: pl.DataFrame, labels: Mapping[str, str]) -> pl.DataFrame:
    return frame.filter(*(pl.col(name) == value for name, value in labels.items())) if labels else frame


def _group(part: Mapping[str, pl.DataFrame], params: CacheParams, notes: dict[str, None]) -> Rows:
    """Rows of one group: windows by what is most exact, the engine's own events before traces before counters."""
    made: Rows = {name: [] for name in FRAMES}
    counted, since_start = counters.read(part["counters"], params)
    if since_start:
        notes["counters have one sample: they count since their engine started"] = None
    trace = traces.read(part["blocks"])
    if trace is not None:
        judged = traces.judged(trace, params)
        made["windows"], made["rounds"] = traces.windows(judged, params), list(map(dict, traces.rounds(judged)))
        made["curve"] = curve(trace, part["requests"], params)
        notes[f"traced requests: LRU model with {params.blocks} blocks (--blocks); an engine also keeps what runs"] = (
            None
        )
    stored, removed = events.replay(part["events"], params.idle)
    if stored.height:
        sizes = part["events"]["block_size"].drop_nulls().unique()
        size = int(sizes[0]) if len(sizes) == 1 else None
        made["windows"] = counters.with_events(stored, counted, params, size)
        made["tiers"] = balance.tiers(stored, removed)
        notes["KV events: expired is exact, redundant an estimate, since events do not show that a block was used"] = (
            None
        )
        if counted.is_empty() or not size:
            notes["KV events without counters of the same service: hits are not known, accesses are stores"] = None
    elif trace is None:
        made["windows"] = counters.windows(counted)
        if made["windows"]:
            notes["proxy: accesses and hits are tokens, cpi is the share not found, an upper limit of expired"] = None
    made["shards"] = balance.shards(part["requests"], part["events"])
    for row in made["windows"]:
        row["dominant"] = dominant(row)
    unused = [
        row
        for row in made["windows"]
        if row.get("hit_ratio") is not None and row["cpi"] >= LEVEL and row["dominant"] == "redundant"
    ]
    if len(unused) >= RUNNING:
        notes[
            f"{len(unused)} of {len(made['windows'])} windows load mostly blocks that nobody uses before they are "
            "evicted; no alert by itself. Advice: an admission filter, or keep one-off prompts for a shorter time"
        ] = None
    return made


def _judge(
    labels: dict[str, str],
    windows: list[dict[str, Any]],
    params: CacheParams,
    samples: dict[str, list[dict[str, Any]]],
    findings: list[Finding],
) -> None:
    if windows and windows[-1]["basis"] == "exact":
        samples[POLLUTION.name].append(labels | {"value": windows[-1]["cpi"]})
    found = excess(windows, params)
    if found is None:
        return
    samples[EXCESS.name].append(labels | {"value": found[0]})
    if POLLUTED.holds(found[0]):
        findings.append(finding(labels, windows, *found))


def _nothing(any_rows: bool, params: CacheParams, window: Window) -> Result:
    note = (
        "what was read has no block that was stored and no lookup that was counted"
        if any_rows
        else f"no KV events, traced blocks or prefix-cache counters in {window}"
    )
    status = Status.REFUSED if any_rows else Status.EMPTY
    return Result("cache", status, window, asdict(params), frames.empty(params.by, FRAMES), notes=(note,))
