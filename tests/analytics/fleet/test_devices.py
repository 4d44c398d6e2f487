"""GPUs: one row each, from pages of exporters (cases 11, 19, 20, 23 and 25, and captures)."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.fleet.device_columns import COLUMNS
from analytics.fleet.devices import DEVICE_METRICS, devices
from analytics.fleet.workloads import workloads
from analytics.metrics.series import with_labels
from store.window import Window
from tests.analytics.frames_of import metric, times
from tests.analytics.metrics.stored import at, stored

MIB = 1 << 20
ALL = Window(at(-86400), at(86400))


def seen(folder: Path, page: str, now_s: float = 10) -> list[dict[str, Any]]:
    return devices(stored(folder, {0: page}, DEVICE_METRICS), ALL, at(now_s)).to_dicts()


def gpu(name: str, value: list[Any], seconds: list[float] | None = None, **labels: str) -> pl.DataFrame:
    """One series of GPU 0 of host n1."""
    own = {"gpu": "0", "gpu_uuid": "GPU-a", "host": "n1"} | labels
    at_s = seconds if seconds is not None else [float(i) * 60 for i in range(len(value))]
    series = hash((name, *sorted(own.items()))) & (2**63 - 1)
    source = {key: own.pop(key) for key in ("job", "instance") if key in own}
    return metric(name, times(at_s), value, series_id=series, labels=json.dumps(own), **source)


def one(*parts: pl.DataFrame, now_s: float = 60, **more: Any) -> dict[str, Any]:
    found = devices(pl.concat(parts), ALL, at(now_s), **more)
    assert found.height == 1
    return found.row(0, named=True)


def test_mig_instances_are_parts_of_one_gpu(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/20-mig-instances"
    expected = json.loads((case / "expected.json").read_text())
    rows = seen(tmp_path, (case / "metrics.prom").read_text())
    whole = [row for row in rows if row["mig_instance"] is None]
    parts = [row for row in rows if row["mig_instance"] is not None]
    assert (len(whole), len(parts)) == (expected["gpus"], expected["instances"])
    assert whole[0]["memory_used_bytes"] == expected["fb_used_mib"] * MIB
    assert whole[0]["util_pct"] is None
    assert [(row["mig_instance"], row["util_pct"]) for row in parts] == [("1", 95), ("3", 10), ("9", 0)]
    assert {row[name] for row in rows for name in ("p2p_bw_gbps", "pcie_bytes_per_second")} == {None}


def test_a_gpu_works_for_the_pod_not_for_its_exporter(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/11-exported-labels"
    frame = devices(stored(tmp_path, {0: (case / "metrics.prom").read_text()}, DEVICE_METRICS), ALL, at(10))
    expected = json.loads((case / "expected.json").read_text())
    shares = workloads(frame)
    held = {row["workload"] or "unallocated": [int(d[-1]) for d in row["devices"]] for row in shares.to_dicts()}
    assert held == expected
    assert shares["gpus"].sum() == 4
    assert shares.filter(pl.col("workload") == "team-a/llm-0")["util_pct"].item() == 85


def test_shares_of_gpus_add_up_whoever_shares_them() -> None:
    shared_gpu = [gpu("gpu_power_watts", [100], workload_pod=pod) for pod in ("x", "y")]
    sliced = [
        gpu("gpu_memory_bytes", [7], state="used", gpu_uuid="GPU-b", gpu="1", workload_pod="x",
            mig_instance="1", mig_profile="3g.20gb")
    ]  # fmt: skip
    found = workloads(devices(pl.concat([*shared_gpu, *sliced]), ALL, at(0)))
    assert dict(found.select("workload", "gpus").iter_rows()) == pytest.approx(
        {"x": 0.5 + 3 / 7, "y": 0.5, None: 4 / 7}
    )


def test_what_is_not_reported_is_null_and_no_alarm(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/19-xid-series-absent-after-upgrade"
    pages = {t: (case / f"{name}.prom").read_text() for t, name in ((0, "before"), (3600, "after"), (3720, "later"))}
    rows = stored(tmp_path, pages, DEVICE_METRICS)
    spans = ((0, 0), (60, 3600), (60, 3720))
    before, after, later = (
        devices(rows.filter(pl.col("ts").is_between(*(at(t).replace(tzinfo=None) for t in span))), ALL, at(span[1]))
        for span in spans
    )
    assert before.select("state", "xid").rows() == [("ok", 0)]
    assert after.select("state", "xid").rows() == [("ok", None)]
    assert later.select("state", "xid", "xid_text").rows() == [("critical", 48, "double-bit ECC error")]


def test_clock_reasons_of_both_names_on_one_page_are_judged(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/23-throttle-bitmask"
    expected = json.loads((case / "expected.json").read_text())
    found = {row["gpu"]: row for row in seen(tmp_path, (case / "metrics.prom").read_text())}
    for severity, gpus in expected.items():
        assert {found[str(g)]["throttle_severity"] for g in gpus} == {severity}
        assert {found[str(g)]["state"] for g in gpus} == {"warning" if severity == "alert" else "ok"}


def test_traffic_is_of_all_links_both_ways() -> None:
    rates = [gpu("gpu_pcie_bytes_per_second", [2e9], [60], direction=way) for way in ("tx", "rx")]
    links = [
        gpu("gpu_link_bytes_total", [0, 60e9], kind="nvlink", link=str(link), direction=way)
        for link in range(3)
        for way in ("tx", "rx")
    ]
    row = one(*rates, *links)
    assert (row["pcie_bytes_per_second"], row["link_bytes_per_second"], row["p2p_bw_gbps"]) == (4e9, 6e9, 10)
    total = gpu("gpu_nvlink_bytes_per_second", [5e9], [60], direction="both")
    parts = [gpu("gpu_nvlink_bytes_per_second", [1e9], [60], direction="tx", link=str(link)) for link in range(3)]
    assert one(total, *parts)["link_bytes_per_second"] == 5e9


def test_a_gpu_that_two_sources_show_is_counted_once() -> None:
    sources = [{"job": job, "instance": f"{job}:1"} for job in ("dcgm", "nvml")]
    power = [gpu("gpu_power_watts", [300], [60], **source) for source in sources]
    memory = [
        gpu("gpu_memory_bytes", [amount], [60], state=state, **source)
        for source in sources
        for state, amount in (("used", 10), ("free", 90))
    ]
    row = one(*power, *memory)
    assert (row["power_watts"], row["memory_used_bytes"], row["memory_total_bytes"]) == (300, 10, 100)


def test_a_series_without_uuid_belongs_to_the_gpu_at_its_place() -> None:
    bare = metric("gpu_lost", times([60]), [1], labels='{"gpu":"0","host":"n1"}', series_id=1)
    row = one(gpu("gpu_power_watts", [300], [60]), bare)
    assert (row["device"], row["lost"], row["state"]) == ("GPU-a", True, "critical")


def test_a_gpu_that_falls_silent_beside_others_is_lost_and_with_them_unknown() -> None:
    own = gpu("gpu_power_watts", [300, None], [0, 60])
    other = gpu("gpu_power_watts", [300, 300], [0, 600], gpu="1", gpu_uuid="GPU-b")
    found = {row["device"]: row for row in devices(pl.concat([own, other]), ALL, at(600)).to_dicts()}
    assert (found["GPU-a"]["lost"], found["GPU-a"]["state"], found["GPU-b"]["state"]) == (True, "critical", "ok")
    alone = one(own, now_s=600)
    assert (alone["lost"], alone["state"], alone["reason"]) == (None, "unknown", "no sample for 9 min")


@pytest.mark.parametrize(
    ("parts", "state", "reason", "action"),
    [
        ([("gpu_row_remap_failed", [0, 1], {})], "critical", "could not be remapped", "replace the GPU"),
        ([("gpu_row_remap_pending", [0, 1], {})], "warning", "waits to be remapped", "reset"),
        ([("gpu_last_xid", [0, 79], {})], "critical", "Xid 79 (GPU fell off the bus), 0 min ago", "reboot the node"),
        ([("gpu_last_xid", [79, 79], {})], "critical", "1 min ago or earlier", "reboot the node"),
        ([("gpu_ecc_errors_total", [0, 2], {"kind": "uncorrected"})], "critical", "2 uncorrected", "reset"),
        ([("gpu_nvlink_errors_total", [5, 9], {"kind": "crc_flit"})], "warning", "4 CRC errors", "route around"),
        ([("gpu_link_up", [1, 1], {"link": "0"}), ("gpu_link_up", [1, 0], {"link": "1"})], "warning", "1 of 2 links",
         "reseat"),
        ([("gpu_link_up", [0, 0], {"link": "0"})], "ok", None, None),
        ([("gpu_throttle_reasons_bitmask", [0, 0x44], {})], "warning", "hw_thermal_slowdown", "cooling"),
        ([("gpu_throttle_ratio", [0, 0.3], {"reason": "memory_thermal"}),
          ("gpu_throttle_ratio", [0, 0], {"reason": "ppt"})], "warning", "clocks held down: memory_thermal", "cooling"),
        ([("gpu_temperature_celsius", [80, 94], {"sensor": "gpu"}),
          ("gpu_temperature_limit_celsius", [95, 95], {"limit": "slowdown"})], "warning", "94 C", "cooling"),
        ([("gpu_pcie_link_width", [8, 8], {"kind": "current"}), ("gpu_pcie_link_width", [16, 16], {"kind": "max"})],
         "warning", "PCIe x8 of x16", "reseat"),
        ([("gpu_ecc_errors_lifetime_total", [4, 4], {"kind": "uncorrected"})], "ok", None, None),
    ],
)  # fmt: skip
def test_trouble_is_named_with_what_to_do(
    parts: list[tuple[str, list[float], dict[str, str]]], state: str, reason: str | None, action: str | None
) -> None:
    row = one(*(gpu(name, values, **labels) for name, values, labels in parts))
    assert row["state"] == state
    for said, part in ((row["reason"], reason), (row["action"], action)):
        assert said is None if part is None else part in said


def test_the_worst_trouble_decides_and_all_are_named() -> None:
    row = one(gpu("gpu_row_remap_pending", [1]), gpu("gpu_row_remap_failed", [1]), now_s=0)
    assert (row["state"], row["reason"].count(";")) == ("critical", 1)
    assert row["action"].startswith("replace")


def test_an_old_xid_is_shown_but_no_longer_alarms() -> None:
    values = gpu("gpu_last_xid", [0, 31, 31], [0, 60, 4000])
    assert one(values, now_s=4000)["state"] == "ok"
    row = one(values, now_s=4000, xid_age=timedelta(hours=2))
    assert (row["xid"], row["xid_age_s"], row["state"]) == (31, 3940, "warning")


def test_a_code_that_stands_since_before_the_window_is_too_old_to_tell() -> None:
    values = gpu("gpu_last_xid", [31, 31, 31], [10, 60, 900])
    cut, new = (devices(values, Window(at(start), at(901)), at(900)).row(0, named=True) for start in (0, -3600))
    assert (cut["xid"], cut["state"]) == (31, "ok")
    assert (new["xid"], new["state"]) == (31, "warning")


def test_a_h200_under_load_reads_as_nvidia_smi_shows_it(shared: Path, tmp_path: Path) -> None:
    name = "nvidia_gpu_exporter_linux-x86_64__nvidia-h200__590.48.01__load.prom"
    (row,) = seen(tmp_path, (shared / "data/gpu_metrics_text" / name).read_text())
    assert (row["util_pct"], row["power_watts"], row["power_limit_watts"]) == (100, 627.4, 700)
    assert (row["temperature_celsius"], row["memory_temperature_celsius"]) == (52, 40)
    assert (row["sm_clock_hz"], row["pcie_generation"], row["pcie_width"]) == (1.98e9, 5, 16)
    assert (row["state"], row["throttle"], row["row_remap_pending"]) == ("ok", "", False)


def test_no_samples_give_no_devices() -> None:
    found = devices(gpu("gpu_power_watts", []), ALL, at(0))
    assert (found.columns, found.height) == (list(COLUMNS), 0)
    assert workloads(found).height == 0


def test_labels_are_read_as_they_are_written() -> None:
    odd = pl.DataFrame({"series_id": [1], "labels": ['{"pod":"a\\"b\\\\c, d","x.y":"1"}']})
    assert with_labels(odd, ["pod", "x.y", "none"]).select("pod", "x.y", "none").rows() == [('a"b\\c, d', "1", None)]


def test_a_label_is_not_taken_for_the_type_that_an_exporter_declared() -> None:
    rows = pl.DataFrame({"series_id": [1], "kind": ["gauge"], "raw": ["x"], "labels": ['{"kind":"corrected"}']})
    assert with_labels(rows, ["kind"]).select("kind", "raw").rows() == [("corrected", "x")]
    assert with_labels(rows, ["gpu"]).select("kind", "gpu").rows() == [("gauge", None)]
