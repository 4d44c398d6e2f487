"""Xid and ECC events (cases 18, 19 and 25)."""

import csv
import json
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from analytics.fleet.ecc import ECC_METRICS, ecc_events
from analytics.fleet.xid import XID_METRICS, weightiest, xid_events
from store.tables import EVENTS
from tests.analytics.frames_of import metric, times
from tests.analytics.metrics.stored import START, at, stored

GPU = '"gpu":"0","host":"n1","pci_bus_id":"0000:9b:00.0"'
NAMES = [*XID_METRICS, "gpu_temperature_celsius"]


def seconds(events: pl.DataFrame) -> list[int]:
    return (events["ts"] - START.replace(tzinfo=None)).dt.total_seconds().to_list()


def last_codes(path: Path) -> dict[float, str]:
    rows = csv.DictReader(path.open())
    name = "DCGM_FI_DEV_XID_ERRORS"
    return {float(row["t_s"]): f'{name}{{gpu="{row["gpu"]}",Hostname="n1"}} {row[name]}\n' for row in rows}


def test_an_event_is_a_change_of_the_last_code(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/18-xid-is-last-code-not-count"
    events = xid_events(stored(tmp_path, last_codes(case / "xid.csv"), NAMES))
    expected = json.loads((case / "expected.json").read_text())["events"]
    assert [list(pair) for pair in zip(seconds(events), events["xid"], strict=True)] == expected
    assert events["previous"].to_list() == [0, 31]
    assert events["severity"].to_list() == ["warning", "critical"]
    assert events["exact"].all()


def test_an_event_ends_by_age_though_its_code_stays(shared: Path, tmp_path: Path) -> None:
    pages = last_codes(shared / "cases/18-xid-is-last-code-not-count/xid.csv")
    events = xid_events(stored(tmp_path, pages, NAMES))
    age = timedelta(minutes=2)
    asked = {t: weightiest(events, at(t), age).row(0, named=True) for t in (100, 200, 241, 1000)}
    assert [(row["xid"], row["xid_current"]) for row in asked.values()] == [
        (31, True), (31, False), (79, True), (79, False)
    ]  # fmt: skip


def test_a_count_within_the_exporters_window_is_used_instead(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/18-xid-is-last-code-not-count"
    pages = last_codes(case / "xid.csv")
    pages[330] += (case / "exp.prom").read_text().replace("{", '{Hostname="n1",')
    events = xid_events(stored(tmp_path, pages, NAMES))
    assert events.select("xid", "count").rows() == [(31, 2)]


def test_a_count_within_the_exporters_window_is_new_at_first_sight_and_only_its_rise_later() -> None:
    rows = metric("gpu_xid_events", times([0, 60, 120, 180]), [2, 2, 0, 1], labels=f'{{{GPU},"xid":"31"}}')
    events = xid_events(rows)
    assert list(zip(seconds(events), events["count"], events["exact"], strict=True)) == [(0, 2, False), (180, 1, True)]


def test_a_code_of_a_gpu_seen_before_is_new_and_its_predecessor_unknown(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/19-xid-series-absent-after-upgrade"
    pages = {t: (case / f"{name}.prom").read_text() for t, name in ((60, "after"), (120, "later"))}
    row = xid_events(stored(tmp_path, pages, NAMES)).row(0, named=True)
    assert (row["xid"], row["previous"], row["exact"]) == (48, None, True)


def test_a_code_that_was_there_at_the_first_sample_came_at_some_time_before() -> None:
    row = xid_events(metric("gpu_last_xid", times([0, 60]), [31, 31], labels=f"{{{GPU}}}")).row(0, named=True)
    assert (row["xid"], row["previous"], row["exact"]) == (31, None, False)


def test_a_total_by_code_gives_an_event_at_each_rise_and_from_its_first_sample() -> None:
    seen = metric("gpu_temperature_celsius", times([0, 60, 120, 180]), [40] * 4, labels=f"{{{GPU}}}", series_id=1)
    total = metric(
        "gpu_xid_events_total", times([60, 120, 180]), [1, 1, 3], labels=f'{{{GPU},"xid":"94"}}', series_id=2
    )
    old = metric("gpu_xid_events_total", times([0, 60]), [7, 7], labels=f'{{{GPU},"xid":"31"}}', series_id=3)
    events = xid_events(pl.concat([seen, total, old]))
    assert list(zip(seconds(events), events["xid"], events["count"], strict=True)) == [(60, 94, 1), (180, 94, 2)]


def test_the_kernel_log_stands_for_what_the_gauge_shows_of_it() -> None:
    gauge = metric("gpu_last_xid", times([0, 60, 600]), [0, 79, 31], labels=f"{{{GPU}}}")
    logged = {"ts": times([41, 500]), "kind": "xid", "host": "n1", "entity": "0000:9b:00.0", "code": ["79", "119"]}
    log = EVENTS.conform(pl.DataFrame({"event_id": ["a", "b"]} | logged))
    events = xid_events(gauge, log)
    assert list(zip(seconds(events), events["xid"], events["device"], strict=True)) == [
        (41, 79, "n1 0"), (500, 119, "n1 0"), (600, 31, "n1 0")
    ]  # fmt: skip


def test_without_any_series_there_are_no_events() -> None:
    assert xid_events(metric("gpu_last_xid", [], [])).height == 0
    assert ecc_events(metric("gpu_ecc_errors_total", [], [])).height == 0


def test_an_event_of_an_unknown_code_is_a_warning_that_says_so() -> None:
    row = xid_events(metric("gpu_last_xid", times([0, 60]), [0, 9999], labels=f"{{{GPU}}}")).row(0, named=True)
    assert (row["severity"], row["text"]) == ("warning", "undocumented here")
    assert "look the code up" in row["action"]


def ecc_pages(path: Path) -> dict[float, str]:
    pages: dict[float, str] = {}
    for row in csv.DictReader(path.open()):
        lines = [f'DCGM_FI_DEV_{name}{{gpu="{row["gpu"]}",Hostname="n1"}} {row[name]}\n' for name in list(row)[2:]]
        lines.append(f'gpu_row_remap_pending{{gpu="{row["gpu"]}",host="n1"}} {row["ROW_REMAP_PENDING"]}\n')
        pages[float(row["t_s"])] = pages.get(float(row["t_s"]), "") + "".join(lines)
    return pages


def test_ecc_errors_are_growth_and_remaps_are_states(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases/25-ecc-volatile-vs-aggregate"
    events = ecc_events(stored(tmp_path, ecc_pages(case / "ecc.csv"), ECC_METRICS))
    expected = json.loads((case / "expected.json").read_text())["events"]
    found = {row["device"].removeprefix("n1 "): row["kind"] for row in events.to_dicts()}
    assert {gpu: found.get(gpu) for gpu in expected} == expected
    assert events["count"].to_list() == [1, 1, 1]
    assert events.filter(pl.col("kind") == "remap_failure")["action"].item().startswith("replace the GPU")


def test_a_row_that_waits_to_be_remapped_is_one_event() -> None:
    rows = metric("gpu_row_remap_pending", times([0, 60, 120, 180]), [0, 1, 1, 0], labels=f"{{{GPU}}}")
    assert seconds(ecc_events(rows)) == [60]


@pytest.mark.parametrize("after", [3, 0, 2])
def test_a_count_that_restarts_at_a_driver_reload_is_no_error_by_itself(after: int) -> None:
    rows = metric("gpu_ecc_errors_total", times([0, 60]), [3, after], labels=f'{{{GPU},"kind":"uncorrected"}}')
    assert ecc_events(rows)["count"].to_list() == ([2] if after == 2 else [])
