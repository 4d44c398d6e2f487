"""Every reader of traces answers any document: with rows, or with an error of ours and no traceback."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.files import FileKind, ImportOptions, load
from store.columns import Kind
from store.errors import InfractlError
from store.tables import SPANS
from tests.collector.files.traces.taking import AT

KEYS = (
    "data", "spans", "processes", "p1", "traceID", "spanID", "references", "tags", "key", "type", "value", "logs",
    "fields", "process", "processID", "startTime", "duration", "warnings", "trace", "observations", "traceId", "id",
    "parentObservationId", "endTime", "metadata", "attributes", "resourceAttributes", "scope", "usageDetails", "input",
    "output", "total", "costDetails", "latency", "timeToFirstToken", "modelParameters", "spanContext", "spanId",
    "events", "links", "context", "resource", "status", "code", "kind", "gen_ai.operation.name", "0", "input_tokens",
    "completionStartTime",
)  # fmt: skip
PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(("GENERATION", "p1", "4bf92f3577b34da6", "2026-11-30T12:00:00Z", "{1: 0.5}")),
    st.sampled_from((1_796_040_000_000_000, [1_796_040_000, 0])),
)  # fmt: skip
DOCUMENTS = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=8),
    max_leaves=40,
)
KINDS = (FileKind.JAEGER, FileKind.LANGFUSE, FileKind.SDK_SPANS, FileKind.SERVEGEN)


def shape(kind: FileKind, inner: object) -> object:
    """A document that gets past the outermost keys of its kind."""
    wrapped = {
        FileKind.JAEGER: {"data": [{"traceID": "1", "spans": [inner], "processes": inner}]},
        FileKind.LANGFUSE: {"trace": inner, "observations": [inner]},
        FileKind.SDK_SPANS: [inner],
        FileKind.SERVEGEN: {"0": inner},
    }
    return wrapped[kind]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(document=DOCUMENTS, bare=st.booleans())
def test_any_document_gives_rows_or_a_reason(
    kind: FileKind, document: object, bare: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"{kind}.json"
    path.write_text(json.dumps(document if bare else shape(kind, document)), encoding="utf-8")
    try:
        imported = load(path, ImportOptions(kind=kind, at=AT))
    except InfractlError:
        return
    frame = imported.batches[0].frames.get("spans")
    if frame is not None:
        assert SPANS.conform(frame).equals(frame)
        for column in SPANS.columns:
            assert column.kind is not Kind.FLOAT or not frame[column.name].is_nan().any()
