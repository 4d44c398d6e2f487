"""inference-perf reports: stages and summary of the client's own figures, and of Prometheus' about the server."""

import re
from collections.abc import Mapping
from typing import Any

from collector.files.benchmarks.documents import documents, run_name
from collector.files.benchmarks.measures import metric_of, statistic_of
from collector.files.benchmarks.report import Report, Run, finite, section
from collector.files.content import Content

TOOL = "inference_perf"
_FILE = re.compile(r"(?P<run>.*?)_*(?:stage_(?P<stage>\d+)|(?P<summary>summary))_(?P<of>lifecycle|prometheus)_metrics")
_RATES = {"requests_per_sec": "requests/s"}
_METRICS = {"time_per_output_token": "tpot_s"}
_LENGTHS = ("prompt_len", "output_len")
_SERVER = {
    "queue_len": ("requests_waiting", "requests", 1.0),
    "kv_cache_usage_percentage": ("kv_cache_usage_ratio", "ratio", 1e-2),
    "prefix_cache_hit_percent": ("prefix_cache_hit_ratio", "ratio", 1e-2),
    "num_requests_swapped": ("requests_swapped", "requests", 1.0),
    "num_preemptions_total": ("preemptions_total", "", 1.0),
}


def read_inference_perf(content: Content) -> Report:
    """Read a report. Figures that Prometheus counted have names beginning with `server_`."""
    report = Report()
    for _, document in documents(content):
        run = _run(content, section(document, "load_summary"))
        if "latency" in section(document, "successes"):
            _add_client(run, document)
        else:
            _add_server(run, section(document, "successes"))
            report.notes.append(
                "Prometheus' figures cover a window of their own: compare server_requests_successful with"
                " requests_successful of the stage before using them"
            )
        report.runs.append(run)
    return report


def _run(content: Content, load: Mapping[str, Any]) -> Run:
    found = _FILE.fullmatch(content.stem)
    stage = (found["stage"] or "summary") if found else ""
    name = (found["run"] or content.path.parent.name or content.stem) if found else run_name(content)
    run = Run(name, TOOL, stage, request_rate=finite(load.get("requested_rate")))
    if name.lower().startswith("vllm"):
        run.engine = "vllm"
    return run


def _add_client(run: Run, document: Mapping[str, Any]) -> None:
    load, good, bad = (section(document, name) for name in ("load_summary", "successes", "failures"))
    run.add("requests_sent", "value", load.get("count"), "requests")
    run.add("achieved_request_rate_per_second", "value", load.get("achieved_rate"), "requests/s")
    run.add("send_duration_s", "value", load.get("send_duration"), "s")
    run.add("requests_successful", "value", good.get("count"), "requests")
    run.add("requests_failed", "value", bad.get("count"), "requests")
    _distribution(run, "schedule_delay_s", section(load, "schedule_delay"), "s")
    for name in section(good, "latency"):
        _distribution(run, _METRICS.get(name) or metric_of(name, "s"), section(good, "latency", name), "s")
    for name in _LENGTHS:
        _distribution(run, metric_of(name, "tokens"), section(good, name), "tokens")
    for name, value in section(good, "throughput").items():
        unit = _RATES.get(name, "tokens/s")
        run.add(metric_of(name, unit), "value", value, unit)
    _distribution(run, "failed_e2e_s", section(bad, "request_latency"), "s")
    _distribution(run, "failed_input_tokens", section(bad, "prompt_len"), "tokens")


def _add_server(run: Run, good: Mapping[str, Any]) -> None:
    run.add("server_requests_successful", "value", good.get("count"), "requests")
    run.add("server_throughput_requests_per_second", "value", good.get("rate"), "requests/s")
    for name in _LENGTHS:
        metric = metric_of(name, "tokens")
        run.add(f"server_throughput_{metric}_per_second", "value", section(good, name).get("rate"), "tokens/s")
    for name, block in good.items():
        if name in _SERVER:
            metric, unit, scale = _SERVER[name]
            _distribution(run, f"server_{metric}", section(good, name), unit, scale)
        elif name not in _LENGTHS and isinstance(block, dict):
            _distribution(run, f"server_{_METRICS.get(name) or metric_of(name, 's')}", block, "s")


def _distribution(run: Run, metric: str, block: Mapping[str, Any], unit: str, scale: float = 1.0) -> None:
    for name, value in block.items():
        statistic = statistic_of(name)
        if statistic is not None:
            run.add(metric, statistic, value, unit, scale)
