"""SELECTs that roll raw rows up into five-minute buckets, and such buckets into longer ones."""

from collections.abc import Sequence

from store.columns import Table
from store.manifest import Files, source
from store.rollups.sketch import index_sql
from store.rollups.stretches import Stretch, condition, files_of
from store.rollups.tables import (
    COARSE_S,
    DIMENSIONS,
    FINE_S,
    MEASURES,
    MERGE_COUNTS,
    MERGE_METRICS,
    MERGE_REQUESTS,
    ROLLUP_ERRORS,
    ROLLUP_LATENCY,
    ROLLUP_METRICS,
    ROLLUP_REQUESTS,
    TOKENS,
    stem,
)
from store.tables import INFERENCE_OPERATIONS, METRIC_SAMPLES, SPANS, TOKEN_ARRIVALS

_DIMS = ", ".join(DIMENSIONS)
_BUCKET = f"time_bucket(INTERVAL {FINE_S} SECOND, ts) AS bucket"
_OF_SPANS = tuple(measure for measure in MEASURES if measure != "gap_s")
_OPERATIONS = ", ".join(f"'{name}'" for name in INFERENCE_OPERATIONS)
_GAPS = "list_transform(list_zip(offsets_us[2:], offsets_us[:-2]), lambda pair: (pair[1] - pair[2]) / 1e6)"
_STALL_OVER = (
    "CASE WHEN len(gaps) >= 5 AND list_max(gaps) > 0.2 THEN greatest(0.2, 5 * list_aggregate(gaps, 'median')) END"
)

KEYS = {
    "rollup_requests": (*DIMENSIONS, "error_code"),
    "rollup_latency": (*DIMENSIONS, "measure", "idx"),
    "rollup_errors": ("cloud_provider", "cloud_region", "service", "error_code"),
    "rollup_metrics": ("series_id",),
}
"""Columns of each rollup that tell the rows of one bucket apart."""
MERGES = {
    "rollup_requests": MERGE_REQUESTS,
    "rollup_latency": MERGE_COUNTS,
    "rollup_errors": MERGE_COUNTS,
    "rollup_metrics": MERGE_METRICS,
}
TABLES_OF = {"requests": (ROLLUP_REQUESTS, ROLLUP_LATENCY, ROLLUP_ERRORS), "metrics": (ROLLUP_METRICS,)}
SOURCES = {"requests": (SPANS, TOKEN_ARRIVALS), "metrics": (METRIC_SAMPLES,)}


def fine(name: str, files: Files, stretches: Sequence[Stretch]) -> str:
    """SELECT of the five-minute rows of a rollup from the raw rows of the stretches (not null, in rising order)."""
    if name == "rollup_metrics":
        return _metrics(_raw(METRIC_SAMPLES, files, stretches))
    if name == "rollup_errors":
        return errors_of(f"({fine('rollup_requests', files, stretches)})")
    requests = _requests(_raw(SPANS, files, stretches), _raw(TOKEN_ARRIVALS, files, stretches))
    return f"WITH {requests} {_latency() if name == 'rollup_latency' else _totals()}"


def coarse(name: str, stretches: Sequence[Stretch]) -> str:
    """SELECT of the hourly rows of a rollup from its five-minute ones in the stretches."""
    hour = f"time_bucket(INTERVAL {COARSE_S} SECOND, bucket)"
    keys = ", ".join(KEYS[name])
    rows = f"(SELECT * FROM {name} WHERE step_s = {FINE_S} AND {condition('bucket', stretches)})"
    if name == "rollup_metrics":
        rows = joined(rows, f"series_id, {hour}")
    return (
        f"SELECT {hour} AS bucket, {COARSE_S} AS step_s, {keys}, {MERGES[name]} FROM {rows} AS part "
        f"GROUP BY {hour}, {keys} ORDER BY {keys}, 1"
    )


def joined(rows: str, partition: str) -> str:
    """Add to the growth of each bucket of a series that from the last value before it, within the partition."""
    before = f"lag(last) OVER (PARTITION BY {partition} ORDER BY first_ts)"
    step = "CASE WHEN first >= before THEN first - before WHEN first < before THEN first ELSE 0 END"
    known = f"SELECT *, {before} AS before FROM {rows} AS bucketed WHERE n > 0"
    empty = f"SELECT *, NULL::DOUBLE AS before FROM {rows} AS bucketed WHERE n = 0"
    return f"(SELECT * REPLACE (growth + {step} AS growth) FROM ({known} UNION ALL {empty}))"


def errors_of(requests: str) -> str:
    """SELECT of the rows of rollup_errors from rows of rollup_requests."""
    keys = ", ".join(KEYS["rollup_errors"])
    return (
        f"SELECT bucket, step_s, {keys}, CAST(sum(errors) AS BIGINT) AS n FROM {requests} AS request "
        f"WHERE errors > 0 GROUP BY bucket, step_s, {keys} ORDER BY bucket, {keys}"
    )


def raw_counts(kind: str, files: Files, stretches: Sequence[Stretch]) -> str:
    """SELECT of bucket and number of raw rows for the buckets of the stretches that have any."""
    parts = [
        f"SELECT {_BUCKET}, count(*) AS n FROM {_raw(table, files, stretches)} AS raw GROUP BY 1"
        for table in SOURCES[kind]
    ]
    return f"SELECT bucket, CAST(sum(n) AS BIGINT) AS n FROM ({' UNION ALL '.join(parts)}) GROUP BY bucket"


def _raw(table: Table, files: Files, stretches: Sequence[Stretch]) -> str:
    rows = source(table, files_of(table, files, stretches))
    return f"(SELECT * FROM {rows} AS stored WHERE {condition('ts', stretches)})"


def _requests(spans: str, arrivals: str) -> str:
    """CTE `request`: one row per model request with its gaps, and per stream whose request is not stored."""
    finite = ", ".join(f"CASE WHEN isfinite({name}) THEN {name} END AS {name}" for name in (*_OF_SPANS, "cost_usd"))
    tokens = ", ".join(TOKENS)
    values = ", ".join(f"s.{name}" for name in (*DIMENSIONS[1:], "error_code", *TOKENS, "cost_usd", *_OF_SPANS, "ts"))
    return (
        f"stored_request AS (SELECT trace_id, span_id, {_BUCKET}, ts, {_DIMS}, error_code, {tokens}, {finite}, "
        "status IS NOT DISTINCT FROM 'error' OR error_code IS NOT NULL AS failed "
        f"FROM {spans} AS span WHERE operation IN ({_OPERATIONS})), "
        f"arrival AS (SELECT *, {_STALL_OVER} AS stall_over FROM (SELECT trace_id, span_id, {_BUCKET}, service, "
        f"{_GAPS} AS gaps FROM {arrivals} AS stream)), "
        "request AS (SELECT coalesce(s.bucket, a.bucket) AS bucket, coalesce(s.service, a.service) AS service, "
        f"{values}, s.failed, a.gaps, a.stall_over FROM stored_request AS s FULL JOIN arrival AS a "
        "ON s.trace_id = a.trace_id AND s.span_id = a.span_id AND s.bucket = a.bucket)"
    )


def _totals() -> str:
    tokens = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in TOKENS)
    measures = ", ".join(_statistics(name) for name in _OF_SPANS)
    return (
        f"SELECT bucket, {FINE_S} AS step_s, {_DIMS}, error_code, count(ts) AS requests, "
        f"count(*) FILTER (failed) AS errors, {tokens}, sum(cost_usd) AS cost_usd, {measures}, "
        "CAST(coalesce(sum(len(gaps)), 0) AS BIGINT) AS gap_n, "
        "CAST(coalesce(sum(len(list_filter(gaps, lambda g: g <= 0))), 0) AS BIGINT) AS gap_zero, "
        "sum(list_sum(gaps)) AS gap_sum_s, min(list_min(gaps)) AS gap_min_s, max(list_max(gaps)) AS gap_max_s, "
        "sum(list_sum(list_transform(gaps, lambda g: g * g))) AS gap_sum_squares, "
        "CAST(coalesce(sum(len(list_filter(gaps, lambda g: g > stall_over))), 0) AS BIGINT) AS stalls, "
        f"max(ts) AS last_ts FROM request GROUP BY bucket, {_DIMS}, error_code ORDER BY bucket, {_DIMS}, error_code"
    )


def _statistics(measure: str) -> str:
    name = stem(measure)
    return (
        f"count({measure}) AS {name}_n, count(*) FILTER ({measure} <= 0) AS {name}_zero, "
        f"sum({measure}) AS {name}_sum_s, min({measure}) AS {name}_min_s, max({measure}) AS {name}_max_s"
    )


def _latency() -> str:
    rows = [
        f"SELECT bucket, {_DIMS}, '{name}' AS measure, {name} AS value FROM request WHERE {name} IS NOT NULL"
        for name in _OF_SPANS
    ]
    rows.append(f"SELECT bucket, {_DIMS}, 'gap_s' AS measure, unnest(gaps) AS value FROM request")
    each = " UNION ALL ".join(
        f"SELECT bucket, {_DIMS}, measure, {index_sql('value')} AS idx, count(*) AS n FROM ({part}) "
        f"GROUP BY bucket, {_DIMS}, measure, idx"
        for part in rows
    )
    columns = f"{_DIMS}, measure, idx"
    return f"SELECT bucket, {FINE_S} AS step_s, {columns}, n FROM ({each}) ORDER BY bucket, measure, {_DIMS}, idx"


def _metrics(samples: str) -> str:
    before = "lag(value IGNORE NULLS) OVER (PARTITION BY series_id, bucket ORDER BY ts)"
    bucketed = f"SELECT series_id, ts, value, {_BUCKET} FROM {samples} AS sample"
    rise = "CASE WHEN value >= before THEN value - before WHEN value < before THEN value ELSE 0 END"
    return (
        f"SELECT bucket, {FINE_S} AS step_s, series_id, count(value) AS n, count(*) - count(value) AS n_null, "
        "arg_min(value, ts) AS first, min(ts) FILTER (value IS NOT NULL) AS first_ts, "
        "arg_max(value, ts) AS last, max(ts) FILTER (value IS NOT NULL) AS last_ts, "
        "min(value) AS min, max(value) AS max, sum(value) AS sum, sum(value * value) AS sum_squares, "
        f"sum({rise}) FILTER (value IS NOT NULL) AS growth "
        f"FROM (SELECT *, {before} AS before FROM ({bucketed})) GROUP BY bucket, series_id ORDER BY series_id, bucket"
    )
