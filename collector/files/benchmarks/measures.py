"""Names and units of load tests → ours, as data."""

import re
from collections.abc import Mapping

from collector.files.units import snake

METRICS: Mapping[str, str] = {
    "time_to_first_token": "ttft_s", "ttft": "ttft_s", "inter_token_latency": "itl_s", "itl": "itl_s",
    "tpot": "tpot_s", "e2el": "e2e_s", "request_latency": "e2e_s", "end_to_end_latency": "e2e_s",
    "time_to_second_token": "ttst_s", "time_to_first_output_token": "ttfo_s",
    "input_sequence_length": "input_tokens", "prompt_token_count": "input_tokens", "prompt_len": "input_tokens",
    "output_sequence_length": "output_tokens", "output_token_count": "output_tokens", "output_len": "output_tokens",
    "reasoning_token_count": "reasoning_tokens", "total_token_count": "tokens",
    "request_throughput": "throughput_requests_per_second", "requests_per_second": "throughput_requests_per_second",
    "requests_per_sec": "throughput_requests_per_second", "request_goodput": "goodput_requests_per_second",
    "goodput": "goodput_requests_per_second",
    "output_token_throughput": "throughput_output_tokens_per_second",
    "output_throughput": "throughput_output_tokens_per_second",
    "output_tokens_per_second": "throughput_output_tokens_per_second",
    "output_tokens_per_sec": "throughput_output_tokens_per_second",
    "prompt_tokens_per_second": "throughput_input_tokens_per_second",
    "input_tokens_per_sec": "throughput_input_tokens_per_second",
    "total_token_throughput": "throughput_tokens_per_second", "tokens_per_second": "throughput_tokens_per_second",
    "total_tokens_per_sec": "throughput_tokens_per_second",
    "output_token_throughput_per_user": "output_tokens_per_second_per_user",
    "request_count": "requests_successful", "completed": "requests_successful",
    "error_request_count": "requests_failed", "failed": "requests_failed", "good_request_count": "requests_good",
    "benchmark_duration": "duration_s", "duration": "duration_s", "request_concurrency": "concurrent_requests",
    "total_input_tokens": "input_tokens_total", "total_isl": "input_tokens_total",
    "total_output_tokens": "output_tokens_total", "total_osl": "output_tokens_total",
    "schedule_delay": "schedule_delay_s", "normalized_time_per_output_token": "e2e_per_output_token_s",
}  # fmt: skip
"""Names of figures in snake case, without their unit → metric. tpot_s leaves the first token out."""

_UNITS: Mapping[str, tuple[float, str]] = {
    "s": (1, "s"), "sec": (1, "s"), "seconds": (1, "s"), "ms": (1e-3, "s"), "us": (1e-6, "s"), "ns": (1e-9, "s"),
    "requests/sec": (1, "requests/s"), "tokens/sec": (1, "tokens/s"), "tokens/sec/user": (1, "tokens/s"),
    "%": (1e-2, "ratio"), "percent": (1e-2, "ratio"), "tokens": (1, "tokens"), "requests": (1, "requests"),
    "KB": (1e3, "bytes"), "MB": (1e6, "bytes"), "GB": (1e9, "bytes"), "GB/s": (1e9, "bytes/s"),
}  # fmt: skip
_ENDINGS: Mapping[str, str] = {
    "s": "_s", "ratio": "_ratio", "bytes": "_bytes", "bytes/s": "_bytes_per_second", "tokens/s": "_tokens_per_second",
    "requests/s": "_requests_per_second",
}  # fmt: skip
_SPELLINGS = {"avg": "mean", "median": "p50", "std_dev": "std", "stddev": "std", "total_sum": "sum"}
_PERCENTILE = re.compile(r"(?:quantiles_)?p(\d+(?:\.\d+)?)")
_STATISTICS = frozenset({"mean", "min", "max", "std", "count", "sum", "variance", "mode"})


def unit_of(text: str) -> tuple[float, str]:
    """Return the factor to the base unit and its name; an unknown unit stays as it is."""
    return _UNITS.get(text, (1, text))


def metric_of(name: str, unit: str) -> str:
    """Return our name for a figure: a known one, else its own in snake case with the base unit behind."""
    plain = snake(name)
    if plain in METRICS:
        return METRICS[plain]
    ending = _ENDINGS.get(unit, "")
    return plain if plain.endswith(ending) else plain + ending


def statistic_of(name: str) -> str | None:
    """Return the statistic of that name: 'avg' → 'mean', 'median' → 'p50', 'quantiles_p99' → 'p99'; None for others."""
    word = _SPELLINGS.get(name, name)
    if found := _PERCENTILE.fullmatch(word):
        return f"p{found[1]}"
    return word if word in _STATISTICS else None
