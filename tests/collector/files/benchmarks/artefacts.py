"""Artefacts in the form that AIPerf, GuideLLM and vLLM document, written here: no capture of them is at hand."""

import json

AIPERF = {
    "request_throughput": {"unit": "requests/sec", "avg": 13.16},
    "request_latency": {"unit": "ms", "avg": 6550.36, "p50": 5799.9, "p99": 9381.63, "min": 4996.25,
        "max": 9383.37, "std": 1171.1, "count": 200},
    "time_to_first_token": {"unit": "ms", "avg": 1588.8, "p50": 787.54, "p99": 4119.33},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 1274.63},
    "output_sequence_length": {"unit": "tokens", "avg": 96.85, "p50": 97.0},
    "benchmark_duration": {"unit": "sec", "avg": 15.2},
    "request_count": {"unit": "requests", "avg": 200.0},
    "was_cancelled": False,
    "start_time": "2026-10-17T20:22:08.939332",
    "goodput": None,
    "error_summary": [{"error_details": {"code": 499, "type": "RequestCancellationError"}, "count": 81}],
    "telemetry_data": {"endpoints": {"localhost:9401": {}}},
    "input_config": {
        "endpoint": {"model_names": ["openai/gpt-oss-20b"], "type": "chat", "streaming": True, "url": "localhost:9000"},
        "loadgen": {"concurrency": 100, "request_rate_mode": "concurrency_burst"},
    },
}  # fmt: skip

AIPERF_CSV = """\
Metric,avg,min,max,p1,p50,p99,std
Request Latency (ms),6550.36,4996.25,9383.37,5523.64,5799.90,9381.63,1171.14
Time to First Token (ms),1588.80,382.24,4121.09,403.48,787.54,4119.33,1189.99
Output Sequence Length (tokens),96.85,91.00,97.00,91.00,97.00,97.00,0.88

Metric,Value
Benchmark Duration (sec),15.20
Request Throughput (requests/sec),13.16
Request Count,200.00

Endpoint,GPU_Index,GPU_Name,GPU_UUID,Metric,avg,min,max
localhost:9401,0,NVIDIA H100,GPU-1,GPU Power Usage (W),43.37,26.68,299.28
"""

_START_NS = 1_790_000_000_123_456_789

AIPERF_REQUESTS = "\n".join(
    json.dumps(line)
    for line in (
        {
            "metadata": {
                "session_num": 45, "x_request_id": "7609a2e7-aa53-4ab1-98f4-f35ecafefd25", "conversation_id": "c1",
                "turn_index": 0, "request_start_ns": _START_NS, "request_end_ns": _START_NS + 297_525_228,
                "benchmark_phase": "profiling", "was_cancelled": False,
            },
            "metrics": {
                "input_sequence_length": {"value": 550, "unit": "tokens"},
                "time_to_first_token": {"value": 255.886568, "unit": "ms"},
                "request_latency": {"value": 297.525228, "unit": "ms"},
                "inter_chunk_latency": {"value": [4.898437, 5.316006, 31.424217], "unit": "ms"},
                "output_sequence_length": {"value": 4, "unit": "tokens"},
                "inter_token_latency": {"value": 5.2048325, "unit": "ms"},
            },
            "error": None,
        },
        {
            "metadata": {
                "session_num": 80, "request_start_ns": _START_NS + 10, "request_end_ns": _START_NS + 653_000,
                "benchmark_phase": "profiling", "was_cancelled": True,
            },
            "metrics": {
                "error_isl": {"value": 550, "unit": "tokens"}, "time_to_first_token": {"value": 0.0, "unit": "ms"},
            },
            "error": {"code": 499, "type": "RequestCancellationError", "message": "cancelled after 0.000 seconds"},
        },
        {"metadata": {"session_num": 81}, "metrics": {}, "error": None},
    )
)  # fmt: skip


def _distribution(scale: float, count: int = 95) -> dict[str, object]:
    percentiles = {"p001": 0.3, "p01": 0.32, "p50": 0.45, "p95": 0.7, "p99": 0.75, "p999": 0.8}
    of = {"mean": 0.5, "median": 0.45, "mode": 0.4, "variance": 0.01, "std_dev": 0.1, "min": 0.3, "max": 0.8}
    found = {name: value * scale * bool(count) for name, value in of.items()}
    return {**found, "count": count, "percentiles": {n: v * scale * bool(count) for n, v in percentiles.items()}}


def _by_status(scale: float, count: int = 95) -> dict[str, object]:
    nothing = _distribution(1, 0)
    return {"successful": _distribution(scale, count), "errored": nothing, "incomplete": nothing, "total": nothing}


GUIDELLM = {
    "metadata": {"version": 1, "guidellm_version": "0.5.0"},
    "args": {"target": "http://localhost:8000", "model": "llama-8b"},
    "benchmarks": [
        {
            "type_": "generative_benchmark",
            "config": {"run_id": "run-1", "strategy": {"type_": "concurrent", "streams": 10}},
            "start_time": 1_790_000_000.5,
            "duration": 60.0,
            "metrics": {
                "request_totals": {"successful": 95, "errored": 4, "incomplete": 1, "total": 100},
                "requests_per_second": _by_status(20),
                "request_latency": _by_status(1),
                "time_to_first_token_ms": _by_status(100),
                "time_per_output_token_ms": _by_status(20),
                "inter_token_latency_ms": _by_status(10, 0),
                "output_tokens_per_second": _by_status(80),
                "text": {"tokens": None},
            },
            "requests": {
                "successful": [
                    {
                        "request_id": "r1", "request_start_time": 1_790_000_001.25, "request_latency": 2.5,
                        "time_to_first_token_ms": 125.0, "inter_token_latency_ms": 12.5, "prompt_tokens": 256,
                        "output_tokens": 128, "info": {"status": "completed", "error": None}, "output": "hello",
                    }
                ],
                "errored": [
                    {
                        "request_id": "r2", "request_start_time": 1_790_000_002.0, "request_latency": 0.25,
                        "time_to_first_token_ms": None, "prompt_tokens": 256, "output_tokens": None,
                        "info": {"status": "errored", "error": "ReadTimeout"},
                    }
                ],
                "incomplete": [{"request_id": "r3", "request_start_time": None}],
            },
        }
    ],
}  # fmt: skip

VLLM = {
    "date": "20261130-120100", "endpoint_type": "openai-chat", "backend": "openai-chat", "label": None,
    "model_id": "Qwen/Qwen3-0.6B", "tokenizer_id": "Qwen/Qwen3-0.6B", "num_prompts": 3, "request_rate": "inf",
    "burstiness": 1.0, "max_concurrency": 8, "duration": 60.0, "completed": 2, "failed": 1,
    "total_input_tokens": 300, "total_output_tokens": 6, "request_throughput": 0.0333, "request_goodput": None,
    "output_throughput": 0.1, "total_token_throughput": 5.1, "mean_ttft_ms": 150.0, "median_ttft_ms": 150.0,
    "std_ttft_ms": 50.0, "p99_ttft_ms": 199.0, "mean_tpot_ms": 20.0, "p99_tpot_ms": 25.0, "p99.9_itl_ms": 30.5,
}  # fmt: skip

VLLM_DETAILED = {
    **VLLM,
    "input_lens": [100, 200, 50], "output_lens": [4, 2, 0], "ttfts": [0.1, 0.2, 0.0],
    "itls": [[0.02, 0.02, 0.02], [0.03], []], "start_times": [1000.5, 1001.0, 1002.25],
    "generated_texts": ["a", "b", ""], "errors": ["", "", "Too Many Requests"],
}  # fmt: skip
