"""Engines side by side: errors are no latencies, best rates, refused comparisons, bounds of buckets."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.engines import ANALYSIS, TESTS, EnginesParams
from analytics.engines.differences import mover, p_of
from analytics.engines.live import NAMES
from analytics.result import Result, Status
from collector.files.benchmarks.inference_perf import read_inference_perf
from collector.files.content import Content, Format
from store.tables import BENCHMARKS, SPANS
from store.window import Window
from tests.analytics.frames_of import metric
from tests.analytics.metrics.stored import at, span, stored

START = datetime(2026, 11, 30, 12)
HOUR = Window(START.replace(tzinfo=UTC), START.replace(tzinfo=UTC) + timedelta(hours=1))
NO_TESTS = BENCHMARKS.conform(pl.DataFrame({"run": pl.Series([], dtype=pl.String)})).select(TESTS)


def requests(service: str, ttft: Any, every_s: float = 1.0, **columns: Any) -> pl.DataFrame:
    n = len(ttft)
    given = {
        "trace_id": [f"{service}{i}" for i in range(n)],
        "span_id": [f"{i:016x}" for i in range(n)],
        "service": [service] * n,
        "ts": [START + timedelta(seconds=i * every_s) for i in range(n)],
        "ttft_s": list(ttft),
        "e2e_s": [t + 1.0 for t in ttft],
        "tpot_s": [0.01] * n,
        "input_tokens": [1000] * n,
        "output_tokens": [100] * n,
        "ttft_source": ["client"] * n,
    }
    return SPANS.conform(pl.DataFrame(given | columns)).with_columns(pl.lit(1.0).alias("share_read"))


def run(
    spans: pl.DataFrame | None = None,
    metrics: pl.DataFrame | None = None,
    tests: pl.DataFrame = NO_TESTS,
    window: Window = HOUR,
    **params: Any,
) -> Result:
    inputs = {
        "requests": requests("none", []) if spans is None else spans,
        "metrics": metric("none", [], []) if metrics is None else metrics,
        "benchmarks": tests,
    }
    return ANALYSIS.run(inputs, EnginesParams(**params), window)


def verdicts(result: Result) -> dict[str, str]:
    return dict(result.frames["differences"].select("measure", "verdict").iter_rows())


def test_a_slower_engine_is_called_higher_and_an_equal_one_undecided() -> None:
    rng = np.random.default_rng(5)
    slow = pl.concat([requests("a", rng.gamma(4, 0.05, 800)), requests("b", rng.gamma(4, 0.08, 800))])
    found = verdicts(run(slow, baseline="a"))
    assert (found["ttft_p50_s"], found["ttft_p99_s"], found["tpot_p50_s"]) == ("higher", "higher", "undecided")
    same = pl.concat([requests("a", rng.gamma(4, 0.05, 800)), requests("b", rng.gamma(4, 0.05, 800))])
    assert set(verdicts(run(same)).values()) == {"undecided"}


def test_intervals_of_a_difference_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(11)
    truth = np.log(2) * 0.5  # medians of exponentials with means 1 and 1.5
    held = 0
    for _ in range(150):
        both = pl.concat([requests("a", rng.exponential(1.0, 120)), requests("b", rng.exponential(1.5, 120))])
        frame = run(both, baseline="a").frames["differences"]
        row = frame.row(by_predicate=pl.col("measure") == "ttft_p50_s", named=True)
        held += row["ci_low"] <= truth <= row["ci_high"]
    assert held >= 136, "95 % of 150 is 142.5, three standard deviations less 134.5"


def test_intervals_hold_where_minutes_have_a_level_of_their_own() -> None:
    rng = np.random.default_rng(12)
    held = 0
    for _ in range(60):
        arms = [rng.exponential(1.0, 2_400) * np.repeat(np.exp(rng.normal(0, 0.5, 40)), 60) for _ in "ab"]
        frame = run(pl.concat([requests(name, arm) for name, arm in zip("ab", arms, strict=True)]), baseline="a")
        row = frame.frames["differences"].row(by_predicate=pl.col("measure") == "ttft_p50_s", named=True)
        held += row["ci_low"] <= 0 <= row["ci_high"]
    assert held >= 52, "95 % of 60 is 57, three standard deviations less 52"


@given(st.lists(st.floats(0, 10), min_size=6, max_size=6))
def test_a_difference_turned_round_changes_its_sign_only(numbers: list[float]) -> None:
    a_low, a, a_high = sorted(numbers[:3])
    b_low, b, b_high = sorted(numbers[3:])
    there, back = mover((a, a_low, a_high), (b, b_low, b_high)), mover((b, b_low, b_high), (a, a_low, a_high))
    assert there == pytest.approx((-back[0], -back[2], -back[1]))
    assert there[1] <= there[0] <= there[2]
    assert 0 <= p_of(*there) <= 1


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [("input_tokens", 2000, "tokens a prompt"), ("output_tokens", 300, "an answer"), ("model", "other", "the models")],
)
def test_other_traffic_is_refused_in_words(column: str, value: Any, words: str) -> None:
    a = requests("a", [0.1] * 200, model=["m"] * 200)
    b = requests("b", [0.2] * 200, **({"model": ["m"] * 200} | {column: [value] * 200}))
    result = run(pl.concat([a, b]))
    assert words in verdicts(result)["e2e_p50_s"]
    assert result.frames["differences"].filter(measure="e2e_p50_s")["estimate"].to_list() == [None]


def test_other_load_is_refused_and_so_is_ttft_measured_elsewhere() -> None:
    quick = pl.concat([requests("a", [0.1] * 200), requests("b", [0.1] * 200, every_s=0.1)])
    assert all("per second" in verdict for verdict in verdicts(run(quick)).values())
    mixed = pl.concat([requests("a", [0.1] * 200), requests("b", [0.1] * 200, ttft_source=["server"] * 200)])
    found = verdicts(run(mixed))
    assert "measured by" in found["ttft_p50_s"]
    assert found["e2e_p50_s"] == "undecided"


def test_failed_requests_are_errors_and_in_no_latency() -> None:
    codes = ["HTTP_429"] * 130 + [None] * 20
    rows = requests("lepton", [0.0] * 130 + [1.0] * 20, error_code=codes)
    (row,) = run(rows).frames["engines"].to_dicts()
    assert (row["n"], row["failed"], row["ttft_p50_s"], row["ttft_p99_s"]) == (150, 130, 1.0, None)
    assert row["error_low"] < 130 / 150 < row["error_high"]


def test_hosted_apis_of_the_leaderboard_have_their_right_medians(shared: Path) -> None:
    for name, failed, p50, p99 in (("lepton_7b", 130, 1.13096, None), ("anyscale_70b", 0, 0.2128, 0.4745)):
        path = shared / f"data/llmperf_leaderboard/individual/{name}.json"
        log = json.loads(path.read_text())
        codes = [None if one["error_code"] is None else str(one["error_code"]) for one in log]
        (row,) = run(requests(name, [one["ttft_s"] for one in log], error_code=codes)).frames["engines"].to_dicts()
        assert (row["n"], row["failed"]) == (150, failed)
        assert row["ttft_p50_s"] == pytest.approx(p50, abs=1e-4)
        assert row["ttft_p99_s"] == (None if p99 is None else pytest.approx(p99, abs=1e-4))


def test_speed_is_told_by_length_of_prompt() -> None:
    lengths = [8192] * 30 + [8193] * 30
    rows = requests("a", [0.0] * 60, input_tokens=lengths, e2e_s=[1.0] * 30 + [4.0] * 30)
    found = run(rows).frames["bands"].select("band", "n", "tokens_per_second", "tokens_low").rows()
    assert found == [("<= 8K", 30, 100.0, 100.0), ("<= 16K", 30, 25.0, 25.0)]


def test_made_up_starts_give_no_rate() -> None:
    result = run(requests("a", [0.1] * 50, every_s=1e-6))
    assert result.frames["engines"]["requests_per_second"].to_list() == [None]
    assert any("starts of requests are not known" in note for note in result.notes)


def load_test(shared: Path) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for path in sorted((shared / "data/inference_perf_results").glob("*lifecycle*.json")):
        for one in read_inference_perf(Content(path, path.read_bytes(), Format.JSON)).runs:
            about: dict[str, Any] = {
                "run": one.name,
                "stage": one.stage,
                "tool": one.tool,
                "engine": one.engine,
                "ts": START,
            }
            about["request_rate"] = one.request_rate
            rows += [about | {"metric": f.metric, "statistic": f.statistic, "value": f.value} for f in one.figures]
    return BENCHMARKS.conform(pl.DataFrame(rows, infer_schema_length=None)).select(TESTS)


def test_best_rates_are_those_of_the_load_sweeps(shared: Path) -> None:
    frame = run(tests=load_test(shared)).frames["best_rate"]
    found = {
        name: (round(rate, 1), round(p99, 3)) for name, rate, p99 in frame.select("run", "best_rate", "p99_s").rows()
    }
    assert found == {
        "vllm": (92.2, 1.381),
        "vllm_batch_size": (74.9, 0.955),
        "vllm_eagle": (52.5, 1.909),
        "vllm_quantization": (170.2, 0.953),
    }  # fmt: skip


def test_a_limit_that_no_stage_keeps_is_said_and_looser_ones_never_lower_the_rate(shared: Path) -> None:
    tests = load_test(shared)
    none = run(tests=tests, p99_limit=0.001).frames["best_rate"]
    assert none["best_rate"].null_count() == none.height
    assert all("no stage" in note for note in none["note"])
    rates = [run(tests=tests, p99_limit=limit).frames["best_rate"]["best_rate"].to_list() for limit in (1.0, 2.0, 9.0)]
    for lower, higher in pairwise(rates):
        assert all(a is None or a <= b for a, b in zip(lower, higher, strict=True))


def test_a_quantile_beyond_the_last_bucket_is_not_guessed(shared: Path, tmp_path: Path) -> None:
    page = (shared / "data/engine_metrics/sglang_docs_llama31_8b_overloaded.prom").read_text()
    (row,) = run(metrics=stored(tmp_path, {0: page}, NAMES), window=span(0, 0)).frames["live"].to_dicts()
    assert (row["engine"], row["ttft_p99"], row["ttft_p99_s"]) == ("sglang", "> 30 s", None)
    assert row["since_start"]


def test_triton_shows_the_peak_of_its_memory(tmp_path: Path) -> None:
    page = 'nv_inference_request_success{{model="m"}} {}\nnv_gpu_memory_used_bytes{{gpu_uuid="g"}} {}\n'
    pages: dict[float, str] = {0: page.format(1, 5e9), 10: page.format(11, 7e9), 20: page.format(21, 6e9)}
    metrics = stored(tmp_path, pages, NAMES)
    (row,) = run(metrics=metrics, window=Window(at(-1), at(30))).frames["live"].to_dicts()
    assert (row["engine"], row["peak_memory_bytes"]) == ("triton", 7e9)


def test_nothing_is_said_to_be_nothing() -> None:
    result = run()
    assert result.status is Status.EMPTY
    assert "no model requests" in result.notes[0]
