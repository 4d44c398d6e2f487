"""LLMPerf summaries. Its single requests are an ordinary request log, which import reads as such."""

import re
from collections.abc import Mapping
from typing import Any

from collector.files.benchmarks.documents import documents, epoch_us
from collector.files.benchmarks.measures import statistic_of
from collector.files.benchmarks.report import Report, Run, finite
from collector.files.content import Content

TOOL = "llmperf"
_RESULT = re.compile(
    r"results_(inter_token_latency_s|ttft_s|end_to_end_latency_s|request_output_throughput_token_per_s"
    r"|number_input_tokens|number_output_tokens)_(\w+)"
)
_DISTRIBUTIONS = {
    "inter_token_latency_s": ("e2e_per_output_token_s", "s"),  # LLMPerf's counts the first token's wait too
    "ttft_s": ("ttft_s", "s"),
    "end_to_end_latency_s": ("e2e_s", "s"),
    "request_output_throughput_token_per_s": ("request_output_tokens_per_second", "tokens/s"),
    "number_input_tokens": ("input_tokens", "tokens"),
    "number_output_tokens": ("output_tokens", "tokens"),
}
_VALUES = {
    "results_num_requests_started": ("requests_sent", "requests", 1.0),
    "results_num_completed_requests": ("requests_successful", "requests", 1.0),
    "results_number_errors": ("requests_failed", "requests", 1.0),
    "results_error_rate": ("error_ratio", "ratio", 1.0),
    "results_mean_output_throughput_token_per_s": ("throughput_output_tokens_per_second", "tokens/s", 1.0),
    "results_num_completed_requests_per_min": ("throughput_requests_per_second", "requests/s", 1 / 60),
}
_ABOUT = (
    "framework",
    "model_size",
    "results_error_code_frequency",
    "mean_input_tokens",
    "mean_output_tokens",
    "version",
)


def read_llmperf(content: Content) -> Report:
    """Read a summary. Its distributions leave failed requests out already."""
    return Report([_run(content, document) for _, document in documents(content)])


def _run(content: Content, document: Mapping[str, Any]) -> Run:
    model = document.get("model")
    run = Run(
        content.stem,
        TOOL,
        ts_us=epoch_us(document.get("timestamp")),
        model=model if isinstance(model, str) else None,
        concurrency=finite(document.get("num_concurrent_requests")),
        labels={name.removeprefix("results_"): document[name] for name in _ABOUT if name in document},
    )
    for name, value in document.items():
        if name in _VALUES:
            metric, unit, scale = _VALUES[name]
            run.add(metric, "value", value, unit, scale)
        elif (found := _RESULT.fullmatch(name)) and (statistic := statistic_of(found[2])):
            metric, unit = _DISTRIBUTIONS[found[1]]
            run.add(metric, statistic, value, unit)
    return run
