"""Hosts: one row each, from counters with known growth and from a real node_exporter page."""

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.fleet.hosts import COLUMNS, HOST_METRICS, hosts
from tests.analytics.frames_of import metric, times
from tests.analytics.metrics.stored import at, span, stored


def series(name: str, values: list[float], **labels: str) -> pl.DataFrame:
    """Two samples, a minute apart."""
    own = {"host": "n1"} | labels
    series_id = hash((name, *sorted(own.items()))) & (2**63 - 1)
    source = {key: own.pop(key) for key in ("job", "instance") if key in own}
    return metric(name, times([0, 60]), values, series_id=series_id, labels=json.dumps(own), **source)


def one(*parts: pl.DataFrame) -> dict[str, Any]:
    (row,) = hosts(pl.concat(parts), span(0, 60), at(60)).to_dicts()
    return row


def test_a_busy_cpu_is_what_is_neither_idle_nor_waiting() -> None:
    seconds = {"user": 30, "system": 6, "guest": 30, "idle": 12, "iowait": 12}
    row = one(*(series("host_cpu_seconds_total", [0, s], cpu=c, mode=m) for c in "01" for m, s in seconds.items()))
    assert (row["cpus"], row["cpu_busy_ratio"], row["span_s"]) == (2, pytest.approx(0.6), 60)


def test_pressure_is_the_stated_share_of_the_shortest_window_else_the_stalled_time() -> None:
    row = one(
        series("host_pressure_ratio", [0, 0.5], resource="cpu", kind="some", window="10s"),
        series("host_pressure_ratio", [0, 0.1], resource="cpu", kind="some", window="300s"),
        series("host_pressure_ratio", [0, 0.9], resource="cpu", kind="full", window="10s"),
        series("host_pressure_seconds_total", [0, 30], resource="cpu", kind="some"),
        series("host_pressure_seconds_total", [0, 6], resource="memory", kind="some"),
    )
    assert (row["psi_cpu_ratio"], row["psi_memory_ratio"], row["psi_io_ratio"]) == (0.5, 0.1, None)


def test_the_cpu_with_the_most_soft_interrupts_is_named() -> None:
    counts = {("0", "NET_RX"): 600, ("0", "TIMER"): 60, ("7", "NET_RX"): 6000}
    row = one(*(series("host_softirqs_total", [0, n], cpu=c, type=t) for (c, t), n in counts.items()))
    assert (row["softirq_worst_cpu"], row["softirq_worst_per_second"], row["softirqs_per_second"]) == ("7", 100, 111)


def test_a_total_of_interrupts_is_not_added_to_its_parts() -> None:
    parts = [series("host_interrupts_total", [0, 60], cpu=c, irq="24") for c in "01"]
    assert one(*parts)["interrupts_per_second"] == 2
    assert one(*parts, series("host_interrupts_total", [0, 300]))["interrupts_per_second"] == 5
    cpus = [series("host_cpu_interrupts_total", [0, 240], cpu=c) for c in "01"]
    assert one(*parts, *cpus)["interrupts_per_second"] == 8


def test_memory_numa_and_rdma() -> None:
    row = one(
        series("host_memory_bytes", [0, 25], state="available"),
        series("host_memory_bytes", [0, 100], state="total"),
        *(series("numa_memory_bytes", [1, 1], node=node, state="total") for node in "01"),
        series("numa_pages_total", [0, 75], node="0", kind="local"),
        series("numa_pages_total", [0, 25], node="0", kind="other"),
        *(series("rdma_port_up", [1, up], device=f"mlx5_{i}", port="1") for i, up in enumerate((1, 0))),
        *(series("rdma_port_bytes_total", [0, 6e9], device=f"mlx5_{i}", port="1", direction="tx") for i in range(2)),
        series("rdma_port_errors_total", [3, 5], device="mlx5_0", port="1", kind="symbol"),
    )
    assert (row["memory_available_bytes"], row["memory_available_ratio"]) == (25, 0.25)
    assert (row["numa_nodes"], row["numa_remote_ratio"]) == (2, 0.25)
    assert (row["rdma_ports_up"], row["rdma_ports"], row["rdma_errors"]) == (1, 2, 2)
    assert (row["rdma_tx_bytes_per_second"], row["rdma_rx_bytes_per_second"]) == (2e8, None)


def test_a_host_that_two_sources_show_is_counted_once() -> None:
    sources = [{"job": job, "instance": f"{job}:1"} for job in ("host", "node")]
    row = one(*(series("host_load", [1, 3], window="1m", **source) for source in sources))
    assert row["load_1m"] == 3
    ports = [series("rdma_port_up", [1, 1], device="mlx5_0", **source) for source in sources]
    assert one(*ports)["rdma_ports"] == 1


def test_a_host_without_its_label_is_its_address(shared: Path, tmp_path: Path) -> None:
    body = gzip.decompress((shared / "data/host_metrics_text/node_exporter_e2e-output.prom.gz").read_bytes()).decode()
    rows = stored(tmp_path, {0: body, 60: body}, HOST_METRICS, {"instance": "10.0.0.7:9100"})
    (row,) = hosts(rows, span(0, 60), at(60)).to_dicts()
    assert (row["host"], row["cpus"], row["load_1m"]) == ("10.0.0.7", 8, 0.21)
    assert row["memory_total_bytes"] == 3831959552
    assert (row["cpu_busy_ratio"], row["interrupts_per_second"]) == (None, 0)  # nothing grew: 0/0 is no share


def test_no_samples_give_no_hosts() -> None:
    found = hosts(metric("host_load", [], []), span(0, 60), at(60))
    assert (found.columns, found.height) == (list(COLUMNS), 0)
