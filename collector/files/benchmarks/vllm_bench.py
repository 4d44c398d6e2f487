"""Results of `vllm bench serve` (`--save-result`), with every request where `--save-detailed` kept them."""

import re
from collections.abc import Mapping
from datetime import tzinfo
from http import HTTPStatus
from typing import Any

from collector.files.benchmarks.aiperf import arrivals
from collector.files.benchmarks.documents import calendar_us, documents, moment_us, run_name
from collector.files.benchmarks.measures import metric_of, statistic_of
from collector.files.benchmarks.report import Report, Request, Run, finite, positive, whole
from collector.files.content import Content
from collector.otlp.failures import error_type

TOOL = "vllm_bench"
_LATENCY = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?)_(\w+)_ms")
_VALUES: Mapping[str, str] = {
    "duration": "s", "completed": "requests", "failed": "requests", "total_input_tokens": "tokens",
    "total_output_tokens": "tokens", "request_throughput": "requests/s", "request_goodput": "requests/s",
    "output_throughput": "tokens/s", "total_token_throughput": "tokens/s", "max_output_tokens_per_s": "tokens/s",
    "max_concurrent_requests": "requests", "num_prompts": "requests",
}  # fmt: skip
_ABOUT = ("endpoint_type", "label", "tokenizer_id", "burstiness", "ramp_up_strategy")
_OPERATIONS = {"openai-chat": "chat", "openai": "text_completion", "vllm": "text_completion"}
_REASONS = {status.phrase.lower(): f"HTTP_{status.value}" for status in HTTPStatus if status.value >= 400}
_RAISED = re.compile(r"^([\w.]*(?:Error|Exception|Timeout)\w*)\b", re.MULTILINE)


def read_vllm(content: Content, zone: tzinfo) -> Report:
    """Read one result or several (`--append-result`). `date` is when a run ended, to the second."""
    report = Report()
    for number, document in documents(content):
        run = _run(content, document, zone, len(report.runs))
        report.runs.append(run)
        found = _requests(run, document)
        report.requests += found
        for _ in range(len(_list(document, "ttfts")) - len(found)):
            report.refuse("request without a start", f"{content.path}:{number}")
    if report.requests:
        report.notes.append("starts of requests are exact among themselves, and to about a second by the clock")
    return report


def _run(content: Content, document: Mapping[str, Any], zone: tzinfo, number: int) -> Run:
    ended, length = moment_us(document.get("date"), zone), finite(document.get("duration"))
    model, engine = document.get("model_id"), document.get("backend")
    run = Run(
        run_name(content),
        TOOL,
        stage=str(document.get("date") or number),
        ts_us=None if ended is None else calendar_us(ended - (length or 0.0) * 1e6),
        engine="vllm" if isinstance(engine, str) and engine.startswith("vllm") else None,
        model=model if isinstance(model, str) else None,
        concurrency=finite(document.get("max_concurrency")),
        request_rate=finite(document.get("request_rate")),
        labels={name: document[name] for name in _ABOUT if isinstance(document.get(name), str | int | float)},
    )
    for name, unit in _VALUES.items():
        run.add(metric_of(name, unit), "value", document.get(name), unit)
    if run.figures and document.get("completed") == 0:
        return run  # its latencies are the mean of nothing, written as 0
    for name, value in document.items():
        if (found := _LATENCY.fullmatch(name)) and (statistic := statistic_of(found[1])):
            run.add(metric_of(found[2], "s"), statistic, value, "s", 1e-3)
    return run


def _requests(run: Run, document: Mapping[str, Any]) -> list[Request]:
    starts = [finite(start) for start in _list(document, "start_times")]
    known = [start for start in starts if start is not None]
    if not known or run.ts_us is None:
        return []
    zero = min(known)
    columns = {
        name: _list(document, name) for name in ("ttfts", "itls", "latencies", "input_lens", "output_lens", "errors")
    }
    operation = _OPERATIONS.get(str(document.get("endpoint_type") or document.get("backend")), "inference")
    found = []
    for index, start in enumerate(starts):
        if start is not None:
            values = {name: column[index] if index < len(column) else None for name, column in columns.items()}
            ts_us = calendar_us(run.ts_us + (start - zero) * 1e6)
            if ts_us is not None:
                found.append(_request(Request(run, f"{run.stage} {index}", ts_us, operation), values))
    return found


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    found = document.get(name)
    return found if isinstance(found, list) else []


def _request(request: Request, values: Mapping[str, Any]) -> Request:
    gaps = [finite(gap) or 0.0 for gap in values["itls"]] if isinstance(values["itls"], list) else []
    request.ttft_s = positive(values["ttfts"])
    request.input_tokens, request.output_tokens = whole(values["input_lens"]), whole(values["output_lens"])
    request.e2e_s = positive(values["latencies"])
    message = values["errors"]
    if isinstance(message, str) and message.strip():
        request.error_code, request.message, request.output_tokens = _error(message), message.strip(), None
    if request.ttft_s is not None:
        request.e2e_s = request.e2e_s or request.ttft_s + sum(gaps)
        request.offsets_us = arrivals(request.ttft_s, gaps, request.output_tokens)
        if request.output_tokens is not None and request.output_tokens > 1:
            request.tpot_s = positive((request.e2e_s - request.ttft_s) / (request.output_tokens - 1))
    return request


def _error(message: str) -> str:
    """Name an error: vLLM writes the reason of an HTTP status, or a traceback, whose last line names the class."""
    text = message.strip()
    if text.lower() in _REASONS:
        return _REASONS[text.lower()]
    raised = _RAISED.findall(text)
    return (error_type(raised[-1]) if raised else None) or "error"
