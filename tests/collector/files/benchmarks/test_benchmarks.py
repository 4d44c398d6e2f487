"""Artefacts of load tests through import into a real store, asked in SQL: the figures their tools state."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collector.files import ImportOptions, load
from collector.files.load import Imported
from collector.files.options import FileKind
from store.database import Database
from store.errors import SourceError, UsageError
from tests.collector.files.benchmarks import artefacts

AT = datetime(2025, 11, 10, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "store") as database:
        yield database


def ask(store: Database, text: str) -> list[tuple[Any, ...]]:
    frame = pl.from_arrow(store.sql(text))
    assert isinstance(frame, pl.DataFrame)
    return frame.rows()


def take(store: Database, path: Path, **options: Any) -> Imported:
    imported = load(path, ImportOptions(**options))
    assert imported.kind is FileKind.BENCHMARK
    store.append(imported.batches)
    return imported


def write(folder: Path, name: str, document: object) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def value(store: Database, metric: str, statistic: str) -> float:
    [(found,)] = ask(store, f"SELECT value FROM benchmarks WHERE metric = '{metric}' AND statistic = '{statistic}'")
    return float(found)


@pytest.fixture
def sweeps(store: Database, shared: Path) -> Database:
    files = sorted((shared / "data" / "inference_perf_results").glob("*.json"))
    assert len(files) == 64
    for path in files:
        assert not take(store, path, at=AT).refused
    return store


def test_the_highest_stage_within_two_seconds_is_known_for_each_configuration(sweeps: Database) -> None:
    found = ask(
        sweeps,
        """SELECT run, max(request_rate), arg_max(value, request_rate) FROM benchmarks
           WHERE tool = 'inference_perf' AND metric = 'e2e_s' AND statistic = 'p99' AND value <= 2
             AND request_rate IS NOT NULL GROUP BY run ORDER BY run""",
    )
    assert [(run, round(rate, 1), round(p99, 3)) for run, rate, p99 in found] == [
        ("vllm", 92.2, 1.381), ("vllm_batch_size", 74.9, 0.955), ("vllm_eagle", 52.5, 1.909),
        ("vllm_quantization", 170.2, 0.953),
    ]  # fmt: skip


def test_what_prometheus_counted_is_kept_apart_from_what_the_client_counted(sweeps: Database) -> None:
    found = ask(
        sweeps,
        """SELECT metric, value FROM benchmarks WHERE run = 'vllm' AND stage = '3'
           AND metric LIKE '%requests_successful' ORDER BY metric""",
    )
    assert found == [("requests_successful", 5531.0), ("server_requests_successful", 10938.0)]


def test_figures_of_inference_perf_are_in_base_units(sweeps: Database) -> None:
    found = ask(
        sweeps,
        """SELECT metric, statistic, round(value, 4), unit FROM benchmarks
           WHERE run = 'vllm' AND stage = '3' AND statistic IN ('p99', 'value')
             AND metric IN ('ttft_s', 'tpot_s', 'throughput_output_tokens_per_second') ORDER BY metric""",
    )
    assert found == [
        ("throughput_output_tokens_per_second", "value", 5693.8841, "tokens/s"), ("tpot_s", "p99", 0.0096, "s"),
        ("ttft_s", "p99", 0.1818, "s"),
    ]  # fmt: skip


def test_the_same_file_twice_stores_nothing(store: Database, shared: Path) -> None:
    path = shared / "data" / "inference_perf_results" / "vllm__stage_3_lifecycle_metrics.json"
    batches = load(path, ImportOptions(at=AT)).batches
    first, second = (store.append(batches)[0] for _ in range(2))
    assert (first.stored["benchmarks"], second.stored["benchmarks"]) == (second.duplicates["benchmarks"], 0)


def test_a_file_that_states_no_time_asks_for_one(shared: Path) -> None:
    with pytest.raises(UsageError, match="states no time"):
        load(shared / "data" / "inference_perf_results" / "vllm__stage_3_lifecycle_metrics.json", ImportOptions())


def test_the_peak_of_nccl_tests_is_no_average(store: Database, shared: Path) -> None:
    take(store, shared / "data" / "nccl_tests" / "a3mega_2x8_h100_all_reduce.txt", at=AT)
    [(bandwidth, size, collective, ranks)] = ask(
        store,
        """SELECT value, labels->>'size_bytes', labels->>'collective', labels->>'ranks' FROM benchmarks
           WHERE metric = 'bus_bandwidth_bytes_per_second' AND statistic = 'out_of_place'
           ORDER BY value DESC LIMIT 1""",
    )
    assert bandwidth == pytest.approx(338.82e9)
    assert (int(size), collective, int(ranks)) == (8 * 1024**3, "all_reduce", 16)
    assert value(store, "bus_bandwidth_mean_of_sizes_bytes_per_second", "mean") == pytest.approx(70.742e9)
    [(rows, slowest)] = ask(store, "SELECT count(*), max(value) FROM benchmarks WHERE metric = 'collective_s'")
    assert (rows, slowest) == (62, pytest.approx(0.047743))


def test_llmperf_summaries_carry_model_load_errors_and_time(store: Database, shared: Path) -> None:
    for path in sorted((shared / "data" / "llmperf_leaderboard" / "summary").glob("*.json")):
        assert not take(store, path).refused
    found = ask(
        store,
        """SELECT model, concurrency, round(value, 4), ts FROM benchmarks
           WHERE run = 'lepton_7b' AND metric = 'ttft_s' AND statistic = 'p50'""",
    )
    assert found == [("llama2-7b", 5.0, 1.1310, datetime(2023, 12, 27, 0, 56, 14))]
    failed = ask(store, "SELECT run, value FROM benchmarks WHERE metric = 'requests_failed' AND value > 0 ORDER BY run")
    assert failed == [("bedrock_70b", 49.0), ("lepton_13b", 130.0), ("lepton_7b", 130.0), ("together_13b", 1.0)]
    rates = ask(
        store,
        """SELECT round(value, 4), unit FROM benchmarks WHERE run = 'lepton_7b'
           AND metric = 'throughput_requests_per_second'""",
    )
    assert rates == [(0.3703, "requests/s")]


def test_single_requests_of_llmperf_stay_a_request_log(shared: Path) -> None:
    path = shared / "data" / "llmperf_leaderboard" / "individual" / "lepton_7b.json"
    imported = load(path, ImportOptions(at=AT))
    assert imported.kind is FileKind.REQUESTS
    frame = imported.batches[0].frames["spans"]
    fine = frame.filter(pl.col("error_code").is_null())
    assert (fine.height, frame["ttft_s"].null_count()) == (20, 130)
    assert frame["ttft_s"].median() == pytest.approx(1.1310, abs=5e-5)


def test_a_summary_of_aiperf_names_model_load_and_errors(store: Database, tmp_path: Path) -> None:
    path = write(tmp_path / "run-7", "profile_export_aiperf.json", artefacts.AIPERF)
    imported = take(store, path, time_zone="Europe/Berlin")
    assert "telemetry" in imported.notes[0]
    [(run, ts, model, concurrency, labels)] = ask(
        store, "SELECT DISTINCT run, ts, model, concurrency, labels FROM benchmarks"
    )
    assert (run, ts, model, concurrency) == (
        "run-7", datetime(2026, 10, 17, 18, 22, 8, 939332), "openai/gpt-oss-20b", 100.0,
    )  # fmt: skip
    assert json.loads(labels)["errors"][0]["count"] == 81
    assert value(store, "ttft_s", "p50") == 0.78754
    assert value(store, "e2e_s", "mean") == pytest.approx(6.55036)
    assert value(store, "e2e_s", "count") == 200
    assert value(store, "throughput_output_tokens_per_second", "value") == 1274.63
    assert value(store, "requests_successful", "value") == 200
    assert value(store, "duration_s", "value") == 15.2


def test_the_csv_of_aiperf_gives_the_same_figures(store: Database, tmp_path: Path) -> None:
    path = write(tmp_path, "profile_export_aiperf.csv", artefacts.AIPERF_CSV)
    imported = take(store, path, at=AT)
    assert {why: refusal.count for why, refusal in imported.refused.items()} == {"GPU telemetry is not read": 1}
    assert value(store, "ttft_s", "p50") == 0.78754
    assert value(store, "output_tokens", "mean") == 96.85
    assert value(store, "throughput_requests_per_second", "value") == 13.16
    assert value(store, "requests_successful", "value") == 200


def test_requests_of_aiperf_become_spans_and_arrivals(store: Database, tmp_path: Path) -> None:
    path = write(tmp_path / "run-7", "profile_export.jsonl", artefacts.AIPERF_REQUESTS)
    imported = take(store, path)
    assert {why: refusal.count for why, refusal in imported.refused.items()} == {"no start of the request": 1}
    assert imported.refused["no start of the request"].first.endswith(":3")
    fine, failed = ask(
        store,
        """SELECT ts, service, ttft_s, tpot_s, e2e_s, input_tokens, output_tokens, error_code FROM spans
           ORDER BY error_code NULLS FIRST""",
    )
    assert fine == (
        datetime(2026, 9, 21, 14, 13, 20, 123456), "run-7", pytest.approx(0.255886568), pytest.approx(0.0052048325),
        pytest.approx(0.297525228), 550, 4, None,
    )  # fmt: skip
    assert failed[2:] == (None, None, pytest.approx(0.00065299), 550, None, "HTTP_499")
    [(offsets, measured_by, joined)] = ask(
        store, "SELECT offsets_us, measured_by, s.ts FROM token_arrivals t JOIN spans s USING (trace_id, span_id, ts)"
    )
    assert (list(offsets), measured_by) == ([255_887, 260_785, 266_101, 297_525], "client")
    assert joined == fine[0]


def test_arrivals_of_chunks_that_hold_several_tokens_are_left_out(store: Database, tmp_path: Path) -> None:
    text = artefacts.AIPERF_REQUESTS.replace(
        '"output_sequence_length": {"value": 4', '"output_sequence_length": {"value": 9'
    )
    take(store, write(tmp_path, "profile_export.jsonl", text))
    assert ask(store, "SELECT count(*) FROM spans") == [(2,)]
    assert ask(store, "SELECT count(*) FROM token_arrivals") == [(0,)]


def test_a_report_of_guidellm_gives_a_stage_each_and_only_successes_have_latencies(
    store: Database, tmp_path: Path
) -> None:
    take(store, write(tmp_path, "benchmarks.json", artefacts.GUIDELLM))
    [(run, stage, ts, model, concurrency)] = ask(
        store, "SELECT DISTINCT run, stage, ts, model, concurrency FROM benchmarks"
    )
    assert (run, stage, ts, model, concurrency) == (
        "run-1", "0 concurrent", datetime(2026, 9, 21, 14, 13, 20, 500_000), "llama-8b", 10.0,
    )  # fmt: skip
    assert value(store, "ttft_s", "p99") == 0.075
    assert value(store, "e2e_s", "p0.1") == 0.3
    assert value(store, "e2e_per_output_token_s", "p50") == 0.009
    assert value(store, "throughput_output_tokens_per_second", "mean") == 40
    assert value(store, "requests_failed", "value") == 4
    assert ask(store, "SELECT * FROM benchmarks WHERE metric = 'itl_s'") == []


def test_requests_of_guidellm_become_spans_without_their_text(store: Database, tmp_path: Path) -> None:
    imported = take(store, write(tmp_path, "benchmarks.json", artefacts.GUIDELLM))
    assert {why: refusal.count for why, refusal in imported.refused.items()} == {"request without a start": 1}
    found = ask(
        store, "SELECT request_id, ttft_s, tpot_s, e2e_s, output_tokens, error_code, model FROM spans ORDER BY ts"
    )
    assert found == [
        ("r1", 0.125, 0.0125, 2.5, 128, None, "llama-8b"), ("r2", None, None, 0.25, None, "ReadTimeout", "llama-8b"),
    ]  # fmt: skip
    assert "hello" not in str(ask(store, "SELECT * FROM spans"))


def test_a_result_of_vllm_states_load_and_latencies(store: Database, tmp_path: Path) -> None:
    take(store, write(tmp_path, "openai-infqps.json", artefacts.VLLM))
    [(ts, model, concurrency, rate)] = ask(
        store, "SELECT DISTINCT ts, model, concurrency, request_rate FROM benchmarks"
    )
    assert (ts, model, concurrency, rate) == (datetime(2026, 11, 30, 12), "Qwen/Qwen3-0.6B", 8.0, None)
    assert value(store, "ttft_s", "p99") == 0.199
    assert value(store, "itl_s", "p99.9") == 0.0305
    assert value(store, "requests_failed", "value") == 1
    assert value(store, "throughput_tokens_per_second", "value") == 5.1
    assert ask(store, "SELECT * FROM spans") == []


def test_a_detailed_result_of_vllm_gives_each_request(store: Database, tmp_path: Path) -> None:
    take(store, write(tmp_path, "result.json", artefacts.VLLM_DETAILED))
    found = ask(
        store,
        """SELECT ts, operation, ttft_s, round(tpot_s, 6), round(e2e_s, 6), input_tokens, output_tokens, error_code
           FROM spans ORDER BY ts""",
    )
    assert found == [
        (datetime(2026, 11, 30, 12), "chat", 0.1, 0.02, 0.16, 100, 4, None),
        (datetime(2026, 11, 30, 12, 0, 0, 500_000), "chat", 0.2, 0.03, 0.23, 200, 2, None),
        (datetime(2026, 11, 30, 12, 0, 1, 750_000), "chat", None, None, None, 50, None, "HTTP_429"),
    ]
    arrived = ask(store, "SELECT offsets_us FROM token_arrivals ORDER BY ts")
    assert [list(offsets) for (offsets,) in arrived] == [[100_000, 120_000, 140_000, 160_000], [200_000, 230_000]]


def test_results_of_vllm_one_a_line_are_stages(store: Database, tmp_path: Path) -> None:
    second = {**artefacts.VLLM, "date": "20261130-120500", "max_concurrency": 16}
    take(store, write(tmp_path, "sweep.json", "\n".join(json.dumps(d) for d in (artefacts.VLLM, second))))
    found = ask(store, "SELECT DISTINCT stage, concurrency FROM benchmarks ORDER BY stage")
    assert found == [("20261130-120100", 8.0), ("20261130-120500", 16.0)]


def test_latencies_of_a_run_without_a_success_are_none(store: Database, tmp_path: Path) -> None:
    nothing = {name: 0.0 if name.endswith("_ms") else number for name, number in artefacts.VLLM.items()}
    take(store, write(tmp_path, "failed.json", {**nothing, "completed": 0, "failed": 3}))
    assert ask(store, "SELECT * FROM benchmarks WHERE metric IN ('ttft_s', 'tpot_s', 'itl_s')") == []
    assert value(store, "requests_failed", "value") == 3


def test_a_broken_artefact_names_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path, "benchmarks.json", json.dumps(artefacts.GUIDELLM)[:-40])
    with pytest.raises(SourceError, match=r"benchmarks\.json:1: broken JSON"):
        load(path, ImportOptions())


def test_labels_name_engine_and_model(store: Database, shared: Path) -> None:
    path = shared / "data" / "inference_perf_results" / "vllm__stage_0_lifecycle_metrics.json"
    take(store, path, at=AT, labels={"model": "llama-8b", "engine": "vllm 0.11", "gpu": "H100"})
    [(engine, model, gpu)] = ask(store, "SELECT DISTINCT engine, model, labels->>'gpu' FROM benchmarks")
    assert (engine, model, gpu) == ("vllm 0.11", "llama-8b", "H100")
