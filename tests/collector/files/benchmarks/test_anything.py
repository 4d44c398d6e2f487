"""Whatever text reaches the reader of artefacts, it answers with rows or with an error for a person."""

import contextlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.files.benchmarks.decode import INTAKE, decode_benchmark
from collector.files.content import Content, Format
from collector.files.options import FileKind, ImportOptions
from store.errors import SourceError, UsageError
from store.tables import BENCHMARKS
from tests.collector.files.benchmarks import artefacts

OPTIONS = ImportOptions(at=datetime(2026, 11, 30, tzinfo=UTC))
PERF = {
    "load_summary": {"requested_rate": 1.5},
    "successes": {"count": 3, "latency": {"x": {"p99": 1}}},
    "failures": {},
}
LLMPERF = {
    "results_ttft_s_quantiles_p99": 0.5,
    "results_num_requests_started": "3",
    "timestamp": 1703638574,
    "model": 3,
}
NCCL = "#  size count type redop root time algbw busbw #wrong\n 8 2 float sum -1 1.5 0.1 0.2 0 1.5 0.1 0.2 N/A\n"
DOCUMENTS = (artefacts.AIPERF, artefacts.GUIDELLM, artefacts.VLLM_DETAILED, PERF, LLMPERF)
SEEDS = (*(json.dumps(d) for d in DOCUMENTS), artefacts.AIPERF_CSV, artefacts.AIPERF_REQUESTS, NCCL)
VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.floats(), max_size=3)
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Any text, or what a tool writes with a piece cut out and another text put there."""
    if draw(st.booleans()):
        return draw(st.text())
    seed = draw(st.sampled_from(SEEDS))
    at = draw(st.integers(0, len(seed)))
    end = draw(st.integers(at, min(len(seed), at + 20)))
    return seed[:at] + draw(st.text(max_size=20)) + seed[end:]


def answer(text: str, folder: pytest.TempPathFactory) -> None:
    content = Content(folder.getbasetemp() / "f", text.encode(errors="replace"), Format.JSON)
    assert INTAKE.told(content) in (None, FileKind.BENCHMARK)
    with contextlib.suppress(SourceError, UsageError):
        batch, _, _ = decode_benchmark(content, FileKind.BENCHMARK, OPTIONS, "import:f")
        figures = batch.frames.get("benchmarks")
        assert figures is None or (figures.schema == BENCHMARKS.schema() and figures["value"].is_finite().all())


@settings(max_examples=300, deadline=None)
@given(text=texts())
def test_any_text_is_answered(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    answer(text, tmp_path_factory)


def swap(document: object, path: list[int], value: object) -> object:
    """Put `value` at a path of the document that the numbers choose."""
    if not path or not isinstance(document, dict | list) or not document:
        return value
    number, rest = path[0] % len(document), path[1:]
    if isinstance(document, list):
        return [swap(v, rest, value) if at == number else v for at, v in enumerate(document)]
    return {n: swap(v, rest, value) if at == number else v for at, (n, v) in enumerate(document.items())}


@settings(max_examples=400, deadline=None)
@given(
    seed=st.sampled_from(DOCUMENTS),
    path=st.lists(st.integers(0, 50), min_size=1, max_size=6),
    value=VALUES | st.dictionaries(st.text(max_size=3), VALUES, max_size=2),
)
def test_any_value_anywhere_is_answered(
    seed: object, path: list[int], value: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    answer(json.dumps(swap(seed, path, value)), tmp_path_factory)
