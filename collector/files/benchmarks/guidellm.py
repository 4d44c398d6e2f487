"""GuideLLM reports (`benchmarks.json`): a stage for each benchmark, and the requests it kept."""

from collections.abc import Mapping
from typing import Any

from collector.files.benchmarks.documents import documents, epoch_us, run_name
from collector.files.benchmarks.measures import metric_of, statistic_of
from collector.files.benchmarks.report import Report, Request, Run, finite, positive, section, whole
from collector.files.content import Content
from collector.otlp.failures import error_type

TOOL = "guidellm"
_PERCENTILES = {"p001": "p0.1", "p01": "p1", "p05": "p5", "p999": "p99.9"}
_WITH_FIRST = "time_per_output_token_ms"  # counts the first token too, unlike tpot_s
_UNITS = (("_per_second", "tokens/s"), ("token_count", "tokens"), ("_concurrency", "requests"))
_ERRORED = {"errored": "error", "incomplete": "CANCELLED"}


def read_guidellm(content: Content) -> Report:
    """Read a report. Statistics of successful requests only: a failed one measures no latency."""
    report = Report()
    for _, document in documents(content):
        benchmarks = document.get("benchmarks")
        for number, benchmark in enumerate(benchmarks if isinstance(benchmarks, list) else ()):
            if isinstance(benchmark, dict):
                run = _run(content, document, benchmark, number)
                report.runs.append(run)
                _add_requests(report, run, benchmark, content)
    return report


def _run(content: Content, document: Mapping[str, Any], benchmark: Mapping[str, Any], number: int) -> Run:
    config = section(benchmark, "config") or section(benchmark, "args")
    strategy = section(config, "strategy")
    asked = section(document, "args")
    run = Run(
        str(config.get("run_id") or benchmark.get("run_id") or run_name(content)),
        TOOL,
        stage=f"{number} {strategy.get('type_', '')}".strip(),
        ts_us=epoch_us(benchmark.get("start_time"))
        or epoch_us(section(benchmark, "scheduler_metrics").get("start_time")),
        model=_model(asked, config),
        concurrency=finite(strategy.get("streams")) or finite(strategy.get("max_concurrency")),
        request_rate=finite(strategy.get("rate")),
        labels={"target": asked["target"]} if isinstance(asked.get("target"), str) else {},
    )
    run.add("duration_s", "value", benchmark.get("duration"), "s")
    for name, block in section(benchmark, "metrics").items():
        _add_metric(run, name, section(block, "successful"))
    totals = section(benchmark, "metrics", "request_totals") or section(benchmark, "scheduler_metrics", "requests_made")
    for theirs, ours in (("successful", "successful"), ("errored", "failed"), ("incomplete", "incomplete")):
        run.add(f"requests_{ours}", "value", totals.get(theirs), "requests")
    return run


def _model(asked: Mapping[str, Any], config: Mapping[str, Any]) -> str | None:
    named = (
        asked.get("model") or section(config, "backend").get("model") or section(asked, "backend_kwargs").get("model")
    )
    return named if isinstance(named, str) else None


def _add_metric(run: Run, name: str, block: Mapping[str, Any]) -> None:
    """Add a distribution; one over no request is all zeros and says nothing."""
    if not whole(block.get("count")):
        return
    unit, scale, plain = _unit(name)
    metric = "e2e_per_output_token_s" if name == _WITH_FIRST else metric_of(plain, unit)
    for key, value in {**block, **section(block, "percentiles")}.items():
        statistic = _PERCENTILES.get(key) or statistic_of(key)
        if statistic == "count":
            run.add(metric, statistic, value, "requests")
        elif statistic not in (None, "variance", "mode"):
            run.add(metric, str(statistic), value, unit, scale)


def _unit(name: str) -> tuple[str, float, str]:
    """Return base unit, factor to it, and the name without its unit."""
    if name.endswith("_ms"):
        return "s", 1e-3, name.removesuffix("_ms")
    if name == "requests_per_second":
        return "requests/s", 1.0, name
    ending = next((unit for end, unit in _UNITS if name.endswith(end)), None)
    return ending or ("s" if name.endswith("latency") else ""), 1.0, name


def _add_requests(report: Report, run: Run, benchmark: Mapping[str, Any], content: Content) -> None:
    for status, found in section(benchmark, "requests").items():
        for number, item in enumerate(found if isinstance(found, list) else ()):
            request = (
                _request(run, f"{status} {number}", item, _ERRORED.get(status)) if isinstance(item, dict) else None
            )
            if request is None:
                report.refuse("request without a start", str(content.path))
            else:
                report.requests.append(request)


def _request(run: Run, place: str, item: Mapping[str, Any], error: str | None) -> Request | None:
    timings = section(item, "info", "timings") or section(item, "scheduler_info", "request_timings")
    started = item.get("request_start_time", item.get("start_time", timings.get("request_start")))
    start_us = epoch_us(started)
    if start_us is None:
        return None
    named = item.get("request_id")
    message = section(item, "info").get("error") or item.get("error")
    first = timings.get("first_token_iteration", timings.get("first_iteration"))
    ttft_s = positive(item.get("time_to_first_token_ms"), 1e-3)
    return Request(
        run,
        f"{named or place} {started}",
        start_us,
        ttft_s=ttft_s or positive(_gap(first, started)),
        tpot_s=positive(item.get("inter_token_latency_ms"), 1e-3),
        e2e_s=positive(item.get("request_latency")),
        input_tokens=whole(item.get("prompt_tokens")),
        output_tokens=whole(item.get("output_tokens")),
        request_id=str(named) if named else None,
        error_code=(error_type(message) if isinstance(message, str) and len(message) < 64 else None) or error
        if error
        else None,
        message=message if isinstance(message, str) else None,
    )


def _gap(end: Any, start: Any) -> float | None:
    later, sooner = finite(end), finite(start)
    return None if later is None or sooner is None else later - sooner
