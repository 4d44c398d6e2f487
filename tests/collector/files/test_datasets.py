"""Public data sets through import: rows of every file, or the sentence with which it is refused; and their answers."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collector.files import ImportOptions, load, sniff
from store.database import Database
from store.errors import InfractlError, UsageError
from store.query import MetricQuery, SpanQuery
from store.window import Window

AT = datetime(2026, 2, 3, 15, 20, tzinfo=UTC)
ALL = Window(datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
ROWS = ("spans", "metric_samples", "events")
FOLDERS = ("otlp_json", "genai_spans", "alibaba_gentd26", "azure_llm_trace", "request_length_traces", "servegen")

STORED = {
    "otlp_json/jaeger-ui_otlp2jaeger-in-error.json": ("otlp", 1),
    "otlp_json/jaeger-ui_otlp2jaeger-in.json": ("otlp", 2),
    "otlp_json/jaeger-ui_otlp2jaeger-multi-in.json.txt": ("otlp", 4),
    "otlp_json/jaeger-ui_otlp2jaeger-out.json": ("jaeger", 2),
    "otlp_json/opentelemetry-proto_metrics.json": ("otlp", 12),
    "otlp_json/opentelemetry-proto_trace.json": ("otlp", 1),
    "genai_spans/langfuse_agno-2025-06-11.json": ("langfuse", 6),
    "genai_spans/langfuse_google-adk-2025-08-28.json": ("langfuse", 5),
    "genai_spans/langfuse_google-vertex-tools-langchain-2025-09-19.json": ("langfuse", 1),
    "genai_spans/langfuse_koog-2025-08-26.json": ("langfuse", 11),
    "genai_spans/langfuse_langgraph-2025-08-22.json": ("langfuse", 9),
    "genai_spans/langfuse_llamaindex-2025-06-05.json": ("langfuse", 2),
    "genai_spans/langfuse_microsoft-agent-2025-10-14.json": ("langfuse", 4),
    "genai_spans/langfuse_openai-agents-2025-09-30.json": ("langfuse", 5),
    "genai_spans/langfuse_openai-assistants-2024-05-29.json": ("langfuse", 4),
    "genai_spans/openinference-genai__openinference_client_span_input_output_only.json": ("sdk_spans", 1),
    "genai_spans/openinference-genai__openinference_client_span_tool_calls.json": ("sdk_spans", 1),
    "genai_spans/openinference-genai__otel_genai_client_span_tool_calls.json": ("sdk_spans", 1),
    "genai_spans/openinference-genai__otel_genai_deprecated_client_span_tool_calls.json": ("sdk_spans", 1),
    "genai_spans/openinference-genai__otel_genai_tool_execution_span.json": ("sdk_spans", 1),
    "genai_spans/openinference-vercel__ai-embed-doEmbed.json": ("sdk_spans", 1),
    "genai_spans/openinference-vercel__ai-embed.json": ("sdk_spans", 1),
    "genai_spans/openinference-vercel__ai-generateText-doGenerate.json": ("sdk_spans", 2),
    "genai_spans/openinference-vercel__ai-generateText.json": ("sdk_spans", 2),
    "genai_spans/openinference-vercel__ai-streamText-doStream.json": ("sdk_spans", 1),
    "genai_spans/openinference-vercel__ai-streamText.json": ("sdk_spans", 1),
    "alibaba_gentd26/basemodel_update_latency_anon.parquet": ("series", 7_531),
    "alibaba_gentd26/lora_request_trace.part1.parquet": ("requests", 16_093),
    "alibaba_gentd26/lora_update_latency_anon.parquet": ("series", 27_415),
    "alibaba_gentd26/model_predict_data_anon.parquet": ("series", 6_254),
    "alibaba_gentd26/pipeline_inference_data_anon.parquet": ("series", 34_421),
    "alibaba_gentd26/pipeline_update_latency_anon.parquet": ("series", 36_046),
    "alibaba_gentd26/pod_gpu_duty_cycle_anon.parquet": ("series", 157_417),
    "alibaba_gentd26/pod_gpu_memory_used_bytes_anon.parquet": ("series", 161_413),
    "alibaba_gentd26/qps.parquet": ("series", 24_627),
    "alibaba_gentd26/queue_rt_raw_anon.parquet": ("series", 23_478),
    "alibaba_gentd26/queue_size_raw_anon.parquet": ("series", 1_434),
    "azure_llm_trace/AzureLLMInferenceTrace_conv.csv": ("requests", 19_366),
    "request_length_traces/etalon_sharegpt_8k.csv.gz": ("requests", 30_731),
    "servegen/language_m-large_chunk-112-trace.csv.gz": ("servegen", 2_016 * 4),
    "servegen/language_m-small_chunk-14-dataset.json.gz": ("servegen", 56 * 2 * 4),
    "servegen/language_m-small_chunk-14-trace.csv.gz": ("servegen", 2_016 + 1_979 * 3),
    "servegen/multimodal_mm-image_chunk-1-dataset.json": ("servegen", 4 * 8 * 4),
    "servegen/multimodal_mm-image_chunk-1-trace.csv": ("servegen", 144 + 31 * 3),
    "servegen/reason_deepseek-r1_chunk-1-dataset.json.gz": ("servegen", 4 * 3 * 4),
    "servegen/reason_deepseek-r1_chunk-1-trace.csv": ("servegen", 144 + 110 * 3),
}
"""Kind and rows of a file imported with a time for content that states none."""
LOGS = "1 OTLP log records and nothing else; infractl takes traces and metrics"
REFUSED = {
    "otlp_json/opentelemetry-proto_events.json": LOGS,
    "otlp_json/opentelemetry-proto_logs.json": LOGS,
    "genai_spans/openinference-vercel__capture-results.json": "no column is known as the time",
}
UNTIMED = {
    "request_length_traces/etalon_sharegpt_8k.csv.gz": "no column is known as the time of a request",
    "genai_spans/openinference-genai__otel_genai_tool_execution_span.json": "attributes of a span without its time",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "store") as database:
        yield database


def take(store: Database, path: Path, **options: Any) -> int:
    """Import a file of which nothing is refused; rows stored."""
    imported = load(path, ImportOptions(**options))
    assert not imported.refused
    [receipt] = store.append(imported.batches)
    return sum(receipt.stored.get(name, 0) for name in ROWS)


def values(store: Database, name: str) -> pl.DataFrame:
    return store.read(MetricQuery((name,)), ALL)


def quantiles(column: pl.Series, *shares: float) -> list[Any]:
    return [pytest.approx(column.quantile(share, "linear"), abs=5e-3) for share in shares]


def test_every_file_of_the_data_sets_has_its_answer_here(shared: Path) -> None:
    found = {
        str(p.relative_to(shared / "data")) for f in FOLDERS for p in (shared / "data" / f).rglob("*") if p.is_file()
    }
    assert found == STORED.keys() | REFUSED.keys()


@pytest.mark.parametrize(("name", "kind", "rows"), [(name, *answer) for name, answer in STORED.items()])
def test_a_file_is_told_and_all_its_rows_are_taken(shared: Path, name: str, kind: str, rows: int) -> None:
    path = shared / "data" / name
    assert sniff(path) == kind
    imported = load(path, ImportOptions(at=AT))
    [batch] = imported.batches
    assert sum(batch.frames[table].height for table in ROWS if table in batch.frames) == rows
    assert not imported.refused


@pytest.mark.parametrize(("name", "sentence"), REFUSED.items())
def test_a_file_that_holds_neither_requests_nor_series_says_so(shared: Path, name: str, sentence: str) -> None:
    with pytest.raises(InfractlError) as caught:
        load(shared / "data" / name, ImportOptions(at=AT))
    assert sentence in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(("name", "sentence"), UNTIMED.items())
def test_content_without_times_is_refused_until_one_is_stated(shared: Path, name: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(shared / "data" / name, ImportOptions())
    assert sentence in str(caught.value)
    assert "--time" in caught.value.hint


def test_image_requests_of_alibaba_have_their_failures_and_durations(store: Database, shared: Path) -> None:
    take(store, shared / "data" / "alibaba_gentd26" / "lora_request_trace.part1.parquet")
    columns = ("ts", "name", "status", "error_code", "e2e_s", "model", "attributes")
    frame = store.read(SpanQuery(columns, requests_only=True), ALL)
    failed = frame.filter(pl.col("error_code").is_not_null())
    by_type = {
        name: (failed.filter(name=name).height, rows) for name, rows in frame["name"].value_counts().iter_rows() if name
    }
    assert failed.height == 255
    assert by_type == {"TXT_2_IMG": (234, 14_760), "IMG_2_IMG": (20, 1_223), "INPAINTING": (1, 110)}
    fine = frame.filter(status="ok")
    assert fine.height == 15_823
    assert quantiles(fine["e2e_s"], 0.5, 0.99) == [22, 88]
    days = failed.group_by(pl.col("ts").dt.date()).len().sort("len", descending=True)
    assert (str(days["ts"][0]), days["len"][0]) == ("2024-11-21", 44)
    loras = fine["attributes"].str.json_path_match("$.num_lora")
    assert [fine.filter(loras == n)["e2e_s"].median() for n in ("0", "1")] == [21, 43]
    assert frame.filter(status="unset")["e2e_s"].to_list() == [None] * 15  # PENDING: neither succeeded nor failed


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("queue_rt_raw_anon", [203, 382, 627.23]),
        ("lora_update_latency_anon", [4378, 6143, 8212.88]),
        ("basemodel_update_latency_anon", [22718, 41988, 51846.4]),
    ],
)
def test_latencies_of_alibabas_stages_have_the_published_quantiles(
    store: Database, shared: Path, name: str, expected: list[float]
) -> None:
    take(store, shared / "data" / "alibaba_gentd26" / f"{name}.parquet")
    assert quantiles(values(store, name)["value"], 0.5, 0.9, 0.99) == expected


def test_alibabas_end_to_end_latency_rises_with_gpu_use_and_not_with_loading(store: Database, shared: Path) -> None:
    folder = shared / "data" / "alibaba_gentd26"
    as_requests = {"ts": "timestamp_anon", "e2e_s": "value", "host": "container_ip"}
    take(store, folder / "pipeline_inference_data_anon.parquet", mapping=as_requests, units={"e2e_s": "ms"})
    gpu = {"mapping": {"gpu_utilization_ratio": "value"}, "units": {"gpu_utilization_ratio": "percent"}}
    take(store, folder / "pod_gpu_duty_cycle_anon.parquet", **gpu)
    for name in ("queue_rt_raw_anon", "lora_update_latency_anon"):
        take(store, folder / f"{name}.parquet")
    requests = store.read(SpanQuery(("ts", "e2e_s"), requests_only=True), ALL)
    assert quantiles(requests["e2e_s"] * 1000, 0.5, 0.9, 0.99) == [15_132, 26_303, 70_555.8]
    ten = pl.col("ts").dt.truncate("10m").alias("bin")
    p99 = requests.group_by(ten).agg(pl.col("e2e_s").quantile(0.99, "linear"))
    found = {}
    for name in ("gpu_utilization_ratio", "queue_rt_raw_anon", "lora_update_latency_anon"):
        joined = p99.join(values(store, name).group_by(ten).agg(pl.col("value").mean()), on="bin")
        found[name] = round(joined.select(pl.corr("e2e_s", "value", method="spearman")).item(), 3)
    assert found == {"gpu_utilization_ratio": 0.449, "queue_rt_raw_anon": 0.166, "lora_update_latency_anon": -0.487}


def test_lengths_of_a_corpus_keep_their_order_and_say_that_they_have_no_time(store: Database, shared: Path) -> None:
    path = shared / "data" / "request_length_traces" / "etalon_sharegpt_8k.csv.gz"
    assert take(store, path, at=AT) == 30_731
    frame = store.read(SpanQuery(("ts", "input_tokens", "output_tokens", "quality"), requests_only=True), ALL).sort(
        "ts"
    )
    assert frame["quality"].unique().to_list() == ["no_time"]
    assert frame.select("input_tokens", "output_tokens").head(3).rows() == [(74, 918), (290, 905), (1402, 711)]
    table = pl.read_csv(path)
    for field, column in (("input_tokens", "num_prefill_tokens"), ("output_tokens", "num_decode_tokens")):
        assert frame[field].sum() == table[column].sum()


def test_two_files_with_a_lone_column_of_values_stay_two_series(store: Database, tmp_path: Path) -> None:
    for name in ("queue", "gpu"):
        path = tmp_path / f"{name} (1).csv"
        path.write_text("timestamp,value\n2026-11-30T00:00:00Z,1\n")
        assert take(store, path) == 1
    assert [values(store, name)["value"].to_list() for name in ("queue_1", "gpu_1")] == [[1.0], [1.0]]


def test_a_mapped_column_of_values_keeps_the_name_it_is_given(store: Database, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text("timestamp,value\n2026-11-30T00:00:00Z,1\n")
    take(store, path, mapping={"requests_waiting": "value"})
    assert values(store, "requests_waiting")["value"].to_list() == [1.0]
