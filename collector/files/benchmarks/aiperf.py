"""AIPerf: summaries (`profile_export_aiperf.json`, `.csv`) and requests (`profile_export.jsonl`)."""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from typing import Any

from collector.files.benchmarks.documents import documents, moment_us, run_name
from collector.files.benchmarks.measures import metric_of, statistic_of, unit_of
from collector.files.benchmarks.report import Report, Request, Run, finite, positive, section, times, whole
from collector.files.content import Content
from collector.otlp.failures import error_type, http_error
from store.errors import SourceError

TOOL = "aiperf"
_LONGEST_S = 1e9
_NAME = re.compile(r"^(.*?)(?: \(([^()]*)\))?$")


def read_summary(content: Content, zone: tzinfo) -> Report:
    """Read the JSON summary; a time that names no zone is one of `zone`."""
    report = Report()
    for _, document in documents(content):
        run = _run(content, document, zone)
        for name, block in document.items():
            if isinstance(block, dict) and isinstance(block.get("unit"), str):
                _add_block(run, name, block)
        report.runs.append(run)
        if document.get("telemetry_data"):
            report.notes.append("GPU telemetry of AIPerf is not read: collect it from the exporter itself")
    return report


def _run(content: Content, document: Mapping[str, Any], zone: tzinfo) -> Run:
    config = section(document, "input_config")
    endpoint, load = section(config, "endpoint"), section(config, "loadgen")
    models = endpoint.get("model_names")
    labels = {name: endpoint[name] for name in ("type", "url", "streaming") if name in endpoint}
    if document.get("was_cancelled"):
        labels["was_cancelled"] = True
    errors = document.get("error_summary")
    if errors:
        labels["errors"] = errors
    return Run(
        run_name(content),
        TOOL,
        ts_us=moment_us(document.get("start_time"), zone),
        model=str(models[0]) if isinstance(models, list) and models else None,
        concurrency=finite(load.get("concurrency")),
        request_rate=finite(load.get("request_rate")),
        labels=labels,
    )


def _add_block(run: Run, name: str, block: Mapping[str, Any]) -> None:
    """Add a metric: a single value is written as its mean."""
    scale, unit = unit_of(str(block["unit"]))
    metric = metric_of(name, unit)
    numbers = {key: value for key, value in block.items() if statistic_of(key) and finite(value) is not None}
    single = numbers.keys() <= {"avg", "count", "sum"} and "count" not in numbers
    for key, value in numbers.items():
        statistic = "value" if single and key == "avg" else str(statistic_of(key))
        plain = statistic == "count"
        run.add(metric, statistic, value, "requests" if plain else unit, 1.0 if plain else scale)


def read_csv(content: Content) -> Report:
    """Read the CSV summary: blocks of 'Metric,avg,…' and 'Metric,Value'. Its numbers are rounded to two decimals."""
    run = Run(run_name(content), TOOL)
    report = Report([run])
    header: list[str] = []
    for number, row in _csv_rows(content):
        if row and row[0] in ("Metric", "Endpoint"):
            header = row
        elif row and header and header[0] == "Metric":
            _add_row(run, header, row)
        elif row and header:
            report.refuse("GPU telemetry is not read", f"{content.path}:{number}")
        elif row:
            report.refuse("row before any header", f"{content.path}:{number}")
    return report


def _csv_rows(content: Content) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with their line. Raises SourceError, naming the line, for what no CSV is."""
    reader = csv.reader(io.StringIO(content.text(), newline=None))
    try:
        yield from ((reader.line_num, row) for row in reader)
    except csv.Error as error:
        raise SourceError(
            f"{content.path}:{reader.line_num}: broken CSV ({error})", "fetch the file again; nothing was imported"
        ) from error


def _add_row(run: Run, header: list[str], row: list[str]) -> None:
    found = _NAME.match(row[0])
    assert found is not None
    scale, unit = unit_of(found[2] or "")
    metric = metric_of(found[1], unit)
    for name, value in zip(header[1:], row[1:], strict=False):
        statistic = "value" if name == "Value" else statistic_of(name)
        if statistic is not None:
            run.add(metric, statistic, value, unit, scale)


def read_requests(content: Content) -> Report:
    """Read the requests, one a line. Those of a warm-up keep `benchmark.phase` warmup."""
    report = Report()
    run = Run(run_name(content), TOOL)
    for number, document in documents(content):
        request = _request(run, document)
        if request is None:
            report.refuse("no start of the request", f"{content.path}:{number}")
        else:
            report.requests.append(request)
    return report


def _request(run: Run, document: Mapping[str, Any]) -> Request | None:
    about = section(document, "metadata")
    start_ns = whole(about.get("request_start_ns"))
    if start_ns is None:
        return None
    metrics, error = section(document, "metrics"), section(document, "error")
    ttft_s = _seconds(metrics, "time_to_first_token")
    request = Request(
        run,
        str(about.get("x_request_id") or f"{about.get('session_num')} {start_ns}"),
        start_ns // 1000,
        ttft_s=ttft_s,
        tpot_s=_seconds(metrics, "inter_token_latency"),
        e2e_s=_seconds(metrics, "request_latency"),
        input_tokens=_tokens(metrics, "input_sequence_length", "error_isl"),
        output_tokens=_tokens(metrics, "output_sequence_length", "output_token_count"),
        reasoning_tokens=_tokens(metrics, "reasoning_token_count"),
        request_id=str(about["x_request_id"]) if about.get("x_request_id") else None,
        attributes=_about(about),
    )
    if error:
        request.error_code = http_error(error.get("code")) or error_type(error.get("type")) or "error"
        request.message = str(error.get("message") or "") or None
        end_ns = whole(about.get("request_end_ns"))
        request.e2e_s = request.e2e_s or positive((end_ns - start_ns) / 1e9 if end_ns else None)
    request.offsets_us = _offsets(ttft_s, section(metrics, "inter_chunk_latency"), request.output_tokens)
    return request


def _about(about: Mapping[str, Any]) -> dict[str, Any]:
    names = {
        "conversation_id": "gen_ai.conversation.id",
        "turn_index": "benchmark.turn",
        "worker_id": "benchmark.worker",
    }
    names |= {"benchmark_phase": "benchmark.phase", "was_cancelled": "benchmark.cancelled"}
    return {ours: about[theirs] for theirs, ours in names.items() if about.get(theirs) not in (None, False)}


def _seconds(metrics: Mapping[str, Any], name: str) -> float | None:
    block = section(metrics, name)
    scale, unit = unit_of(str(block.get("unit", "ms")))
    return positive(block.get("value"), scale) if unit == "s" else None


def _tokens(metrics: Mapping[str, Any], *names: str) -> int | None:
    counts = (whole(section(metrics, name).get("value")) for name in names)
    return next((count for count in counts if count is not None), None)


def _offsets(ttft_s: float | None, block: Mapping[str, Any], tokens: int | None) -> list[int] | None:
    gaps = block.get("value")
    if ttft_s is None or not isinstance(gaps, list):
        return None
    scale, _ = unit_of(str(block.get("unit", "ms")))
    return arrivals(ttft_s, [times(finite(gap) or 0.0, scale) for gap in gaps], tokens)


def arrivals(ttft_s: float, gaps_s: list[float], tokens: int | None) -> list[int] | None:
    """Return when each token arrived, microseconds after the start: the first, then after each gap.

    None where there are more or fewer events than tokens, since how many each carried is not known.
    """
    if len(gaps_s) + 1 != tokens or min(gaps_s, default=0) < 0 or not ttft_s + sum(gaps_s) < _LONGEST_S:
        return None
    at, offsets = ttft_s, [round(ttft_s * 1e6)]
    for gap in gaps_s:
        at += gap
        offsets.append(round(at * 1e6))
    return offsets
