"""Each check speaks where something is wrong, names the remedy, and is silent where nothing is."""

import base64
import dataclasses
import hashlib
from datetime import timedelta
from importlib.metadata import PathDistribution
from pathlib import Path

import polars as pl
import pytest

from analytics.result import Severity
from collector.prometheus.series import to_batch
from collector.prometheus.text import parse
from infractl.doctor import (
    clocks,
    doubles,
    feeds,
    frozen,
    histograms,
    installation,
    joins,
    missing,
    names,
    refused,
    targets,
    types,
)
from infractl.doctor.advice import Advice, worst_first
from infractl.doctor.catalog import CHECKS, diagnose
from infractl.doctor.counters_file import check_counters
from infractl.doctor.examine import Answer, examine
from infractl.doctor.facts import gather, nothing
from store.database import Database
from store.errors import SourceError
from tests.infractl.doctor.examined import NOW, facts_of

DCGM = """
# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1"} 40
# TYPE DCGM_FI_PROF_PCIE_TX_BYTES counter
DCGM_FI_PROF_PCIE_TX_BYTES{gpu="0",UUID="GPU-1"} 1e9
# TYPE DCGM_FI_PROF_NVLINK_TX_BYTES gauge
DCGM_FI_PROF_NVLINK_TX_BYTES{gpu="0",UUID="GPU-1"} 1e9
"""


def test_missing_fields_come_with_the_lines_of_the_counters_file_that_add_them(tmp_path: Path):
    advice = [a for a in missing.check(facts_of(tmp_path, {"a:9400": DCGM})) if "NVLINK_RX" in a.fact]
    assert [a.lines for a in advice] == [
        ("DCGM_FI_PROF_NVLINK_RX_BYTES, gauge, NVLink bytes received per second.",)
    ]  # TX is there: only the other line is to be added


def test_a_source_that_is_not_there_is_not_expected_to_show_anything(tmp_path: Path):
    assert list(missing.check(facts_of(tmp_path, {"a:1": "some_app_requests_total 3\n"}))) == []


def test_an_old_name_is_told_with_the_new_one(tmp_path: Path):
    found = list(
        names.check(
            facts_of(
                tmp_path, {"a:8000": 'vllm:gpu_cache_usage_perc{model_name="m"} 0.4\nvllm:prompt_tokens_total 3\n'}
            )
        )
    )
    assert ["vllm:kv_cache_usage_perc" in a.fact for a in found] == [True]


def test_the_newest_names_are_not_mentioned(tmp_path: Path):
    assert not list(names.check(facts_of(tmp_path, {"a:8000": 'vllm:kv_cache_usage_perc{model_name="m"} 0.4\n'})))


def test_a_counter_that_is_a_rate_is_told(tmp_path: Path):
    [advice] = types.check(facts_of(tmp_path, {"a:9400": DCGM}))
    assert "DCGM_FI_PROF_PCIE_TX_BYTES" in advice.fact
    assert "never rate()" in advice.remedy


def test_a_router_that_repeats_its_engines_is_told(tmp_path: Path):
    page = 'vllm:num_requests_running{server="http://e:8000"} 3\nvllm:num_requests_waiting{server="http://e:8000"} 3\n'
    [advice] = doubles.check(facts_of(tmp_path, {"router:8001": page}))
    assert "label server" in advice.fact
    assert "vllm:num_requests_running" in advice.fact


def test_two_names_of_one_metric_on_a_page_are_told(tmp_path: Path):
    page = 'vllm:kv_cache_usage_perc{engine="0"} 0.4\nvllm:gpu_cache_usage_perc{engine="0"} 0.4\n'
    [advice] = doubles.check(facts_of(tmp_path, {"a:8000": page}))
    assert advice.fact.endswith("(vllm:kv_cache_usage_perc): vllm:gpu_cache_usage_perc")


def test_a_target_that_is_down_is_critical_with_its_reason(tmp_path: Path):
    target = {
        "job": "vllm", "instance": "a:8000", "url": "http://a:8000/metrics", "up": False,
        "last_error": "HTTP 500 Internal Server Error", "remedy": "", "warning": "", "dropped": 0,
    }  # fmt: skip
    [advice] = targets.check(facts_of(tmp_path, {"b:1": "x 1\n"}, targets=[target], serving=True))
    assert advice.severity is Severity.CRITICAL
    assert "HTTP 500" in advice.fact


def test_without_a_server_the_stored_state_of_targets_speaks(tmp_path: Path):
    [advice] = targets.check(facts_of(tmp_path, {"b:1": "up 0\n"}))
    assert advice.subject == "job b:1"


def test_an_empty_store_says_how_to_get_something_in(tmp_path: Path):
    [advice] = targets.check(nothing(NOW))
    assert "scrape_configs:" in advice.lines


def test_a_clock_that_is_off_is_told_by_how_much(tmp_path: Path):
    skewed = {"job": "v", "instance": "a:1", "url": "", "clock_skew_s": -42.0}
    facts = facts_of(
        tmp_path, {"n:9100": "node_timex_offset_seconds 7.5\nnode_timex_sync_status 0\n"}, targets=[skewed]
    )
    facts_told = [a.fact for a in clocks.check(facts)]
    assert "its clock is 42 s behind this machine's" in facts_told
    assert "its clock is off by 7.5 s" in facts_told
    assert "the kernel's clock is not synchronised" in facts_told


def test_requests_that_meet_no_engine_metrics_get_the_label_to_add(tmp_path: Path):
    facts = facts_of(tmp_path, {"e:8000": 'vllm:num_requests_running{engine="0"} 1\n'})
    services = pl.DataFrame(
        {
            "service": ["chat"],
            "requests": [5],
            "skewed": [0],
            "last_ts": [NOW.replace(tzinfo=None)],
            "addresses": [["x:1"]],
        }
    )
    [advice] = joins.check(dataclasses.replace(facts, services=services))
    assert advice.lines == ("labels: {service: chat}",)
    met = services.with_columns(addresses=pl.lit(["e:8000"]))
    assert not list(joins.check(dataclasses.replace(facts, services=met)))


def test_refused_rows_of_the_time_looked_at_are_told_with_their_reason(tmp_path: Path):
    drops = pl.DataFrame(
        {
            "source": ["scrape", "scrape"],
            "reason": ["unreadable_line", "time_out_of_range"],
            "rows": [3, 4],
            "last_ts": [NOW.replace(tzinfo=None), NOW.replace(tzinfo=None, year=2025)],
        }
    )
    [advice] = refused.check(dataclasses.replace(nothing(NOW), drops=drops))
    assert advice.fact == "3 rows refused so far: unreadable_line"


def test_a_counters_file_is_read_before_it_is_deployed(tmp_path: Path):
    file = tmp_path / "counters.csv"
    file.write_text("# ours\nDCGM_FI_DEV_GPU_TEMP, gauge, temperature\nDCGM_FI_PROF_PCIE_TX_BYTES, counter, sent\n")
    found = list(check_counters(file))
    assert "DCGM_FI_PROF_NVLINK_TX_BYTES, gauge, NVLink bytes sent per second." in {
        line for a in found for line in a.lines
    }
    assert [a.subject for a in found if a.check == "types"] == [f"{file}, line 3"]


def test_a_counters_file_that_is_none_is_refused_by_line(tmp_path: Path):
    file = tmp_path / "counters.csv"
    file.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, temperature\nhello\n")
    with pytest.raises(SourceError, match=r"counters\.csv, line 2: no counter"):
        list(check_counters(file))


def test_a_changed_and_a_missing_file_of_the_installation_are_named(tmp_path: Path):
    info = tmp_path / "x-1.dist-info"
    info.mkdir()
    (tmp_path / "ok.txt").write_text("ok")
    (tmp_path / "bad.txt").write_text("changed")
    ok = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(b"ok").digest()).rstrip(b"=").decode()
    (info / "RECORD").write_text(f"ok.txt,{ok},2\nbad.txt,{ok},2\ngone.txt,{ok},2\nx-1.dist-info/RECORD,,\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: x\nVersion: 1\n")
    found = {a.subject: a.fact for a in installation.damaged(PathDistribution(info))}
    assert found == {
        "bad.txt": "differs from what was installed",
        "gone.txt": "cannot be read: No such file or directory",
    }


def test_this_installation_is_whole_and_unshadowed():
    assert list(installation.check(nothing(NOW))) == []


def test_one_thing_true_of_many_targets_is_said_once(tmp_path: Path):
    found = diagnose(facts_of(tmp_path, {f"gpu{i}:9400": DCGM for i in range(8)}))
    nvlink = [a for a in found if "NVLINK_RX" in a.fact]
    assert [(a.subject, len(a.also)) for a in nvlink] == [("job gpu0:9400", 7)]


def test_advice_is_ordered_worst_first():
    found = [Advice("a", s, "x", s.value, "r") for s in Severity]
    assert [a.severity for a in worst_first(found)] == [Severity.CRITICAL, Severity.WARNING, Severity.INFO]


def test_every_check_is_silent_or_speaks_of_an_empty_machine_without_failing():
    for check in CHECKS:
        assert all(advice.remedy for advice in check(nothing(NOW)))


def _histogram(name: str, *counts: tuple[str, int]) -> str:
    rows = "".join(f'{name}_bucket{{model_name="m",le="{le}"}} {count}\n' for le, count in counts)
    return f"# TYPE {name} histogram\n{rows}{name}_sum 1\n{name}_count {counts[-1][1]}\nvllm:prompt_tokens_total 1\n"


def test_a_tail_beyond_the_last_bucket_is_told_with_its_bound(tmp_path: Path):
    page = _histogram("vllm:time_to_first_token_seconds", ("1", 50), ("10", 90), ("+Inf", 100))
    found = [a.fact for a in histograms.check(facts_of(tmp_path, {"a:8000": page}))]
    assert found == ["beyond the last bucket, no more can be told: P99 of ttft_seconds (> 10 s)"]


def test_a_limit_between_two_far_bounds_cannot_be_told(tmp_path: Path):
    page = _histogram("vllm:time_to_first_token_seconds", ("1", 50), ("10", 100), ("+Inf", 100))
    [advice] = histograms.check(facts_of(tmp_path, {"a:8000": page}, limits_s={"ttft_seconds": 2.0}))
    assert advice.fact == (
        "the share of ttft_seconds within 2 s lies between 50.0% and 100.0%: the nearest bounds are 1 s and 10 s"
    )
    assert "add a bucket bound at 2 s" in advice.remedy


def test_a_limit_at_a_bound_can_be_told(tmp_path: Path):
    page = _histogram("vllm:time_to_first_token_seconds", ("1", 50), ("10", 100), ("+Inf", 100))
    assert not list(histograms.check(facts_of(tmp_path, {"a:8000": page}, limits_s={"ttft_seconds": 1.0})))


def test_a_dead_workers_gauge_is_told_from_a_living_one(tmp_path: Path, shared: Path):
    rows = (shared / "cases" / "41-multiprocess-stale-pids" / "inflight.csv").read_text().splitlines()
    assert rows[0] == "t_s,pid,value"
    pages: dict[int, str] = {}
    for row in rows[1:]:
        second, pid, value = row.split(",")
        pages[int(second)] = pages.get(int(second), "# TYPE inflight gauge\n") + f'inflight{{pid="{pid}"}} {value}\n'
    start = NOW - timedelta(seconds=max(pages))
    with Database(tmp_path) as database:
        for second, text in pages.items():
            labels = {"job": "job", "instance": "a:8000"}
            database.append([to_batch("t", parse(text.encode()), start + timedelta(seconds=second), labels)])
        found = list(frozen.check(gather(database, NOW, timedelta(hours=2))))
    assert [("101" in a.fact, "mark_process_dead" in a.remedy) for a in found] == [(True, True)]


def test_a_page_is_examined_without_being_stored(tmp_path: Path):
    body = DCGM.encode() + b'# TYPE h histogram\nh_bucket{le="1"} 3\nh_count 3\nh_sum 1\n'
    made = examine([Answer("a:9400", body, "text/plain")], NOW, {})
    checks = {advice["check"] for advice in made["advice"]}
    assert {"missing", "types", "conformance"} <= checks
    assert "Inf" in next(a["fact"] for a in made["advice"] if a["check"] == "conformance")


def test_a_login_page_is_no_page_of_metrics():
    with pytest.raises(SourceError, match="gw:443: the answer is HTML"):
        examine([Answer("gw:443", b"<html>sign in</html>", "text/html")], NOW, {})


def test_gaps_of_event_streams_and_failing_probes_are_told():
    stream = {"lost": 3}
    feed = {"endpoint": "tcp://e:5557", "error": "", "dropped": 0, "streams": [stream]}
    probe = {"url": "http://e:8000/v1", "up": False, "last_error": "HTTP_503", "remedy": ""}
    found = {
        a.subject: a.fact for a in feeds.check(dataclasses.replace(nothing(NOW), kv_events=[feed], probes=[probe]))
    }
    assert "3 messages were missed" in found["tcp://e:5557"]
    assert "HTTP_503" in found["http://e:8000/v1"]
    whole = dataclasses.replace(nothing(NOW), kv_events=[feed | {"streams": []}], probes=[probe | {"up": True}])
    assert not list(feeds.check(whole))
