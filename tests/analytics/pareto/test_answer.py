"""Analysis `pareto`: requests, load tests and typed points; what is refused, and what rests on noise."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from analytics.pareto import ANALYSIS, COLUMNS, TESTS, inputs
from analytics.result import Result, Status
from infractl.main import cli
from infractl.priced import SCHEMA
from store.errors import UsageError
from store.query import PriceQuery, RowQuery, SpanQuery
from store.tables import BENCHMARKS, SPANS
from store.window import Window

START = datetime(2026, 11, 30, 12)
WINDOW = Window(START.replace(tzinfo=UTC), START.replace(tzinfo=UTC) + timedelta(hours=1))
DOCUMENTS = "Llama-3-8B:4.2:187:0.73,Qwen2-7B:3.9:162:0.68,Gemma-2-9B:3.5:215:0.61"
ALL_THREE = "compression:max,latency_ms:min,score:max"
NO_PRICES = pl.DataFrame(schema={name: kind.polars() for name, kind in SCHEMA.items()})


def requests(model: str, n: int, ttft_s: float, **more: Any) -> pl.DataFrame:
    """Requests of a model, spread over 1,000 s, whose times to the first token vary around a median."""
    rng = np.random.default_rng(len(model))
    rows: dict[str, Any] = {
        "ts": [START + timedelta(seconds=1000 * k / max(n - 1, 1)) for k in range(n)],
        "model": [model] * n, "provider": ["openai"] * n, "status": ["ok"] * n, "input_tokens": [100] * n,
        "output_tokens": [50] * n, "ttft_s": rng.lognormal(np.log(ttft_s), 0.3, n), "tpot_s": [0.02] * n,
        "e2e_s": [2.0] * n, **{name: [value] * n for name, value in more.items()},
    }  # fmt: skip
    types = {name: SPANS.schema()[name] for name in COLUMNS}
    return pl.DataFrame({k: pl.Series(k, rows.get(k, [None] * n), t, strict=False) for k, t in types.items()})


def answer(*groups: pl.DataFrame, prices: pl.DataFrame = NO_PRICES, **params: Any) -> Result:
    rows = pl.concat(groups)
    given = {"requests": rows, "prices": prices, "benchmarks": figures([])}
    return ANALYSIS.run(given, ANALYSIS.make_params(params), WINDOW)


def figures(rows: list[tuple[str, str, str, str, float]]) -> pl.DataFrame:
    """Rows of load tests: run, stage, metric, statistic, value."""
    types = {name: BENCHMARKS.schema()[name] for name in TESTS}
    made = [
        dict(zip(("run", "stage", "metric", "statistic", "value"), row, strict=True)) | {"ts": START} for row in rows
    ]
    return pl.DataFrame([{**dict.fromkeys(types), **row} for row in made], schema=types)


def test_the_documents_three_models_have_a_front_of_two() -> None:
    result = ANALYSIS.run({}, ANALYSIS.make_params({"points": DOCUMENTS, "objectives": ALL_THREE}), WINDOW)
    assert result.frames["front"]["configuration"].to_list() == ["Qwen2-7B", "Llama-3-8B"]
    beaten = result.frames["dominated"].row(0, named=True)
    assert (beaten["configuration"], beaten["dominated_by"]) == ("Gemma-2-9B", "Llama-3-8B")
    volume = result.frames["hypervolume"].row(0, named=True)
    assert volume["reference"] == "3.15, 236.5, 0.549"
    llama, qwen, both = 1.05 * 49.5 * 0.181, 0.75 * 74.5 * 0.131, 0.75 * 49.5 * 0.131
    assert volume["hypervolume"] == pytest.approx(llama + qwen - both)
    assert result.frames["front"]["verdict"].unique().to_list() == ["no measure of noise"]


def test_a_reference_that_is_given_is_used_in_the_units_of_the_objectives() -> None:
    given = {"points": "a:1:5,b:2:4", "objectives": "x:min,y:max", "reference": "3,0"}
    row = ANALYSIS.run({}, ANALYSIS.make_params(given), WINDOW).frames["hypervolume"].row(0, named=True)
    assert (row["hypervolume"], row["reference_is"], row["on_front"]) == (10.0, "given", 1)


def test_it_asks_for_requests_prices_and_load_tests_and_with_points_for_nothing() -> None:
    asked = inputs(ANALYSIS.make_params({"by": "model,team", "objectives": "ttft_p99_s,cost_per_1k"}))
    assert set(inputs(ANALYSIS.make_params({}))) == {"requests", "benchmarks"}
    assert [type(query) for query in asked.values()] == [SpanQuery, PriceQuery, RowQuery]
    assert set(inputs(ANALYSIS.make_params({"source": "benchmarks"}))) == {"benchmarks"}
    assert inputs(ANALYSIS.make_params({"points": "a:1:2"})) == {}


def test_requests_are_compared_by_model_with_the_share_of_draws_on_the_front() -> None:
    result = answer(
        requests("fast", 400, 0.2), requests("slow", 800, 0.8),
        objectives="ttft_p99_s,throughput_output_tokens_per_second",
    )  # fmt: skip
    front = result.frames["front"]
    assert front["model"].to_list() == ["fast", "slow"]
    assert front["second"].to_list() == pytest.approx([400 * 50 / 1002, 800 * 50 / 1002])
    assert front["front_share"].to_list() == [1.0, 1.0]
    assert result.samples["pareto_front_share"].height == 2
    assert any("not what a configuration could do" in note for note in result.notes)


def test_a_front_that_rests_on_noise_says_so() -> None:
    result = answer(
        requests("a", 150, 0.4), requests("bb", 150, 0.4), requests("ccc", 150, 0.4), objectives="ttft_p50_s,e2e_p99_s"
    )
    verdicts = [*result.frames["front"]["verdict"], *result.frames["dominated"]["verdict"]]
    assert "chance could decide otherwise" in verdicts


def test_few_requests_and_missing_values_are_left_out_in_words() -> None:
    result = answer(requests("m", 300, 0.2), requests("few", 30, 0.2))
    assert result.frames["hypervolume"]["compared"].to_list() == [1]
    assert "few: 30 of 100 requests, left out" in result.notes
    assert "one configuration: there is nothing to compare it with" in result.notes
    none = answer(requests("m", 300, 0.2), objectives="ttft_p99_s,quality:max")
    assert none.status is Status.REFUSED
    assert any(note.startswith("quality is not measured anywhere") for note in none.notes)
    assert answer(requests("few", 30, 0.2)).status is Status.REFUSED


def test_failed_requests_have_no_latency_but_count_as_errors() -> None:
    failed = requests("m", 100, 50.0, error_code="HTTP_500", status="error")
    row = (
        answer(requests("m", 300, 0.2), failed, objectives="ttft_p99_s,error_ratio").frames["front"].row(0, named=True)
    )
    assert row["first"] < 1
    assert row["second"] == 0.25


def test_cost_is_what_requests_state_else_their_tokens_at_the_prices_in_force() -> None:
    stated = requests("m", 200, 0.2, cost_usd=0.3)
    assert answer(stated, objectives="e2e_p99_s,cost_per_1k").frames["front"]["second"].to_list() == [2.0]
    rows = [
        {"provider": "openai", "model": "m", "valid_from": datetime(2026, 1, 1), "tokens_kind": kind, "batch": False,
         "above_input_tokens": 0, "per_million": Decimal(price), "currency": "USD", "by_rule": False}
        for kind, price in (("input", 3), ("output", 6))
    ]  # fmt: skip
    types = dict(NO_PRICES.schema)
    prices = pl.DataFrame([{**dict.fromkeys(types), **row} for row in rows], schema=types)
    priced = answer(requests("m", 200, 0.2), prices=prices, objectives="e2e_p99_s,cost_per_1k,cost_per_request")
    row = priced.frames["front"].row(0, named=True)
    assert row["second"] == pytest.approx((100 * 3 + 50 * 6) / 1e6 / 150 * 1000)
    assert row["third"] == pytest.approx(0.0006)
    unpriced = answer(requests("m", 200, 0.2), objectives="e2e_p99_s,cost_per_1k")
    assert unpriced.status is Status.REFUSED


def test_the_draws_of_a_quantile_are_those_of_resampling() -> None:
    from analytics.pareto.measured import _quantile

    rng = np.random.default_rng(1)
    values = rng.lognormal(0, 1, 500)
    value, drawn = _quantile(values, 0.9, 4000, rng)
    resampled = np.quantile(rng.choice(values, (4000, 500)), 0.9, axis=1, method="inverted_cdf")
    assert value == np.quantile(values, 0.9, method="inverted_cdf")
    for q in (0.05, 0.5, 0.95):
        assert np.quantile(drawn, q) == pytest.approx(np.quantile(resampled, q), rel=0.04)


def test_load_tests_are_compared_by_stage_and_the_summary_is_none() -> None:
    rows = []
    for stage, ttft, speed in (("0", 0.1, 100.0), ("1", 0.2, 900.0), ("2", 0.5, 800.0), ("summary", 0.01, 9999.0)):
        rows += [("v", stage, "ttft_s", "p99", ttft), ("v", stage, "throughput_tokens_per_second", "value", speed)]
        rows += [("v", stage, "requests_successful", "value", 95.0), ("v", stage, "requests_failed", "value", 5.0)]
    given = {"requests": requests("m", 0, 1.0), "prices": NO_PRICES, "benchmarks": figures(rows)}
    result = ANALYSIS.run(given, ANALYSIS.make_params({}), WINDOW)
    assert result.frames["front"]["configuration"].to_list() == ["v stage 0", "v stage 1"]
    assert result.frames["dominated"]["dominated_by"].to_list() == ["v stage 1"]
    assert result.frames["front"]["n"].to_list() == [95, 95]
    errors = ANALYSIS.run(given, ANALYSIS.make_params({"objectives": "error_ratio,ttft_p99_s"}), WINDOW)
    assert errors.frames["front"]["first"].to_list() == [0.05]


@pytest.mark.parametrize(
    "params",
    [{"objectives": "ttft_p99_s"}, {"objectives": "a:up,b:min"}, {"objectives": "score,ttft_p99_s"},
     {"objectives": "a:min,a:max"}, {"objectives": "a:min,b:min", "points": "x:1"},
     {"objectives": "a:min,b:min", "points": "x:1:nan"},
     {"objectives": "a:min,b:min", "points": "x:1:2", "reference": "1"},
     {"objectives": "a:min,b:min", "points": "x:1:2", "reference": "1,z"}],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(params: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        ANALYSIS.run({}, ANALYSIS.make_params(params), WINDOW)


def test_real_load_tests_of_four_servers_have_the_quantised_one_in_front(shared: Path, tmp_path: Path) -> None:
    files = sorted(map(str, (shared / "data" / "inference_perf_results").glob("*.json")))
    run, data = CliRunner().invoke, ["--data", str(tmp_path / "d")]
    assert run(cli, ["import", *files, "--time", "2026-11-30T12:00:00Z", *data]).exit_code == 0
    got = run(cli, ["analyze", "pareto", "--window", "2026-11-30..2026-12-01", "--format", "json", *data])
    frames = pl.read_json(got.output.encode())["frames"][0]
    assert [row["configuration"] for row in frames["front"]] == [f"vllm_quantization stage {k}" for k in range(1, 7)]
    assert frames["hypervolume"][0]["compared"] == 28


def test_typed_points_need_no_store(tmp_path: Path) -> None:
    given = ["analyze", "pareto", "--points", "a:1:2,b:2:1", "--objectives", "x:min,y:min"]
    done = CliRunner().invoke(cli, [*given, "--data", str(tmp_path / "none")])
    assert done.exit_code == 0
    assert "the worst value by 10 %" in done.output
    assert not (tmp_path / "none").exists()
