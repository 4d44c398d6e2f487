"""Put the answer of `cache` together, one group of labels after the other."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.cache import COUNTED, EXCESS, POLLUTION, PREFIX, CacheParams
from analytics.cache.columns import FRAMES
from analytics.cache.findings import excess, found
from analytics.cache.group import Group, Rows
from analytics.result import Finding, Result, Status
from store.window import Window

UNFILTERED = "--where {names} chooses among requests only: events, traces and counters do not say it"
GENERAL = ("prompt_tokens_total", "generation_tokens_total")
ENOUGH = (*COUNTED[0], COUNTED[1][1])
"""Counters that say something of a cache: prompts alone do not."""


def answer(inputs: Inputs, params: CacheParams, window: Window) -> Result:
    """Run the whole analysis on what was read."""
    by = list(params.by)
    labelled = {name: frames.label_columns(_timed(inputs[name]), by) for name in inputs if name != "prices"}
    labelled["requests"] = _with_key(labelled["requests"], params)
    rows: Rows = {name: [] for name in FRAMES}
    samples: dict[str, list[dict[str, Any]]] = {POLLUTION.name: [], EXCESS.name: []}
    findings: list[Finding] = []
    notes: dict[str, None] = {}
    caches = _caches(labelled, params)
    keys = (
        pl.concat([cache.select(by) for cache in caches]).unique().sort(by).to_dicts()
        if by
        else [{}] * any(cache.height for cache in caches)
    )
    for labels in keys:
        part = {name: _of(frame, labels) for name, frame in labelled.items()}
        who = ", ".join(name or "(none)" for name in labels.values())
        group = Group(part, params, window, inputs.get("prices"), who)
        for name, made in group.answer().items():
            rows[name] += [labels | row for row in made]
        notes |= group.notes
        _judge(labels, group.rows["windows"], params, samples, findings)
    if beyond := [name for name, _ in params.where if name not in ("service", "instance")]:
        notes[UNFILTERED.format(names=", ".join(dict.fromkeys(beyond)))] = None
    if not any(rows[name] for name in FRAMES if name != "shards"):
        return _nothing(any(cache.height for cache in caches), params, window)
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


def _timed(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop_nulls("ts") if "ts" in frame.columns else frame


def _with_key(requests: pl.DataFrame, params: CacheParams) -> pl.DataFrame:
    """Add the key that requests are routed by: the first of the attributes that is there."""
    named = [pl.col(name).cast(pl.String) for name in params.key if name != PREFIX]
    return requests.with_columns((pl.coalesce(named) if named else pl.lit(None, pl.String)).alias("key"))


def _caches(labelled: Mapping[str, pl.DataFrame], params: CacheParams) -> list[pl.DataFrame]:
    """Rows that say anything of a cache: not requests that state neither cached tokens nor a hit nor a score."""
    asked = [name for name in ("cached_input_tokens", *params.cache_hit, params.score) if name]
    said = pl.any_horizontal(pl.col(name).is_not_null() for name in asked)
    series = labelled["series"].filter(~pl.col("name").is_in(GENERAL)) if labelled["series"].height else None
    counted = labelled["counters"].filter(pl.col("name").is_in(ENOUGH))
    caches = [labelled["events"], labelled["blocks"], counted, labelled["requests"].filter(said)]
    return [*caches, *([] if series is None else [series])]


def _of(frame: pl.DataFrame, labels: Mapping[str, str]) -> pl.DataFrame:
    return frame.filter(*(pl.col(name) == value for name, value in labels.items())) if labels else frame


def _judge(
    labels: dict[str, str],
    windows: list[dict[str, Any]],
    params: CacheParams,
    samples: dict[str, list[dict[str, Any]]],
    findings: list[Finding],
) -> None:
    if windows and windows[-1]["basis"] == "exact":
        samples[POLLUTION.name].append(labels | {"value": windows[-1]["cpi"]})
    latest = excess(windows, params)
    if latest is not None:
        samples[EXCESS.name].append(labels | {"value": latest[0]})
    findings += found(labels, windows, params, params.bucket)


def _nothing(any_rows: bool, params: CacheParams, window: Window) -> Result:
    note = (
        "what was read has no block that was stored and no lookup that was counted"
        if any_rows
        else f"no KV events, traced blocks, counters of a cache or cached tokens of requests in {window}"
    )
    status = Status.REFUSED if any_rows else Status.EMPTY
    return Result("cache", status, window, asdict(params), frames.empty(params.by, FRAMES), notes=(note,))
