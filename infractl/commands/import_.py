"""`infractl import`: files in."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infractl.render import FRAME_FORMATS
from infractl.settings import content, current_config, report_zone, store_options
from store.window import parse_time

if TYPE_CHECKING:
    import polars as pl

    from collector.files import Imported, ImportOptions
    from infractl.access import Access
    from store.batch import Batch, Receipt

KINDS = (
    "requests", "series", "otlp", "prometheus",
    "nvidia_smi", "rocm_smi", "intel_gpu_top", "kernel_log", "fabric_manager", "infiniband",
    "access_log", "benchmark",
    "jaeger", "langfuse", "sdk_spans", "servegen",
    "mooncake_trace", "lmcache_agent_trace", "kv_events",
    "bill", "llm_usage", "llm_calls", "prices",
)  # fmt: skip
_ROWS = ("spans", "metric_samples", "events", "token_arrivals", "kv_events", "costs", "prices", "benchmarks")
"""Tables whose rows count as imported; metric_series only names what metric_samples hold."""


@click.command("import")
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--as", type=click.Choice(KINDS), help="What the files hold  [default: told from their content]")
@click.option("--map", metavar="FIELD=COLUMN,...", multiple=True, help="Column, or arithmetic over columns.")
@click.option("--unit", metavar="FIELD=UNIT,...", multiple=True, help="s ms us ns, percent, MiB, ...")
@click.option("--label", metavar="K=V", multiple=True, help="service=chat, environment=prod, or any label.")
@click.option(
    "--time-zone", metavar="ZONE", default="UTC", show_default=True, help="Zone of times in the files that name none."
)
@click.option("--start", metavar="TIME", help="When zero was, for a clock that counts from zero.")
@click.option("--time", metavar="TIME", help="Time of content that carries none.")
@click.option("--format", type=click.Choice(FRAME_FORMATS), default="table", show_default=True)
@store_options
def command(paths: Sequence[Path], **given: Any) -> None:
    """Take files in: requests, metrics, traces, logs, bills, results of load tests, output of GPU tools.

    Request logs and time series may be CSV, JSON, JSONL or Parquet, OTLP may be JSON or protobuf, and every file may be
    gzipped. A file is stored whole or not at all; importing it again stores nothing twice.

    Of GPUs and fabric: what nvidia-smi prints (-q -x, -q, --query-gpu as CSV, topo -m, nvlink -s, dmon, pmon, or a
    record of several), rocm-smi -a --json, intel_gpu_top -J, dmesg and other kernel logs (Xids, OOM kills, PCIe
    errors), fabricmanager.log, and files below /sys/class/infiniband. --label host=NAME says which machine it was.

    Traces: OTLP, Jaeger, Langfuse, spans that an SDK printed. Access logs: AWS ALB, nginx, Apache, Envoy. Money: FOCUS,
    AWS CUR, Azure, OCI, usage of OpenAI, Anthropic and LiteLLM, lists of prices. Load tests: AIPerf, GuideLLM, vllm
    bench, inference-perf, LLMPerf, nccl-tests. Prefix blocks: Mooncake and LMCache traces, recorded KV-cache events.

    For requests FIELD is a column of the table spans (ts, ttft_s, e2e_s, input_tokens, ...); for time series it is the
    metric that a column is (requests_waiting, kv_cache_usage_ratio, ...), or ts. Well-known column names need no --map.
    COLUMN may be arithmetic over columns, as in --map ts=end_time-duration.
    """
    from infractl.access import open_access
    from infractl.render import render_frame

    options = _options(given)
    access = open_access(given["data"], given["server"], create=True)
    done: list[dict[str, Any]] = []
    try:
        done.extend(_import(access, path, options) for path in paths)
    finally:
        access.close()
        if done:
            click.echo(render_frame(_table(done), given["format"], report_zone()), nl=False)


def _options(given: dict[str, Any]) -> "ImportOptions":
    from collector.files import ImportOptions, kind_named, parse_pairs
    from collector.otlp.content import ContentOptions

    keep = content(current_config())
    return ImportOptions(
        kind=kind_named(given["as"]) if given["as"] else None,
        mapping=parse_pairs("--map", given["map"]),
        units=parse_pairs("--unit", given["unit"]),
        labels=parse_pairs("--label", given["label"], comma=False),
        time_zone=given["time_zone"],
        start=parse_time(given["start"]) if given["start"] else None,
        at=parse_time(given["time"]) if given["time"] else None,
        content=ContentOptions(keep.store, keep.max_value_bytes, keep.hash),
    )


def _import(access: "Access", path: Path, options: "ImportOptions") -> dict[str, Any]:
    """Decode one file, store it, say on stderr how it was read, and return its line of the summary."""
    from collector.files import load

    imported = load(path, options)
    _talk(imported)
    return _line(imported, access.append([_dated(access, batch) for batch in imported.batches]))


def _dated(access: "Access", batch: "Batch") -> "Batch":
    """Say when prices start whose list has no date: that depends on those stored."""
    if "prices" not in batch.frames:
        return batch
    import polars as pl

    from collector.prices.history import dated
    from store.tables import PRICES

    stored = PRICES.conform(pl.DataFrame(access.sql("SELECT * FROM prices", None)))
    rows = dated(batch.frames[PRICES.name], stored, datetime.now(UTC))
    return replace(batch, frames={**batch.frames, PRICES.name: rows})


def _talk(imported: "Imported") -> None:
    lines = [f"{imported.kind}" + (f", recognised by {imported.recognised}" if imported.recognised else "")]
    lines += [f"mapping: {imported.mapping}"] if imported.mapping else []
    lines += imported.notes
    lines += [f"refused {r.count}: {reason} (first: {r.first})" for reason, r in imported.refused.items()]
    for line in lines:
        click.echo(f"{imported.path}: {line}", err=True)


def _line(imported: "Imported", receipts: "Sequence[Receipt]") -> dict[str, Any]:
    stored = sum(receipt.stored.get(name, 0) for receipt in receipts for name in _ROWS)
    duplicates = sum(receipt.duplicates.get(name, 0) for receipt in receipts for name in _ROWS)
    times = [
        time
        for batch in imported.batches
        for name in _ROWS
        if name in batch.frames and "ts" in batch.frames[name]
        for time in (batch.frames[name]["ts"].min(), batch.frames[name]["ts"].max())
        if time is not None
    ]
    return {
        "file": str(imported.path),
        "kind": str(imported.kind),
        "stored": stored,
        "duplicates": duplicates,
        "refused": sum(refusal.count for refusal in imported.refused.values()),
        "from": min(times, default=None),
        "to": max(times, default=None),
    }


def _table(lines: list[dict[str, Any]]) -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame(lines, infer_schema_length=None)
