"""Tables of the rollups, and how rows of one group merge into one."""

from store.columns import Column, Kind, Table
from store.query import ROLLUP_DIMENSIONS

T, N, F, TS = Kind.TEXT, Kind.INT, Kind.FLOAT, Kind.TIME

FINE_S, COARSE_S = 300, 3600
DIMENSIONS = ROLLUP_DIMENSIONS
MEASURES = ("ttft_s", "e2e_s", "tpot_s", "queue_s", "gap_s")
"""Durations that have a histogram; gap_s is the time between successive parts of a streamed answer."""
TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")

_TIME = (Column("bucket", TS, "start of the bucket"), Column("step_s", N, "length of the bucket: 300 or 3600", "s"))
_DIMS = (
    Column("service", T, "service of the requests"),
    Column("provider", T, "LLM provider or engine"),
    Column("model", T, "model"),
    Column("cloud_provider", T, "cloud"),
    Column("cloud_region", T, "region of the cloud"),
    Column("environment", T, "environment"),
)


def stem(measure: str) -> str:
    """Return the start of a measure's column names: ttft of ttft_s."""
    return measure.removesuffix("_s")


def _statistics(measure: str) -> tuple[Column, ...]:
    name, what = stem(measure), "gaps between parts of answers" if measure == "gap_s" else f"requests with {measure}"
    return (
        Column(f"{name}_n", N, what),
        Column(f"{name}_zero", N, "of these, at or under zero"),
        Column(f"{name}_sum_s", F, f"sum of {measure}; null without any", "s"),
        Column(f"{name}_min_s", F, f"least {measure}", "s"),
        Column(f"{name}_max_s", F, f"greatest {measure}", "s"),
    )


ROLLUP_REQUESTS = Table(
    name="rollup_requests",
    doc="Model requests by bucket: counts, sums and extremes. Requests without a measure: requests less its n.",
    key=("bucket", "step_s", *DIMENSIONS, "error_code"),
    columns=(
        *_TIME,
        *_DIMS,
        Column("error_code", T, "normalised error; null where there is none"),
        Column("requests", N, "requests", "requests"),
        Column("errors", N, "requests that failed: status error or an error code", "requests"),
        *(Column(name, N, f"sum of {name}; null where no request states them", "tokens") for name in TOKENS),
        Column("cost_usd", F, "sum of the costs stated; null where none is", "USD"),
        *(column for measure in MEASURES for column in _statistics(measure)),
        Column("gap_sum_squares", F, "sum of squares of the gaps", "s²"),
        Column(
            "stalls", N, "gaps over 0.2 s and over five times the median of their answer, where that has five or more"
        ),
        Column("last_ts", TS, "arrival of the latest request"),
    ),
)

ROLLUP_LATENCY = Table(
    name="rollup_latency",
    doc="Histogram of durations by bucket: values of idx i lie in (g^(i-1), g^i], g = 1.01/0.99.",
    key=("bucket", "step_s", *DIMENSIONS, "measure", "idx"),
    columns=(
        *_TIME,
        *_DIMS,
        Column("measure", T, "ttft_s, e2e_s, tpot_s, queue_s or gap_s"),
        Column("idx", N, "bucket of the histogram; null: at or under zero"),
        Column("n", N, "values in it"),
    ),
)

ROLLUP_ERRORS = Table(
    name="rollup_errors",
    doc="Requests that failed, by bucket, cloud, region, service and error.",
    key=("bucket", "step_s", "cloud_provider", "cloud_region", "service", "error_code"),
    columns=(
        *_TIME,
        Column("cloud_provider", T, "cloud"),
        Column("cloud_region", T, "region of the cloud"),
        Column("service", T, "service of the requests"),
        Column("error_code", T, "normalised error; null where only the status says so"),
        Column("n", N, "requests that failed", "requests"),
    ),
)

ROLLUP_METRICS = Table(
    name="rollup_metrics",
    doc="Samples of a series by bucket, raw values.",
    key=("bucket", "step_s", "series_id"),
    columns=(
        *_TIME,
        Column("series_id", Kind.ID, "series"),
        Column("n", N, "samples with a value"),
        Column("n_null", N, "samples without: stale or not available"),
        Column("first", F, "first value"),
        Column("first_ts", TS, "its time"),
        Column("last", F, "last value"),
        Column("last_ts", TS, "its time"),
        Column("min", F, "least value"),
        Column("max", F, "greatest value"),
        Column("sum", F, "sum of the values"),
        Column("sum_squares", F, "sum of their squares"),
        Column("growth", F, "of a counter, from first to last: sum of the rises, after a fall of the value itself"),
    ),
)

ROLLUP_BUILT = Table(
    name="rollup_built",
    doc="Buckets that are rolled up and the raw rows that went in: one with more raw rows now is built again.",
    key=("kind", "step_s", "bucket"),
    columns=(
        Column("kind", T, "requests or metrics"),
        *_TIME,
        Column("rows", N, "raw rows it was built from", "rows"),
    ),
)

ROLLUP_PENDING = Table(
    name="rollup_pending",
    doc="Stretches of time that appends up to the mark rolled_sequence have touched and that are not rolled up yet.",
    key=("kind", "low"),
    columns=(
        Column("kind", T, "requests or metrics"),
        Column("low", TS, "start of the first bucket"),
        Column("high", TS, "end of the last bucket"),
    ),
)

ROLLUPS = (ROLLUP_REQUESTS, ROLLUP_LATENCY, ROLLUP_ERRORS, ROLLUP_METRICS, ROLLUP_BUILT, ROLLUP_PENDING)


def _merge(column: Column) -> str:
    name = column.name
    if name.endswith(("_min_s", "_max_s", "_ts")):
        return f"{'min' if name.endswith('_min_s') else 'max'}({name}) AS {name}"
    return f"{f'CAST(sum({name}) AS BIGINT)' if column.kind is N else f'sum({name})'} AS {name}"


REQUEST_VALUES = tuple(c for c in ROLLUP_REQUESTS.columns if c.name not in ROLLUP_REQUESTS.key)
MERGE_REQUESTS = ", ".join(_merge(column) for column in REQUEST_VALUES)
"""SELECT list that makes one row of several of rollup_requests."""
MERGE_COUNTS = "CAST(sum(n) AS BIGINT) AS n"
MERGE_METRICS = (
    "CAST(sum(n) AS BIGINT) AS n, CAST(sum(n_null) AS BIGINT) AS n_null, "
    "arg_min(first, first_ts) AS first, min(first_ts) AS first_ts, arg_max(last, last_ts) AS last, "
    "max(last_ts) AS last_ts, min(min) AS min, max(max) AS max, sum(sum) AS sum, sum(sum_squares) AS sum_squares, "
    "sum(growth) AS growth"
)
