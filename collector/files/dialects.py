"""Column names that logs are known to use, as data: what is recognised where --map says nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from collector.files.units import PER_SECOND, snake, unit_of_name


@dataclass(frozen=True, slots=True)
class Dialect:
    """One log format, recognised by columns that stand together in no other; units only where names hide them."""

    name: str
    needs: frozenset[str]
    mapping: Mapping[str, str]
    units: Mapping[str, str] = field(default_factory=dict)


REQUEST_DIALECTS = (
    Dialect(
        "BurstGPT replay (record_time is the end of the request; tokens are sampled_in_num, out_len counts characters)",
        frozenset({"record_time", "first_chunk_time", "total_chunk_time"}),
        {
            "ts": "record_time-total_chunk_time",
            "ttft_s": "first_chunk_time",
            "e2e_s": "total_chunk_time",
            "input_tokens": "sampled_in_num",
            "request_id": "event_id",
        },
    ),
    Dialect(
        "streaming client log",
        frozenset({"start_unix_nano", "chunk_offsets_us"}),
        {"ts": "start_unix_nano", "ttft_s": "chunk_offsets_us[0]"},
    ),
    Dialect(
        "GenTD26 image requests of Alibaba (a request that is PENDING has not ended)",
        frozenset({"gmt_create", "predict_type", "predict_status", "exec_time_seconds"}),
        {
            "ts": "gmt_create",
            "e2e_s": "exec_time_seconds",
            "status": "predict_status",
            "name": "predict_type",
            "request_model": "checkpoint_model_version_id",
            "model": "checkpoint_model_version_id",
        },
    ),
)

SERIES_DIALECTS = (
    Dialect(
        "vLLM engine log of the BurstGPT replay (cache use in percent)",
        frozenset({"num_running", "num_pending", "gpu_kvcache_usage"}),
        {
            "requests_running": "num_running",
            "requests_waiting": "num_pending",
            "kv_cache_usage_ratio": "gpu_kvcache_usage",
        },
        {"kv_cache_usage_ratio": "percent"},
    ),
    Dialect(
        "GPU log of the BurstGPT replay (MiB, percent, celsius)",
        frozenset({"GPU_used_mem", "GPU_total_mem", "GPU_utilization", "GPU_temperature"}),
        {"gpu_utilization_ratio": "GPU_utilization", "gpu_temperature_celsius": "GPU_temperature"},
        {"gpu_utilization_ratio": "percent"},
    ),
)

TIME_NAMES = (
    "ts", "timestamp", "time", "datetime", "date_time", "date", "start_time", "start", "start_unix", "start_time_unix",
    "start_timestamp", "arrival", "arrival_time", "arrival_timestamp", "arrived_at", "request_time",
    "request_timestamp", "request_start_time", "created", "created_at", "unix_timestamp", "epoch", "time_unix",
    "record_time", "timestamp_anon", "gmt_create",
)  # fmt: skip

REQUEST_NAMES: Mapping[str, tuple[str, ...]] = {
    "trace_id": ("trace_id",),
    "span_id": ("span_id",),
    "parent_span_id": ("parent_span_id",),
    "ts": TIME_NAMES,
    "ttft_s": ("ttft", "time_to_first_token", "first_token_latency", "first_token_time", "first_chunk_time"),
    "tpot_s": ("tpot", "time_per_output_token"),
    "e2e_s": (
        "e2e", "e2el", "e2e_latency", "end_to_end_latency", "latency", "total_latency", "total_time", "response_time",
    ),
    "duration_s": ("duration",),
    "queue_s": ("queue", "queue_time", "time_in_queue", "waiting_time"),
    "prefill_s": ("prefill", "prefill_time"),
    "decode_s": ("decode", "decode_time"),
    "input_tokens": (
        "input_tokens", "prompt_tokens", "context_tokens", "number_input_tokens", "num_input_tokens",
        "num_prompt_tokens", "num_prefill_tokens", "input_length", "prompt_len", "request_tokens",
        "usage_prompt_tokens", "usage_input_tokens",
    ),
    "output_tokens": (
        "output_tokens", "completion_tokens", "generated_tokens", "number_output_tokens", "num_output_tokens",
        "num_generated_tokens", "num_decode_tokens", "output_length", "response_tokens", "usage_completion_tokens",
        "usage_output_tokens",
    ),
    "cached_input_tokens": (
        "cached_input_tokens", "cached_tokens", "cache_read_input_tokens", "usage_prompt_tokens_details_cached_tokens",
    ),
    "reasoning_tokens": ("reasoning_tokens", "usage_completion_tokens_details_reasoning_tokens"),
    "max_tokens": ("max_tokens", "max_completion_tokens"),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "stream": ("stream", "streaming"),
    "model": ("model", "model_name"),
    "request_model": ("request_model", "requested_model"),
    "response_model": ("response_model",),
    "provider": ("provider", "backend"),
    "operation": ("operation",),
    "service": ("service", "service_name"),
    "environment": ("environment", "env"),
    "host": ("host", "hostname"),
    "cluster": ("cluster",),
    "cloud_region": ("cloud_region", "region"),
    "cloud_zone": ("cloud_zone", "availability_zone", "zone"),
    "server_address": ("server_address", "instance"),
    "finish_reason": ("finish_reason", "finished_reason", "stop_reason"),
    "request_id": ("request_id", "x_request_id"),
    "resend_count": ("resend_count", "retry_count", "retries"),
    "cost_usd": ("cost_usd",),
    "error_code": ("error_code", "status_code", "http_status", "http_status_code", "error_type"),
    "status": ("status", "success"),
    "status_message": ("status_message", "error", "error_message", "error_msg", "exception"),
}  # fmt: skip
"""Column names by field of `spans`, in order of preference, as `units.snake` writes them and without a time unit."""

CONTENT_NAMES = frozenset({
    "prompt", "prompts", "messages", "completion", "completions", "response", "response_text", "generated_text",
    "gen_text", "output_text", "input_text", "text", "answer", "question",
})  # fmt: skip
"""Columns of conversation text: a prompt is the business of the person who wrote it, so it stays in the file."""

MEASURED = frozenset({"ttft_s", "tpot_s", "e2e_s", "queue_s", "prefill_s", "decode_s", "input_tokens", "output_tokens"})
"""Fields that only a request log has: one of them tells requests from time series."""


def dialect_of(columns: Iterable[str], dialects: Iterable[Dialect]) -> Dialect | None:
    """Return the dialect whose columns are all there."""
    present = set(columns)
    return next((dialect for dialect in dialects if dialect.needs <= present), None)


def recognise(columns: Iterable[str]) -> dict[str, str]:
    """Return field → column for the columns whose names are known; each column serves one field."""
    known = _bare_names(columns)
    found: dict[str, str] = {}
    for name, aliases in REQUEST_NAMES.items():
        column = next((known[alias] for alias in aliases if alias in known), None)
        if column is not None and column not in found.values():
            found[name] = column
    return found


def time_column(columns: Iterable[str]) -> str | None:
    """Return the column whose name is that of a time, or None."""
    known = _bare_names(columns)
    return next((known[name] for name in TIME_NAMES if name in known), None)


def _bare_names(columns: Iterable[str]) -> dict[str, str]:
    """Columns by their name, and by it without the ending of a time unit ('ttft' for 'ttft_ms')."""
    known: dict[str, str] = {}
    for column in columns:
        name = snake(column)
        known.setdefault(name, column)
        if unit_of_name(column) in PER_SECOND:
            known.setdefault(name.rpartition("_")[0], column)
    return known
