"""Public logs through import into a real store: the figures that were computed from the files independently."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from collector.files.load import load, sniff
from collector.files.options import FileKind, ImportOptions
from store.database import Database
from store.query import MetricQuery, SpanQuery
from store.window import Window

SCALES = (100, 300, 500, 600, 700, 900, 1000, 2000)
ALL = Window(datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "store") as database:
        yield database


def take(store: Database, path: Path, options: ImportOptions | None = None) -> tuple[int, int]:
    """Import a file; rows stored and duplicates, but for the table of series."""
    imported = load(path, options or ImportOptions())
    assert not imported.refused
    [receipt] = store.append(imported.batches)
    rows = ("spans", "metric_samples")
    return sum(receipt.stored.get(n, 0) for n in rows), sum(receipt.duplicates.get(n, 0) for n in rows)


def spans(store: Database, *columns: str) -> pl.DataFrame:
    return store.read(SpanQuery(columns, requests_only=True), ALL)


def quantiles(column: pl.Series, *shares: float) -> list[float]:
    return [pytest.approx(column.quantile(share, "linear"), abs=5e-5) for share in shares]


def test_azure_tokens_have_the_published_quantiles(store: Database, shared: Path) -> None:
    path = shared / "data" / "azure_llm_trace" / "AzureLLMInferenceTrace_conv.csv"
    assert take(store, path) == (19_366, 0)
    frame = spans(store, "ts", "input_tokens", "output_tokens", "service")
    assert quantiles(frame["input_tokens"], 0.5, 0.9, 0.95, 0.99) == [1020, 2734.5, 4083, 4142]
    assert quantiles(frame["output_tokens"], 0.5, 0.9, 0.95, 0.99) == [129, 424, 451, 601]
    assert (frame["input_tokens"].sum(), frame["output_tokens"].sum()) == (22_361_870, 4_088_665)
    minutes = frame.group_by(pl.col("ts").dt.truncate("1m")).len().sort("len", descending=True)
    assert (minutes["ts"][0].strftime("%H:%M"), minutes["len"][0]) == ("18:43", 502)
    assert frame["service"].unique().to_list() == ["AzureLLMInferenceTrace_conv"]


def test_a_second_import_stores_nothing(store: Database, shared: Path) -> None:
    path = shared / "data" / "azure_llm_trace" / "AzureLLMInferenceTrace_conv.csv"
    assert take(store, path) == (19_366, 0)
    assert take(store, path) == (0, 19_366)


@pytest.mark.parametrize(
    ("name", "rows", "errors", "share", "ttft_s"),
    [
        ("lepton_7b", 150, {"HTTP_429": 130}, None, None),
        ("lepton_13b", 150, {"HTTP_429": 130}, None, None),
        ("bedrock_70b", 150, {"-100": 49}, None, None),
        ("together_13b", 150, {"-1": 1}, 0.99, 53.26),  # 52.28 with the 0.0 of the failed call among them
        ("anyscale_70b", 150, {}, 0.5, 0.2128),
        ("anyscale_70b", 150, {}, 0.99, 0.4745),
        ("replicate_70b", 145, {}, 0.99, 63.63),
    ],
)
def test_failed_calls_of_llmperf_are_errors_and_no_latency(
    store: Database, shared: Path, name: str, rows: int, errors: dict[str, int], share: float | None, ttft_s: float
) -> None:
    path = shared / "data" / "llmperf_leaderboard" / "individual" / f"{name}.json"
    assert take(store, path, ImportOptions(at=datetime(2023, 12, 20, tzinfo=UTC))) == (rows, 0)
    frame = spans(store, "error_code", "ttft_s", "e2e_s")
    found = frame["error_code"].drop_nulls().value_counts()
    assert dict(found.iter_rows()) == errors
    assert (frame["ttft_s"] > 0).all()
    assert (frame["e2e_s"] > 0).all()
    if share is not None:
        assert frame["ttft_s"].quantile(share, "linear") == pytest.approx(ttft_s, abs=5e-3 if ttft_s > 1 else 5e-5)


def test_equal_failures_of_two_providers_at_one_stated_time_are_both_kept(store: Database, shared: Path) -> None:
    options = ImportOptions(at=datetime(2023, 12, 20, tzinfo=UTC))
    folder = shared / "data" / "llmperf_leaderboard" / "individual"
    assert [take(store, folder / f"lepton_{size}.json", options) for size in ("7b", "13b")] == [(150, 0), (150, 0)]


def test_the_client_log_of_a_real_vllm_gives_its_known_tail(store: Database, shared: Path) -> None:
    path = shared / "data" / "vllm_real" / "client.jsonl.gz"
    assert take(store, path, ImportOptions(labels={"service": "client"})) == (1_575, 0)
    frame = spans(store, "trace_id", "span_id", "ttft_s", "output_tokens", "input_tokens", "error_code", "status")
    answered = frame.filter(pl.col("output_tokens").is_not_null())
    assert answered["ttft_s"].quantile(0.99, "linear") == pytest.approx(33.72, abs=5e-3)
    assert (answered.height, answered["input_tokens"].sum(), answered["output_tokens"].sum()) == (
        1_458,
        417_761,
        80_631,
    )
    found = frame["error_code"].drop_nulls().value_counts()
    assert dict(found.iter_rows()) == {"HTTP_400": 42, "HTTP_404": 27, "ServerDisconnectedError": 1}
    row = frame.filter(trace_id="679a44dd23c49caea2cf62baba958810").row(0, named=True)
    assert (row["span_id"], row["ttft_s"]) == ("58f92deafd4bd030", 0.100403)


def burst(shared: Path, kind: str, scale: int, ending: str = "json.gz") -> Path:
    return shared / "data" / "burstgpt_vllm_replay" / f"{kind}_log_scale{scale}_prompt500.{ending}"


def scale_options(scale: int) -> ImportOptions:
    return ImportOptions(labels={"service": f"scale{scale}"})


def test_the_three_logs_of_burstgpt_are_told_apart(shared: Path) -> None:
    kinds = [sniff(burst(shared, kind, 100)) for kind in ("detail", "gpu", "vllm")]
    assert kinds == [FileKind.REQUESTS, FileKind.SERIES, FileKind.SERIES]


def test_burstgpt_requests_meet_the_engine_at_their_arrival(store: Database, shared: Path) -> None:
    counts = {
        kind: sum(take(store, burst(shared, kind, scale), scale_options(scale))[0] for scale in SCALES)
        for kind in ("detail", "gpu", "vllm")
    }
    assert counts == {"detail": 4_000, "gpu": 3_063 * 4, "vllm": 2_478 * 7}
    columns = ("ts", "service", "ttft_s", "input_tokens")
    joined = store.read(SpanQuery(columns, ("GPU_utilization",), requests_only=True), ALL)
    for name in ("requests_waiting", "requests_running", "kv_cache_usage_ratio"):
        metric = store.read(MetricQuery((name,)), ALL).select("ts", "service", value=pl.col("value").alias(name))
        joined = joined.join_asof(
            metric.rename({"value": name}).sort("ts"), on="ts", by="service", check_sortedness=False
        )
    met = joined.drop_nulls("requests_waiting").cast({"GPU_utilization": pl.Float64})
    assert met.height == 3_991
    spearman = {
        name: round(met.select(pl.corr("ttft_s", name, method="spearman")).item(), 3)
        for name in (
            "requests_waiting",
            "requests_running",
            "kv_cache_usage_ratio",
            "input_tokens",
            "GPU_utilization",
        )
    }
    assert spearman == {
        "requests_waiting": 0.927, "requests_running": 0.889, "kv_cache_usage_ratio": 0.845, "input_tokens": -0.043,
        "GPU_utilization": -0.536,
    }  # fmt: skip


def test_burstgpt_latencies_and_queues_have_the_published_figures(store: Database, shared: Path) -> None:
    for scale in SCALES:
        for kind in ("detail", "vllm"):
            take(store, burst(shared, kind, scale), scale_options(scale))
    requests = spans(store, "service", "ttft_s", "e2e_s")
    waiting = store.read(MetricQuery(("requests_waiting",)), ALL)
    p99 = [requests.filter(service=f"scale{s}")["ttft_s"].quantile(0.99, "linear") for s in SCALES]
    assert p99 == pytest.approx([0.3756, 13.4517, 45.1149, 53.3347, 60.361, 67.7599, 75.9786, 87.0593], abs=5e-5)
    total = [requests.filter(service=f"scale{s}")["e2e_s"].quantile(0.99, "linear") for s in SCALES]
    assert total == pytest.approx([44.26, 81.76, 91.15, 94.45, 97.93, 101.80, 109.49, 114.42], abs=5e-3)
    assert [waiting.filter(service=f"scale{s}")["value"].max() for s in SCALES] == [4, 49, 110, 136, 155, 181, 201, 294]
    usage = store.read(MetricQuery(("kv_cache_usage_ratio",)), ALL).group_by("service").agg(pl.col("value").max())
    assert 0.19 < usage["value"].min() < usage["value"].max() < 0.47


def test_the_csv_and_the_json_of_one_engine_log_are_the_same_series(store: Database, shared: Path) -> None:
    stored, _ = take(store, burst(shared, "vllm", 300, "csv"), scale_options(300))
    assert take(store, burst(shared, "vllm", 300), scale_options(300)) == (0, stored)
