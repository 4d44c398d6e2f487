"""An artefact of a load test → its batch; and how the tools' artefacts are told apart."""

import re
from collections.abc import Callable
from datetime import tzinfo

from collector.files.benchmarks import aiperf
from collector.files.benchmarks.frames import frames_of, undated
from collector.files.benchmarks.guidellm import read_guidellm
from collector.files.benchmarks.inference_perf import read_inference_perf
from collector.files.benchmarks.llmperf import read_llmperf
from collector.files.benchmarks.nccl import IS_TABLE, read_nccl
from collector.files.benchmarks.report import Report
from collector.files.benchmarks.vllm_bench import read_vllm
from collector.files.content import Content, Format
from collector.files.intake import Intake
from collector.files.options import FileKind, ImportOptions
from collector.files.refusals import Refusal
from store.batch import Batch
from store.errors import SourceError, UsageError

Reader = Callable[[Content, tzinfo], Report]

_JSON: tuple[tuple[tuple[str, ...], Reader], ...] = (
    ((r'^\s*\{\s*"load_summary"\s*:\s*\{', r'"successes"\s*:\s*\{'), lambda content, _: read_inference_perf(content)),
    ((r'"results_(ttft_s_quantiles_p\d+|num_requests_started)"\s*:',), lambda content, _: read_llmperf(content)),
    (
        (r'"guidellm_version"|"type_"\s*:\s*"generative_benchmark"|"GenerativeBenchmarksReport"',),
        lambda content, _: read_guidellm(content),
    ),
    ((r'"model_id"\s*:', r'"tokenizer_id"\s*:', r'"request_throughput"\s*:', r'"completed"\s*:'), read_vllm),
    (
        (r'^\s*\{\s*"metadata"\s*:\s*\{', r'"request_start_ns"\s*:', r'"metrics"\s*:\s*\{'),
        lambda content, _: aiperf.read_requests(content),
    ),
    (
        (
            r'"(request_latency|request_throughput|request_count)"\s*:\s*\{\s*"unit"\s*:',
            r'"(input_config|aiperf_version|was_cancelled)"',
        ),
        aiperf.read_summary,
    ),
)
"""Expressions that all stand in the beginning of a tool's JSON, and its reader."""

_CSV = re.compile(r"^\s*Metric,(avg,min,max\b|Value\s*$)", re.MULTILINE)


def _reader(content: Content) -> Reader | None:
    """Return what reads the file; None where no tool known here wrote it."""
    head = content.head
    if head.lstrip()[:1] == "{":
        found = (read for marks, read in _JSON if all(re.search(mark, head) for mark in marks))
        return next(found, None)
    if content.format is not Format.PARQUET and IS_TABLE.search(head):
        return lambda found, _: read_nccl(found)
    return (lambda found, _: aiperf.read_csv(found)) if _CSV.match(head) else None


def _told(content: Content) -> FileKind | None:
    return None if _reader(content) is None else FileKind.BENCHMARK


def decode_benchmark(
    content: Content, _kind: FileKind, options: ImportOptions, source: str
) -> tuple[Batch, dict[str, Refusal], tuple[str, ...]]:
    """Return the batch of an artefact, what was refused, and remarks.

    Raises SourceError for a file of no tool that is known, or broken JSON, and UsageError where it states no time and
    --time does not.
    """
    read = _reader(content)
    if read is None:
        raise SourceError(
            f"{content.path}:1: no artefact of a load test that is known",
            "known are AIPerf, GuideLLM, vllm bench serve, inference-perf, LLMPerf and nccl-tests",
        )
    report = read(content, options.zone)
    if options.at is None and undated(report):
        raise UsageError(f"{content.path} states no time", "say when the test ran: --time 2026-11-30T12:00:00Z")
    refused = {why: Refusal(count, where) for why, (count, where) in report.refused.items()}
    drops = {why: refusal.count for why, refusal in refused.items()}
    return Batch(source, frames_of(report, options, source), drops), refused, tuple(dict.fromkeys(report.notes))


INTAKE = Intake(frozenset({FileKind.BENCHMARK}), _told, decode_benchmark)
