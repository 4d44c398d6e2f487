"""The recording of a real engine under a labelled programme: each phase is named by what caused it, calm ones are calm.

Phases from labels.jsonl of the sample data; one store, every analysis as a person runs it.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.result import Finding, Result
from collector.files.load import read
from collector.files.options import ImportOptions
from infractl.priced import PricedReader
from infractl.runner import run_named
from sample_data import files
from sample_data.load import real
from store.database import Database
from store.window import Window

WHOLE = "2026-11-30T16:17:00Z..2026-11-30T16:29:00Z"
SLACK = timedelta(seconds=30)
"""Width of the windows of p99 and latency, by which they may begin before what they are about."""
Phase = tuple[datetime, datetime]
Run = Callable[..., Result]


def phases() -> list[tuple[str, Phase]]:
    rows = [json.loads(line) for line in files.read("real", "labels.jsonl").splitlines()]
    return [
        (r["phase"], (datetime.fromtimestamp(r["start"], UTC), datetime.fromtimestamp(r["end"], UTC))) for r in rows
    ]


PHASE = {name: span for name, span in phases() if name not in ("baseline", "warmup")}
FIRST, LAST = (span for name, span in (phases()[1], phases()[-1]))
"""Calm phases with nothing to drain from before."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run an analysis over the recording by name, window and parameters."""
    database = Database(tmp_path_factory.mktemp("store"))
    database.append(list(real()))
    reader, known = PricedReader(database), dict[tuple[Any, ...], Result]()

    def made(name: str, window: str = WHOLE, **params: Any) -> Result:
        key = (name, window, *params.items())
        if key not in known:
            known[key] = run_named(reader, name, params, window)
        return known[key]

    return made


def begun(result: Result, span: Phase, slack: timedelta = SLACK) -> list[Finding]:
    return [f for f in result.findings if span[0] - slack <= f.since < span[1]]


def series_begun(result: Result, span: Phase) -> set[str]:
    rows = result.frames["anomalies"]
    start = [at.replace(tzinfo=UTC) for at in rows["start"]]
    return {
        name for name, at in zip(rows["series"], start, strict=True) if span[0] - timedelta(seconds=4) <= at < span[1]
    }


def p99(run: Run) -> Result:
    return run("p99", resamples="2", where=(("service", "vllm-tiny"),))


@pytest.mark.parametrize(
    ("phase", "driver"),
    [
        ("burst", "requests_waiting"),
        ("unique_long_prompts", "kv_cache_usage_ratio"),
        ("cpu_contention", "cpu_pressure_ratio"),
    ],
)
def test_p99_names_the_driver_of_each_slow_phase(run: Run, phase: str, driver: str) -> None:
    (finding,) = begun(p99(run), PHASE[phase])
    assert driver in finding.summary


@pytest.mark.parametrize(
    ("phase", "names"),
    [
        ("burst", {"request rate", "requests_waiting", "requests_running", "ttft p50"}),
        ("unique_long_prompts", {"kv_cache_usage_ratio", "preemptions_total"}),
        ("cpu_contention", {"cpu_pressure_ratio"}),
        ("error_storm", {"error ratio"}),
    ],
)
def test_anomalies_begin_in_the_series_that_the_phase_is_about(run: Run, phase: str, names: set[str]) -> None:
    assert names <= series_begun(run("anomalies"), PHASE[phase])


def test_the_burst_pages_and_its_seconds_are_found_below_the_client(run: Run) -> None:
    result = run("anomalies")
    pages = [f for f in begun(result, PHASE["burst"]) if f.trigger == "MetricAnomalous"]
    assert {f.labels["service"] for f in pages} == {"vllm-client", "vllm-tiny"}
    (cause,) = result.frames["causes"].filter(pl.col("service") == "vllm-client").to_dicts()
    assert (cause["cause"], cause["path"], cause["measure"]) == ("vllm-tiny", "vllm-client → vllm-tiny", "latency")
    assert "requests_waiting" in cause["moved"]


def test_latency_lays_the_tail_to_the_queue_in_burst_and_long_prompts(run: Run) -> None:
    result = run("latency")
    for phase in ("burst", "unique_long_prompts"):
        assert [f.trigger for f in begun(result, PHASE[phase])] == ["TailWaitsInQueue"]
    share = dict(result.frames["segments"].select("segment", "share_of_p99").iter_rows())
    assert max(share, key=lambda name: share[name] if name != "e2e" else 0.0) == "queue"


def test_streams_stall_in_the_slow_phases_and_in_no_calm_one(run: Run) -> None:
    rows = [(r["ts"].replace(tzinfo=UTC), r["stalled_ratio"]) for r in run("stream").frames["timeline"].to_dicts()]
    worst = {name: max(v for at, v in rows if span[0] - SLACK < at < span[1]) for name, span in PHASE.items()}
    assert worst["burst"] > 0.3
    assert worst["unique_long_prompts"] > 0.9
    assert worst["error_storm"] == worst["client_aborts"] == 0
    assert all(v < 0.1 for at, v in rows if FIRST[0] <= at < FIRST[1] - SLACK or at >= LAST[0])


def test_errors_names_the_codes_of_the_storm_and_the_aborts(run: Run) -> None:
    result = run("errors")
    code = {f.labels["code"]: f for f in result.findings}
    assert set(code) == {"HTTP_400", "HTTP_404", "CLIENT_ABORT"}
    for name, phase in (("HTTP_400", "error_storm"), ("HTTP_404", "error_storm"), ("CLIENT_ABORT", "client_aborts")):
        assert code[name] in begun(result, PHASE[phase])
    assert len(result.findings) == 3


def test_overview_names_the_storm_and_counts_no_abort_as_an_error(run: Run) -> None:
    (finding,) = run("overview").findings
    assert finding.trigger == "VeryHighErrorRatio"
    assert PHASE["error_storm"][0] - SLACK <= finding.since < PHASE["error_storm"][1]
    assert "HTTP_400" in finding.summary
    assert "HTTP_404" in finding.summary


def test_the_cache_finds_nothing_of_unique_prompts_and_most_of_the_others(run: Run) -> None:
    unique = run("cache", window(PHASE["unique_long_prompts"]))
    calm = run("cache", window(LAST))
    found = [result.frames["sources"]["hit_ratio"].drop_nulls().min() for result in (unique, calm)]
    assert found[0] < 0.05
    assert found[1] > 0.6


def test_calm_phases_are_in_no_finding(run: Run) -> None:
    for result in (p99(run), *(run(name) for name in ("anomalies", "latency", "errors", "overview", "stream"))):
        for f in result.findings:
            assert f.until is not None, f.summary
            assert f.until <= LAST[0] + SLACK, f.summary
            assert f.since >= FIRST[1] - SLACK, f.summary


def test_an_engine_that_died_is_an_outage_and_no_good_latency(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "vllm_real" / "engine_death"
    with Database(tmp_path) as database:
        database.append(list(read(folder / "client.jsonl.gz", ImportOptions())))
        reader = PricedReader(database)
        errors, overview, slow = (run_named(reader, name, {}, None) for name in ("errors", "overview", "p99"))
    (outage,) = [f for f in errors.findings if f.trigger == "ServiceOutage"]
    assert outage.until is None
    (failing,) = [f for f in overview.findings if f.trigger == "VeryHighErrorRatio"]
    ended = overview.frames["timeline"].filter(pl.col("requests") > 0).sort("ts").tail(10)
    assert failing.until == ended["ts"][-1].replace(tzinfo=UTC) + timedelta(seconds=10)  # when the client gave up
    assert ended["error_ratio"].to_list() == [1.0] * 10
    assert ended["ttft_p99_s"].to_list() == [None] * 10
    assert all("improved" not in f.summary for f in slow.findings)


def window(span: Phase) -> str:
    return str(Window(*(at.replace(microsecond=0) for at in span)))
