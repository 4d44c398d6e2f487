"""Errors that stand out, outages, aborts and the advice on sampling."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analytics.errors import ANALYSIS, ErrorsParams
from analytics.errors.episodes import _failing
from analytics.errors.meanings import meaning
from analytics.result import Result, Status
from analytics.stats import negative_binomial as nb
from benchmarks.accuracy.heatmap import RULES, score
from collector.files.load import read
from store.errors import UsageError
from store.tables import SPANS
from store.window import Window

START = datetime(2026, 11, 30, 12)


def window_of(rows: pl.DataFrame) -> Window:
    low, high = rows["ts"].min(), rows["ts"].max()
    assert isinstance(low, datetime)
    assert isinstance(high, datetime)
    return Window(low.replace(tzinfo=UTC), high.replace(tzinfo=UTC) + timedelta(microseconds=1))


def requests(seconds: Any, **columns: Any) -> pl.DataFrame:
    n = len(seconds)
    given = {"service": "chat", "status": "ok", "output_tokens": 7, "ttft_s": 0.1, "e2e_s": 1.0} | columns
    frame = pl.DataFrame(
        {
            "trace_id": [f"{i:032x}" for i in range(n)],
            "span_id": [f"{i:016x}" for i in range(n)],
            "ts": [START + timedelta(seconds=float(s)) for s in seconds],
        }
    ).with_columns(pl.Series(name, v) if isinstance(v, list) else pl.lit(v).alias(name) for name, v in given.items())
    return SPANS.conform(frame).with_columns(pl.lit(None, pl.String).alias("aborted"))


def run(rows: pl.DataFrame, window: Window | None = None, **params: Any) -> Result:
    return ANALYSIS.run({"requests": rows}, ErrorsParams(**params), window or window_of(rows))


def codes(n: int, code: str, where: Any) -> list[str | None]:
    return [code if inside else None for inside in where]


def test_a_storm_is_named_by_code_and_place_and_ends() -> None:
    chance = np.random.default_rng(1)
    at = np.sort(chance.uniform(0, 7200, 7200))
    storm = (at > 3000) & (at < 3600) & (chance.random(7200) < 0.4)
    stray = chance.random(7200) < 0.003
    rows = requests(
        at,
        error_code=[("HTTP_429" if s else "HTTP_500" if x else None) for s, x in zip(storm, stray, strict=True)],
        cloud_provider="gcp",
        cloud_region="europe-west4",
    )
    (finding,) = run(rows).findings
    assert finding.labels == {"service": "chat", "code": "HTTP_429"}
    assert "at gcp, europe-west4 failed with HTTP_429 (rate limited)" in finding.summary
    assert finding.until is not None
    assert abs((finding.since.replace(tzinfo=None) - START).total_seconds() - 3000) <= 60
    assert len(finding.evidence["trace_ids"]) == 5


def test_a_storm_that_lasts_holds_its_trigger() -> None:
    at = np.arange(7200.0)
    result = run(requests(at, error_code=codes(7200, "HTTP_503", (at > 6900) & (at % 3 == 0))))
    (finding,) = result.findings
    assert finding.until is None
    (sample,) = result.samples["error_burst_ratio"].to_dicts()
    assert sample["value"] == finding.value
    assert sample["code"] == "HTTP_503"
    assert sample["value"] > 10


def test_a_steady_rate_of_errors_is_no_finding() -> None:
    chance = np.random.default_rng(3)
    for _ in range(20):
        at = np.sort(chance.uniform(0, 7200, 5000))
        found = run(requests(at, error_code=codes(5000, "HTTP_500", chance.random(5000) < 0.05)))
        assert found.findings == ()


def test_an_outage_is_found_though_it_fills_half_of_the_window() -> None:
    at = np.arange(0, 3600.0, 2)
    result = run(requests(at, error_code=codes(len(at), "ConnectionRefusedError", at >= 1800), status="unset"))
    outage = next(f for f in result.findings if f.trigger == "ServiceOutage")
    assert outage.until is None
    assert outage.value == pytest.approx(1798, abs=1)
    assert outage.since.replace(tzinfo=None) == START + timedelta(seconds=1800)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(1, 40)), min_size=1, max_size=40))
def test_outages_are_those_that_a_walk_over_the_seconds_finds(steps: list[tuple[int, int, int]]) -> None:
    seconds = np.cumsum([gap for _, _, gap in steps])
    at = [START + timedelta(seconds=int(s)) for s in seconds]
    oks, bads = ([step[i] for step in steps] for i in (0, 1))
    end = at[-1] + timedelta(seconds=20)
    part = pl.DataFrame({"ts": at, "n_ok": oks, "n_failed": bads}, schema_overrides={"ts": pl.Datetime("us")})
    expected, start, failed = [], None, 0
    for moment, ok, bad in [*zip(at, oks, bads, strict=True), (None, 1, 0)]:
        if ok and start is not None and failed >= 10 and ((moment or end) - start).total_seconds() >= 30:
            expected.append((start, moment, failed))
        start, failed = (None, 0) if ok else (start or (moment if bad else None), failed + bad)
    rows = _failing(part, Window(START.replace(tzinfo=UTC), end.replace(tzinfo=UTC)))
    assert [(row["start"], row["end"], row["failed"]) for row in rows] == expected


def test_failures_among_successes_and_few_failures_are_no_outage() -> None:
    at = np.arange(0, 600.0)
    half = run(requests(at, error_code=codes(600, "HTTP_500", at % 2 == 0)))
    few = run(requests(at, error_code=codes(600, "HTTP_500", at >= 592)))
    assert [f for f in (*half.findings, *few.findings) if f.trigger == "ServiceOutage"] == []


def test_a_service_that_stops_sending_is_told_without_an_alert() -> None:
    rows = requests([*np.arange(0, 1800.0), 3600.0], service=["a"] * 1800 + ["b"])
    result = run(rows)
    assert result.findings == ()
    assert any("no request to a since" in note for note in result.notes)


def test_the_recording_shows_its_storm_and_its_aborts_and_nothing_else(shared: Path) -> None:
    rows = recording(shared / "data" / "vllm_real" / "client.jsonl.gz")
    result = run(rows)
    named = {finding.labels["code"]: finding for finding in result.findings}
    assert set(named) == {"HTTP_400", "HTTP_404", "CLIENT_ABORT"}
    assert named["HTTP_400"].since.strftime("%H:%M") == "16:26"
    assert named["CLIENT_ABORT"].since.strftime("%H:%M") in ("16:26", "16:27")
    top = {row["code"]: row["errors"] for row in result.frames["top"].to_dicts()}
    assert (top["HTTP_400"], top["HTTP_404"], top["CLIENT_ABORT"]) == (42, 27, 47)


def test_the_death_of_an_engine_is_an_outage_with_its_start(shared: Path) -> None:
    result = run(recording(shared / "data" / "vllm_real" / "engine_death" / "client.jsonl.gz"))
    outage = next(f for f in result.findings if f.trigger == "ServiceOutage")
    assert outage.since.strftime("%H:%M:%S") == "16:08:17"
    assert outage.until is None
    assert outage.evidence["failed"] == 354
    cut = [row for row in result.frames["top"].to_dicts() if row["code"] == "STREAM_CUT"]
    assert cut[0]["errors"] >= 3
    assert {row["meaning"] for row in result.frames["top"].to_dicts()} >= {"not reachable", "cut in the middle"}


def recording(path: Path) -> pl.DataFrame:
    (batch,) = read(path)
    spans = batch.frames["spans"]
    aborted = pl.col("attributes").str.json_path_match("$.aborted").alias("aborted")
    return spans.with_columns(aborted).sort("ts")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("HTTP_429", "rate limited"), ("GRPC_UNAVAILABLE", "overloaded or unavailable"), ("TIMEOUT", "timed out"),
        ("HTTP_418", "bad request"), ("HTTP_500", "fault of the server"), ("ClientConnectorError", "not reachable"),
        ("RateLimitError", "rate limited"), ("rate_limit_exceeded", "rate limited"), ("GRPC_ABORTED", "conflict"),
        ("ECONNREFUSED", "not reachable"), ("context_length_exceeded", "too long"),
        ("HTTP_460", "given up by the client"),
        ("invalid_request_error", "bad request"), ("content_policy_violation", "stopped by a content filter"),
        ("-100", "unknown"), ("FAILED", "unknown"),
    ],
)  # fmt: skip
def test_codes_have_a_common_meaning(code: str, expected: str) -> None:
    assert meaning(code) == expected


def test_the_tail_is_that_of_scipy_and_poisson_without_spread() -> None:
    counts, expected = np.array([[0.0, 3.0, 12.0]]), np.array([[2.0, 2.0, 2.0]])
    for alpha in (0.0, 0.25):
        law = stats.poisson(2.0) if alpha == 0 else stats.nbinom(1 / alpha, 1 / (1 + alpha * 2.0))
        assert nb.tail(counts, expected, np.array([alpha]))[0] == pytest.approx(law.sf(counts[0] - 1))


def test_the_dispersion_of_simulated_counts_comes_back() -> None:
    chance = np.random.default_rng(5)
    exposure = np.full((30, 500), 1000.0)
    counts = chance.poisson(0.02 * exposure * chance.gamma(4, 0.25, exposure.shape)).astype(float)
    fitted = nb.baseline(counts, exposure)
    assert fitted.dispersion.mean() == pytest.approx(0.25, rel=0.1)
    assert np.nanmean(fitted.expected) == pytest.approx(20, rel=0.05)


def test_false_discoveries_and_recall_on_simulated_weeks_meet_the_goal() -> None:
    _, fdr, recall, _ = score(RULES["infractl: negative binomial, BH 5 %"], weeks=30, longest=1)
    _, naive, _, _ = score(RULES["Poisson, BH 5 %"], weeks=12, longest=1)
    assert fdr <= 0.08
    assert recall >= 0.30
    assert naive > 0.4


def test_sampling_keeps_every_failure_and_writes_a_policy_that_reads_back() -> None:
    rows = requests(np.arange(0, 3600.0, 0.5), error_code=codes(7200, "HTTP_500", np.arange(7200) % 100 == 0))
    result = run(rows, tiers=("chat=gold",))
    (advice,) = result.frames["sampling"].to_dicts()
    assert (advice["tier"], advice["keep_ratio"]) == ("gold", 0.10)
    assert advice["requests_per_day"] == pytest.approx(172_800, rel=0.001)
    policies = yaml.safe_load(result.frames["sampling_policy"]["yaml"][0])["processors"]["tail_sampling"]["policies"]
    kinds = ["status_code", "string_attribute", *["numeric_attribute"] * 3, "and", "and"]
    assert [policy["type"] for policy in policies] == kinds
    assert all(policy["type"] in policy for policy in (*policies, *policies[-1]["and"]["and_sub_policy"]))
    assert len({policy["name"] for policy in policies}) == len(policies)
    share = policies[-1]["and"]["and_sub_policy"][1]["probabilistic"]["sampling_percentage"]
    assert share == 10.0
    with pytest.raises(UsageError, match="tiers cannot be"):
        run(rows, tiers=("chat=platinum",))


def test_an_abort_is_not_counted_as_kept_since_no_span_tells_a_collector() -> None:
    rows = requests(np.arange(0, 600.0)).with_columns(
        pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("true")).alias("aborted")
    )
    (advice,) = run(rows).frames["sampling"].to_dicts()
    assert advice["error_ratio"] == 0
    assert advice["kept_per_day"] < advice["requests_per_day"] / 10


def test_rollups_give_the_same_episodes_without_traces() -> None:
    rows = pl.DataFrame(
        {
            "bucket": [START + timedelta(minutes=5 * i) for i in range(24) for _ in (0, 1)],
            "service": ["chat"] * 48,
            "cloud_provider": ["aws"] * 48,
            "cloud_region": [None] * 48,
            "error_code": [None, "HTTP_429"] * 24,
            "requests": [1000, 5] * 20 + [1000, 300] * 4,
            "errors": [0, 5] * 20 + [0, 300] * 4,
        },
        schema_overrides={"bucket": pl.Datetime("us"), "cloud_region": pl.String},
    )
    window = Window(START.replace(tzinfo=UTC), START.replace(tzinfo=UTC) + timedelta(hours=2))
    result = ANALYSIS.run({"rolled": rows}, ErrorsParams(), window)
    (finding,) = result.findings
    assert finding.until is None
    assert finding.since.strftime("%H:%M") == "13:40"
    assert result.status is Status.OK
    assert any("from rollups" in note for note in result.notes)
