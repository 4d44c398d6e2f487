"""NVML's clock reasons (case 23)."""

import json
from pathlib import Path

import polars as pl
import pytest

from analytics.fleet.throttle import REASONS, reason_name, reason_severity, throttle_reasons
from analytics.metrics.series import with_labels
from tests.analytics.metrics.stored import stored


def test_masks_of_both_names_on_one_page_are_decoded_and_judged(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/23-throttle-bitmask"
    page = {0: (case / "metrics.prom").read_text()}
    rows = with_labels(stored(tmp_path, page, ["gpu_throttle_reasons_bitmask"]), ["gpu"])
    expected = json.loads((case / "expected.json").read_text())
    found: dict[str, list[int]] = {"alert": [], "info": [], "quiet": []}
    for gpu, mask in rows.select(pl.col("gpu", "value").cast(pl.Int64)).sort("gpu").iter_rows():
        severities = {severity for _, severity in throttle_reasons(mask)}
        found[next((s for s in ("alert", "info") if s in severities), "quiet")].append(gpu)
    assert found == expected
    assert throttle_reasons(0x44) == [("sw_power_cap", "info"), ("hw_thermal_slowdown", "alert")]


def test_every_bit_is_told_apart_and_an_unknown_one_is_named() -> None:
    assert [throttle_reasons(reason.bit) for reason in REASONS] == [[(r.name, r.severity)] for r in REASONS]
    assert throttle_reasons(0) == []
    assert throttle_reasons(0x204) == [("sw_power_cap", "info"), ("bit_9", "info")]


@pytest.mark.parametrize(
    "spelling",
    [
        "nvmlClocksThrottleReasonHwThermalSlowdown",
        "nvmlClocksEventReasonHwThermalSlowdown",
        "clocks_throttle_reasons.hw_thermal_slowdown",
        "clocks_event_reasons_hw_thermal_slowdown",
        "HW_THERMAL_SLOWDOWN",
    ],
)
def test_both_generations_of_names_are_one(spelling: str) -> None:
    assert reason_name(spelling) == "hw_thermal_slowdown"
    assert reason_severity(spelling) == "alert"


def test_software_reasons_keep_their_first_letter() -> None:
    assert reason_name("nvmlClocksEventReasonSwPowerCap") == "sw_power_cap"
    assert reason_severity("nvmlClocksEventReasonGpuIdle") == "quiet"
    assert reason_severity("something new") == "info"
    assert reason_severity("memory_thermal") == "alert"
    assert reason_severity("low_utilization") == "quiet"
