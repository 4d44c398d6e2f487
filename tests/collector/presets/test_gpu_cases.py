"""Cases from public bug reports: what presets and collection decide of each."""

import csv
import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from tests.collector.presets.read_page import Page, read


def case(shared: Path, number: int) -> Path:
    (path,) = (shared / "cases").glob(f"{number}-*")
    return path


def expected(path: Path) -> Any:
    return json.loads((path / "expected.json").read_text())


def of_gpus(page: Page, canonical: str) -> dict[str, float | None]:
    return {r.labels["gpu"]: r.value for r in page.of(canonical)}


def test_case_11_the_workload_is_never_the_exporter(shared: Path) -> None:
    path = case(shared, 11)
    owners: dict[str, list[int]] = {}
    for row in read((path / "metrics.prom").read_text()).of("gpu_utilization_ratio"):
        pod = row.labels.get("workload_pod")
        owner = f"{row.labels['workload_namespace']}/{pod}" if pod else "unallocated"
        owners.setdefault(owner, []).append(int(row.labels["gpu"]))
    assert owners == expected(path)


def test_case_13_constants_for_not_available_are_null(shared: Path) -> None:
    path = case(shared, 13)
    page = read((path / "metrics.prom").read_text())
    values: dict[str, list[float | None]] = {}
    for row in page.rows:
        values.setdefault(row.name, []).append(row.value)
    means = {name: mean(v for v in found if v is not None) for name, found in values.items()}
    assert means == pytest.approx(expected(path)["mean"])
    assert sum(r.value is None for r in page.rows) == expected(path)["null_count"] == page.drops["blank_value"]


def test_case_14_utilisation_over_100_percent_is_refused_and_counted(shared: Path) -> None:
    path = case(shared, 14)
    with (path / "util.csv").open() as file:
        pages = [read(f'DCGM_FI_DEV_GPU_UTIL{{gpu="{r["gpu"]}"}} {r["value"]}\n') for r in csv.DictReader(file)]
    found = [value for page in pages if (value := page.value("gpu_utilization_ratio")) is not None]
    assert mean(found) == pytest.approx(expected(path)["mean"] / 100)
    assert max(found) == pytest.approx(expected(path)["max"] / 100)
    assert sum(page.drops.get("out_of_range", 0) for page in pages) == expected(path)["rejected"]


def test_case_15_nvlink_bandwidth_is_a_rate_though_declared_a_counter(shared: Path) -> None:
    path = case(shared, 15)
    with (path / "samples.csv").open() as file:
        rows = list(csv.DictReader(file))
    own = [r for r in rows if r["metric"].startswith("DCGM_FI_DEV_")]
    pages = [read(f"# TYPE {r['metric']} {r['type']}\n{r['metric']} {r['value']}\n") for r in own]
    values = [page.value("gpu_nvlink_bytes_per_second") for page in pages]
    assert {page.rows[0].semantic for page in pages} == {"rate"}
    assert mean(v or 0 for v in values) == pytest.approx(expected(path)["GBps"] * 1e9)
    page = read("".join(f"{r['metric']} {r['value']}\n" for r in rows if r["t_s"] == "0"))
    both_ways = [r.value or 0 for r in page.of("gpu_nvlink_bytes_per_second")]
    assert both_ways == [9.7e9, 9.8e9]
    assert sum(both_ways) == pytest.approx(mean(v or 0 for v in values), rel=0.01)


@pytest.mark.parametrize("name", ["old.prom", "new.prom", "dev.prom"])
def test_case_16_pcie_traffic_is_the_same_under_every_type_and_unit(shared: Path, name: str) -> None:
    path = case(shared, 16)
    (row,) = read((path / name).read_text()).of("gpu_pcie_bytes_per_second", direction="tx")
    assert row.value == expected(path)["GBps"] * 1e9
    assert row.semantic == "rate"


def test_case_18_an_xid_is_the_code_of_the_last_event(shared: Path) -> None:
    path = case(shared, 18)
    with (path / "xid.csv").open() as file:
        pages = [read(f"DCGM_FI_DEV_XID_ERRORS {r['DCGM_FI_DEV_XID_ERRORS']}\n") for r in csv.DictReader(file)]
    assert {page.rows[0].semantic for page in pages} == {"last_event"}
    assert [page.value("gpu_last_xid") for page in pages] == [0, 0] + [31] * 6 + [79] * 4
    counted = read((path / "exp.prom").read_text())
    assert counted.value("gpu_xid_events", xid="31") == 2


def test_case_19_an_xid_that_is_not_reported_is_absent_and_never_0(shared: Path) -> None:
    path = case(shared, 19)
    before, after, later = (read((path / f"{name}.prom").read_text()) for name in ("before", "after", "later"))
    assert before.value("gpu_last_xid") == 0
    assert after.of("gpu_last_xid") == []
    assert after.of("gpu_retired_pages_total") == []
    assert later.value("gpu_last_xid") == 48
    assert [page.value("gpu_temperature_celsius", sensor="gpu") for page in (before, after, later)] == [41, 42, 43]


def test_case_20_mig_instances_are_parts_of_one_gpu(shared: Path) -> None:
    path = case(shared, 20)
    page = read((path / "metrics.prom").read_text())
    right = expected(path)
    used = page.of("gpu_memory_bytes", state="used")
    assert len({r.labels["gpu_uuid"] for r in page.rows}) == right["gpus"]
    assert len({(r.labels["gpu_uuid"], r.labels["mig_instance"]) for r in page.rows}) == right["instances"]
    assert sum(r.value or 0 for r in used) == right["fb_used_mib"] * 2**20
    assert page.value("gpu_engine_active_ratio", mig_instance="1", mig_profile="3g.20gb", workload_pod="llm") == 0.95
    assert page.of("gpu_pcie_bytes_per_second") == page.of("gpu_nvlink_bytes_per_second") == []


def test_case_23_both_names_of_the_throttle_reasons_are_the_same_mask(shared: Path) -> None:
    page = read((case(shared, 23) / "metrics.prom").read_text())
    assert {r.semantic for r in page.rows} == {"bitmask"}
    assert of_gpus(page, "gpu_throttle_reasons_bitmask") == {"0": 1, "1": 4, "2": 68, "3": 132, "4": 256, "5": 0}


def test_case_25_volatile_and_lifetime_errors_are_two_metrics(shared: Path) -> None:
    with (case(shared, 25) / "ecc.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = ("ECC_DBE_VOL_TOTAL", "ECC_DBE_AGG_TOTAL", "ROW_REMAP_PENDING", "ROW_REMAP_FAILURE")
    text = "".join(f'DCGM_FI_DEV_{c}{{gpu="{r["gpu"]}"}} {r[c]}\n' for r in rows if r["t_s"] == "300" for c in columns)
    page = read(text)
    assert of_gpus(page, "gpu_ecc_errors_total") == {"0": 0, "1": 1, "2": 0, "3": 0, "4": 0}
    assert of_gpus(page, "gpu_ecc_errors_lifetime_total") == {"0": 4, "1": 5, "2": 0, "3": 0, "4": 3}
    assert of_gpus(page, "gpu_row_remap_pending") == {"0": 0, "1": 0, "2": 1, "3": 0, "4": 0}
    assert of_gpus(page, "gpu_row_remap_failed") == {"0": 0, "1": 0, "2": 0, "3": 1, "4": 0}
    assert {r.semantic for r in page.of("gpu_ecc_errors_total")} == {"cumulative"}
