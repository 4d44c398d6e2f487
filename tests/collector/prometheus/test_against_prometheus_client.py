"""Values, labels and times agree with prometheus_client's own parser on captures of real exporters."""

import gzip
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from collector.prometheus.text import parse

CAPTURES = (
    "host_metrics_text/netdata_k8s_kubelet.prom",
    "host_metrics_text/node_exporter_e2e-output.prom.gz",
    "engine_metrics/datadog_vllm_v0_v1_union.prom",
    "engine_metrics/datadog_triton.prom",
    "engine_metrics/sglang_docs_llama31_8b_overloaded.prom",
    "gpu_metrics_text/dcgm_exporter_readme_0.prom",
    "gpu_metrics_text/dcgm_exporter_readme_1.prom",
    "gpu_metrics_text/dcgm_exporter_readme_2.prom",
    "gpu_metrics_text/datadog_dcgm_exporter_t4.prom",
    "gpu_metrics_text/amd_device-metrics-exporter_mini.prom",
)


def key(name: str, labels: object, value: float, ts_ms: int | None) -> tuple[object, ...]:
    # prometheus_client adds _total to counters that lack it
    return name.removesuffix("_total"), tuple(sorted(dict(labels).items())), repr(float(value)), ts_ms  # type: ignore[call-overload]


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_reads_as_prometheus_client_reads_it(shared: Path, name: str) -> None:
    raw = (shared / "data" / name).read_bytes()
    body = gzip.decompress(raw) if name.endswith(".gz") else raw
    peer = sorted(
        key(s.name, s.labels, s.value, None if s.timestamp is None else round(float(s.timestamp) * 1000))
        for family in text_string_to_metric_families(body.decode())
        for s in family.samples
    )
    page = parse(body)
    ours = sorted(key(*s) for s in page.samples)
    created = [row for row in peer if str(row[0]).endswith("_created") and row not in ours]
    assert len(created) == page.created
    assert ours == [row for row in peer if row not in created]
    assert len(ours) > 2


def test_types_of_a_node_exporter_page_agree(shared: Path) -> None:
    body = gzip.decompress((shared / "data/host_metrics_text/node_exporter_e2e-output.prom.gz").read_bytes())
    peer = {
        s.name.removesuffix("_total"): family.type
        for family in text_string_to_metric_families(body.decode())
        for s in family.samples
    }
    ours = {s.name.removesuffix("_total"): s.kind for s in parse(body).series}
    assert ours == peer
