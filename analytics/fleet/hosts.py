"""Hosts: one row per host with CPU, pressure, memory, NUMA, RDMA and interrupts."""

from datetime import datetime, timedelta

import polars as pl

from analytics.drivers import STALE_AFTER
from analytics.fleet.device_values import one_source
from analytics.metrics.combine import latest
from analytics.metrics.counters import increase, share
from analytics.metrics.series import TIME, about, naive, with_labels
from store.window import Window

LEVELS = ("host_load", "host_memory_bytes", "host_pressure_ratio", "numa_memory_bytes", "rdma_port_up")
COUNTERS = (
    "host_cpu_seconds_total", "host_pressure_seconds_total", "host_interrupts_total", "host_cpu_interrupts_total",
    "host_softirqs_total",
    "numa_pages_total", "rdma_port_bytes_total", "rdma_port_errors_total",
)  # fmt: skip
HOST_METRICS = (*LEVELS, *COUNTERS)
"""Canonical names that `hosts` reads: ask for them in one MetricQuery."""
_LABELS = ("cpu", "mode", "window", "state", "resource", "kind", "node", "device", "port", "direction", "type", "irq")
_IDLE = ("idle", "iowait")
_WITHIN_USER = ("guest", "guest_nice")
"""Linux counts guest time in user time as well."""
COLUMNS = (
    "host", "cpus", "cpu_busy_ratio", "load_1m", "memory_available_bytes", "memory_total_bytes",
    "memory_available_ratio", "psi_cpu_ratio", "psi_memory_ratio", "psi_io_ratio", "numa_nodes", "numa_remote_ratio",
    "rdma_ports_up", "rdma_ports", "rdma_tx_bytes_per_second", "rdma_rx_bytes_per_second", "rdma_errors",
    "interrupts_per_second", "softirqs_per_second", "softirq_worst_cpu", "softirq_worst_per_second", "span_s", "ts",
    "age_s", "fresh",
)  # fmt: skip
"""Columns of `hosts`, in order. psi is the share of time in which some task stalled; numa_remote_ratio the share of
pages given out to a process on another node; softirq_worst_cpu the CPU with the most soft interrupts."""


def hosts(samples: pl.DataFrame, window: Window, now: datetime) -> pl.DataFrame:
    """Return COLUMNS for every host of the samples (rows of MetricQuery(HOST_METRICS)).

    A host is the label host, else the scraped address without its port. Levels are those at `now`, growth and rates
    over the window. What is not reported is null. A host that two sources show has each metric from one of them.
    """
    series = _with_host(about(samples))
    levels = one_source(latest(samples.filter(pl.col("name").is_in(LEVELS)), now).join(series, on="series_id"), "host")
    grown = increase(samples.filter(pl.col("name").is_in(COUNTERS)), window).drop_nulls("increase")
    counts = grown.select("series_id", "increase", "span_s", "first_ts", pl.col("last_ts").alias("ts"))
    counts = one_source(counts.join(series, on="series_id"), "host")
    found = _present(samples, series, now)
    for part in (_memory(levels), _load(levels), _psi(levels, counts), _ports(levels), _growth(counts), _cpus(counts)):
        found = found.join(part, on="host", how="left")
    return found.select(*COLUMNS).sort("host")


def _with_host(series: pl.DataFrame) -> pl.DataFrame:
    named = with_labels(series, ["host", *_LABELS])
    address = pl.col("instance").str.replace(r":\d+$", "")
    kept = named.with_columns(pl.coalesce("host", address)).drop_nulls("host")
    return kept.select("series_id", "host", "name", "job", "instance", *_LABELS)


def _present(samples: pl.DataFrame, series: pl.DataFrame, now: datetime) -> pl.DataFrame:
    at = naive(now)
    seen = samples.filter(pl.col("ts") <= at).drop_nulls("value").group_by("series_id").agg(pl.col("ts").max())
    found = seen.join(series.select("series_id", "host"), on="series_id").group_by("host").agg(pl.col("ts").max())
    age = ((pl.lit(at, TIME) - pl.col("ts")).dt.total_microseconds() / 1e6).alias("age_s")
    return found.with_columns(age).with_columns((pl.col("age_s") <= STALE_AFTER / timedelta(seconds=1)).alias("fresh"))


def _is(**labels: str) -> pl.Expr:
    return pl.all_horizontal(pl.col(name) == value for name, value in labels.items()).fill_null(value=False)


def _value(where: pl.Expr, column: str = "value") -> pl.Expr:
    """Sum of the rows that hold, null where there are none."""
    value = pl.col(column).filter(where)
    return pl.when(value.len() > 0).then(value.sum())


def _memory(levels: pl.DataFrame) -> pl.DataFrame:
    memory = levels.group_by("host").agg(
        _value(_is(name="host_memory_bytes", state="available")).alias("memory_available_bytes"),
        _value(_is(name="host_memory_bytes", state="total")).alias("memory_total_bytes"),
        pl.col("node").filter(_is(name="numa_memory_bytes")).drop_nulls().n_unique().cast(pl.Int64).alias("_nodes"),
    )
    ratio = share(pl.col("memory_available_bytes"), pl.col("memory_total_bytes")).alias("memory_available_ratio")
    nodes = pl.when(pl.col("_nodes") > 0).then(pl.col("_nodes")).alias("numa_nodes")
    return memory.with_columns(ratio, nodes).drop("_nodes")


def _load(levels: pl.DataFrame) -> pl.DataFrame:
    return levels.group_by("host").agg(
        pl.col("value").filter(_is(name="host_load", window="1m")).max().alias("load_1m")
    )


def _psi(levels: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
    """Pressure as stated over the shortest window, else from the growth of the stalled time."""
    stated = levels.filter(_is(name="host_pressure_ratio", kind="some"))
    short = pl.col("window").str.extract(r"(\d+)").cast(pl.Int64)
    stated = stated.sort(short).group_by("host", "resource", maintain_order=True).agg(pl.col("value").first())
    grown = counts.filter(_is(name="host_pressure_seconds_total", kind="some"), pl.col("span_s") > 0)
    grown = grown.group_by("host", "resource").agg((pl.col("increase") / pl.col("span_s")).max().alias("value"))
    both = pl.concat([stated, grown.join(stated, on=["host", "resource"], how="anti")])
    of = {name: pl.col("value").filter(_is(resource=name)).max() for name in ("cpu", "memory", "io")}
    return both.group_by("host").agg(value.alias(f"psi_{name}_ratio") for name, value in of.items())


def _ports(levels: pl.DataFrame) -> pl.DataFrame:
    up = levels.filter(_is(name="rdma_port_up"))
    return up.group_by("host").agg(
        (pl.col("value") > 0).sum().cast(pl.Int64).alias("rdma_ports_up"), pl.len().cast(pl.Int64).alias("rdma_ports")
    )


def _growth(counts: pl.DataFrame) -> pl.DataFrame:
    """CPU time, interrupts, RDMA traffic and NUMA allocation over the time that each covers."""
    cpu = _is(name="host_cpu_seconds_total") & ~pl.col("mode").is_in(_WITHIN_USER).fill_null(value=False)
    idle = cpu & pl.col("mode").is_in(_IDLE).fill_null(value=False)
    pages = _is(name="numa_pages_total") & pl.col("kind").is_in(["local", "other"]).fill_null(value=False)
    rdma = {way: _is(name="rdma_port_bytes_total", direction=way) for way in ("tx", "rx")}
    taken = _is(name="host_cpu_interrupts_total")
    whole = _is(name="host_interrupts_total") & pl.col("cpu").is_null() & pl.col("irq").is_null()
    parts = _is(name="host_interrupts_total") & (pl.col("cpu").is_not_null() | pl.col("irq").is_not_null())
    grown = counts.with_columns(pl.when(pl.col("span_s") > 0).then(pl.col("increase") / pl.col("span_s")).alias("rate"))
    sums = grown.group_by("host").agg(
        _value(cpu, "increase").alias("_cpu"),
        _value(idle, "increase").alias("_idle"),
        _value(pages, "increase").alias("_pages"),
        _value(pages & _is(kind="other"), "increase").alias("_remote"),
        pl.coalesce(_value(taken, "rate"), _value(whole, "rate"), _value(parts, "rate")).alias("interrupts_per_second"),
        _value(_is(name="host_softirqs_total"), "rate").alias("softirqs_per_second"),
        *(_value(where, "rate").alias(f"rdma_{way}_bytes_per_second") for way, where in rdma.items()),
        _value(_is(name="rdma_port_errors_total"), "increase").alias("rdma_errors"),
        pl.col("span_s").max(),
    )
    busy = share(pl.col("_cpu") - pl.col("_idle"), pl.col("_cpu")).alias("cpu_busy_ratio")
    return sums.with_columns(busy, share(pl.col("_remote"), pl.col("_pages")).alias("numa_remote_ratio"))


def _cpus(counts: pl.DataFrame) -> pl.DataFrame:
    """How many CPUs there are, and the one with the most soft interrupts."""
    cpus = (
        counts.filter(_is(name="host_cpu_seconds_total"))
        .group_by("host")
        .agg(pl.col("cpu").drop_nulls().n_unique().cast(pl.Int64).alias("cpus"))
    )
    soft = counts.filter(_is(name="host_softirqs_total"), pl.col("span_s") > 0).drop_nulls("cpu")
    rates = soft.group_by("host", "cpu").agg((pl.col("increase") / pl.col("span_s")).sum().alias("rate"))
    worst = rates.sort("rate", "cpu", descending=[True, False]).unique("host", keep="first", maintain_order=True)
    named = worst.select(
        "host", pl.col("cpu").alias("softirq_worst_cpu"), pl.col("rate").alias("softirq_worst_per_second")
    )
    return cpus.join(named, on="host", how="full", coalesce=True)
