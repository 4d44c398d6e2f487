"""Cold starts: loads of models, the requests that met one, and the first request after an engine began."""

from typing import Any

import numpy as np
import polars as pl

from analytics.latency.names import LOADS
from analytics.latency.segments import LEAST_FOR_P99

_TRUE = ("true", "1")
LOAD, MET, FIRST = "model load", "request that met a cold start", "first request after a start"


def cold_rows(spans: pl.DataFrame, requests: pl.DataFrame, loads: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of the frame `cold_starts`. A gauge of the last load counts once per value that it had at its ends."""
    made = []
    stage = pl.col("name").fill_null("").str.to_lowercase()
    named = spans.with_columns(pl.coalesce(pl.when(stage.is_in(list(LOADS))).then(stage), "operation").alias("what"))
    timed = named.filter(pl.col("what").is_in(list(LOADS)), pl.col("duration_s").is_not_null())
    for (what,), part in sorted(timed.partition_by("what", as_dict=True).items(), key=str):
        made.append(_row(LOAD, str(what), part["duration_s"].to_numpy()))
    gauges = loads.filter(pl.col("name") == "model_load_seconds")
    for (service,), part in sorted(gauges.partition_by("service", as_dict=True).items(), key=str):
        values = part.select(pl.concat_list("first", "last").list.unique(), "series_id").explode("first")
        made.append(_row(LOAD, f"model_load_seconds of {service or '(none)'}", values["first"].drop_nulls().to_numpy()))
    return [row for row in [*made, *_requests(requests, loads)] if row["n"]]


def _requests(requests: pl.DataFrame, loads: pl.DataFrame) -> list[dict[str, Any]]:
    timed = requests.with_columns(pl.coalesce("e2e_s", "duration_s").alias("_s")).drop_nulls("_s").sort("ts")
    made = []
    flagged = pl.col("faas.coldstart").str.to_lowercase().is_in(_TRUE).fill_null(value=False)
    groups = timed.with_columns(pl.col("service").fill_null(""), flagged.alias("_cold"))
    starts = _starts(loads)
    for (service,), part in sorted(groups.partition_by("service", as_dict=True).items(), key=str):
        for kind, cold in ((MET, part["_cold"]), (FIRST, _first_after(part, starts))):
            if cold.any() and not cold.all():
                row = _row(kind, str(service), part.filter(cold)["_s"].to_numpy())
                made.append(row | {"usual_s": part.filter(~cold)["_s"].median()})
    return made


def _starts(loads: pl.DataFrame) -> pl.DataFrame:
    """Return the times at which the processes of a service began, as they state it."""
    rows = loads.filter(pl.col("name") == "process_start_time_seconds")
    both = pl.concat([rows.select("service", pl.col(n).alias("at")) for n in ("first", "last")]).drop_nulls()
    return both.unique().select(
        pl.col("service").fill_null(""), pl.from_epoch((pl.col("at") * 1e6).cast(pl.Int64), "us")
    )


def _first_after(part: pl.DataFrame, starts: pl.DataFrame) -> pl.Series:
    """Mark the first request after each start of the service that lies within the rows."""
    mine = starts.filter(pl.col("service") == part["service"][0])["at"].sort()
    ts = part["ts"]
    at = np.searchsorted(ts.to_numpy(), mine.to_numpy()) if mine.len() else np.array([], dtype=np.int64)
    marked = np.zeros(part.height, dtype=np.bool_)
    marked[at[(at > 0) & (at < part.height)]] = True
    return pl.Series(marked)


def _row(kind: str, what: str, values: "np.typing.NDArray[np.float64]") -> dict[str, Any]:
    if not values.size:
        return {"n": 0}
    mean = float(values.mean())
    p50, p90, p99 = (float(q) for q in np.quantile(values, (0.5, 0.9, 0.99)))
    return {
        "kind": kind,
        "what": what,
        "n": values.size,
        "p50_s": p50,
        "p90_s": p90,
        "p99_s": p99 if values.size >= LEAST_FOR_P99 else None,
        "cv": float(values.std(ddof=1)) / mean if values.size > 1 and mean > 0 else None,
    }
