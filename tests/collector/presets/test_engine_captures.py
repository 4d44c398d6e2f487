"""Recorded pages of engines and gateways, in canonical units: values computed independently of this code."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.collector.presets.read_page import Page, read

Capture = Callable[[str], Page]
RUNTIME = ("python_", "process_")
"""Metrics of the Python process, which say nothing of the engine."""


@pytest.fixture
def capture(shared: Path) -> Capture:
    return lambda name: read((shared / "data/engine_metrics" / f"{name}.prom").read_text())


def unread(page: Page) -> set[str]:
    return {name for name in page.raw() if not name.startswith(RUNTIME)}


def total(page: Page, canonical: str, **labels: str) -> float:
    return sum(r.value or 0.0 for r in page.of(canonical, **labels))


def buckets(page: Page, canonical: str) -> dict[float, float]:
    return {float(r.labels["le"]): r.value or 0.0 for r in page.of(f"{canonical}_bucket")}


def test_vllm_of_two_generations_counts_each_metric_once(capture: Capture) -> None:
    page = capture("datadog_vllm_v0_v1_union")
    hits, queries = page.value("prefix_cache_hits_total"), page.value("prefix_cache_queries_total")
    assert (hits, queries) == (64.0, 117.0)
    assert page.value("kv_cache_usage_ratio") == 0.0
    assert (page.value("itl_seconds_count"), page.value("tpot_seconds_count")) == (144.0, 6.0)
    assert page.value("itl_seconds_sum") == pytest.approx(0.6237391703762114)
    assert page.value("ttft_seconds_sum") == pytest.approx(0.31326723098754883)
    assert page.value("requests_total", outcome="length", model="facebook/opt-125m") == 1.0
    assert total(page, "prompt_tokens_by_source_total") == 117.0
    assert page.value("cached_tokens_total") == 64.0
    assert page.value("engine_sleep_state", sleep_state="awake") == 1.0
    assert page.value("kv_cache_config_info", block_size="16", num_gpu_blocks="7281") == 1.0
    assert len(page.of("itl_seconds_bucket")) == 3
    superseded = {"vllm:gpu_cache_usage_perc"} | {
        f"vllm:time_per_output_token_seconds_{part}" for part in ("bucket", "sum", "count")
    }
    assert unread(page) == superseded


def test_an_overloaded_sglang(capture: Capture) -> None:
    page = capture("sglang_docs_llama31_8b_overloaded")
    assert (page.value("requests_running"), page.value("requests_waiting")) == (162.0, 2826.0)
    assert page.value("kv_cache_usage_ratio", model="meta-llama/Llama-3.1-8B-Instruct") == 0.28
    assert page.value("kv_cache_tokens", state="used") == 123859.0
    ttft = buckets(page, "ttft_seconds")
    assert (ttft[float("inf")], ttft[float("inf")] - ttft[30.0]) == (11008.0, 8495.0)
    mean = (page.value("ttft_seconds_sum") or 0) / (page.value("ttft_seconds_count") or 1)
    assert mean == pytest.approx(213.65, abs=0.005)
    assert page.value("itl_seconds_sum") == pytest.approx(866964.5791549598)
    assert page.value("itl_seconds_count") == 7400757.0
    assert page.value("e2e_seconds_count") == 11228.0
    assert page.value("prompt_tokens_total") == 8128902.0
    assert page.value("generation_tokens_per_second") == pytest.approx(86.508, abs=1e-3)
    assert page.value("function_seconds_count", name="generate_request") == 14007.0
    assert unread(page) == set()


def test_triton_durations_are_seconds(capture: Capture) -> None:
    page = capture("datadog_triton")
    model = {"model": "densenet_onnx"}
    assert page.value("requests_total", outcome="success", **model) == 3.0
    assert page.value("e2e_seconds_count", **model) == 3.0
    assert page.value("e2e_seconds_sum", **model) == pytest.approx(3 * 0.442655)
    assert page.value("queue_seconds_sum", **model) == pytest.approx(1.327965 * 145 / 1_327_965)
    assert page.value("inference_seconds_sum", **model) == pytest.approx(1.326831)
    assert page.value("request_errors_total", **model) == 0.0
    uuid = {"gpu_uuid": "GPU-951eeeeb-d284-d263-688e-d98a5306389b"}
    assert page.value("gpu_power_watts", **uuid) == 32.09
    assert page.value("gpu_energy_joules_total", **uuid) == pytest.approx(4879631.328)
    assert page.value("gpu_memory_bytes", state="used", **uuid) == 266338304.0
    assert page.value("host_memory_bytes", state="total") == 33164935168.0
    assert page.value("response_cache_usage_ratio") == pytest.approx(0.000122, abs=1e-6)
    assert {name for name in unread(page) if "_summary_us" not in name} == set()


def test_litellm_requests_and_errors_by_code(capture: Capture) -> None:
    page = capture("datadog_litellm_v1.95_excerpt")
    assert len(page.of("requests_total", tier="gateway")) == 8
    assert total(page, "requests_total") == 24.0
    assert total(page, "requests_total", code="500") == total(page, "request_errors_total") == 2.0
    assert total(page, "requests_total", model="mock-basic", code="200") == 10.0
    assert total(page, "request_errors_total", model="mock-fail", exception_class="Openai.InternalServerError") == 2.0
    assert unread(page) == set()


@pytest.mark.parametrize(
    ("file", "canonical", "labels", "value"),
    [
        ("kv_cache_avg_metrics", "pool_kv_cache_usage_ratio", {"name": "p1"}, 0.3),
        ("queue_avg_size_metrics", "pool_mean_requests_waiting", {"name": "p1"}, 0.4),
        ("running_requests_avg_metrics", "pool_mean_requests_running", {"name": "p1"}, 0.5),
        ("running_requests_metrics", "requests_running", {"tier": "gateway"}, 2.0),
        ("request_total_metric", "requests_total", {}, 4.0),
        ("request_total_metric", "requests_total", {"model": "t10"}, 2.0),
        ("request_error_total_metric", "request_errors_total", {}, 4.0),
        ("request_error_total_metric", "request_errors_total", {"code": "ResourceExhausted"}, 1.0),
        ("request_duration_seconds_metric", "e2e_seconds_sum", {}, 1.79),
        ("request_duration_seconds_metric", "e2e_seconds_count", {"model": "t10"}, 2.0),
        ("request_ttft_seconds_metric", "ttft_seconds_sum", {}, 1.79),
        ("input_tokens_metric", "request_prompt_tokens_sum", {}, 100.0),
        ("output_tokens_metric", "request_generation_tokens_sum", {}, 1000.0),
        ("normalized_time_per_output_token_seconds_metric", "normalized_latency_per_token_seconds_sum", {}, 0.056),
        ("plugin_processing_latencies_metric", "plugin_seconds_sum", {"plugin_name": "PluginB"}, 0.2),
        ("prefix_indexer_hit_bytes_metric", "prefix_index_hit_bytes_sum", {}, 86.0),
        ("prefix_indexer_hit_ratio_metric", "prefix_index_hit_ratio_sum", {}, 2.7),
        ("prefix_indexer_size_metric", "prefix_index_entries", {}, 4096.0),
        ("scheduler_attempts_different_models_metrics", "scheduling_attempts_total", {"model": "modelB"}, 1.0),
        ("scheduler_attempts_multiple_endpoints_metrics", "scheduling_attempts_total", {"outcome": "success"}, 2.0),
        ("scheduler_attempts_total_metrics", "scheduling_attempts_total", {"outcome": "failure"}, 5.0),
        ("scheduler_attempts_with_result_metrics", "scheduling_attempts_total", {"pod_name": "pod-1"}, 2.0),
        ("scheduler_e2e_duration_seconds_metric", "scheduling_seconds_sum", {}, 0.2835),
    ],
)
def test_llmd_endpoint_picker(
    capture: Capture, file: str, canonical: str, labels: dict[str, str], value: float
) -> None:
    page = capture(f"llmd_epp_{file}")
    assert total(page, canonical, **labels) == pytest.approx(value)
    assert unread(page) == set()


def test_every_capture_is_read_by_a_test_here(shared: Path) -> None:
    source = Path(__file__).read_text()
    names = [path.stem for path in (shared / "data/engine_metrics").glob("*.prom")]
    assert len(names) == 24
    assert [name for name in names if name.removeprefix("llmd_epp_") not in source] == []
