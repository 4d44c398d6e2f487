"""OpenSLO files: what maps to stored metrics is read, the rest is refused with file, line and a remedy."""

from pathlib import Path

import pytest

from analytics.slo.objective import Slo, parse
from infractl import promql
from infractl.configfile import load
from infractl.slos import slo_texts
from store.errors import ConfigError

RATIO = """apiVersion: openslo/v1
kind: SLI
metadata: {name: availability}
spec:
  ratioMetric:
    counter: true
    bad:
      metricSource:
        type: Prometheus
        spec: {query: 'sum(rate(http_requests_total{code=~"5.."}[5m]))'}
    total:
      metricSource:
        type: Prometheus
        spec: {query: 'sum(rate(http_requests_total[5m]))'}
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: web}
spec:
  service: web
  indicatorRef: availability
  timeWindow: [{duration: 4w, isRolling: true}]
  budgetingMethod: Occurrences
  objectives:
    - target: 0.995
"""
THRESHOLD = """apiVersion: openslo/v1
kind: SLO
metadata: {name: quick}
spec:
  service: web
  indicator:
    metadata: {name: ttft}
    spec:
      thresholdMetric:
        metricSource:
          type: Prometheus
          spec:
            query: histogram_quantile(0.99, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket{engine="0"}[5m])))
  budgetingMethod: Timeslices
  objectives:
    - op: lte
      value: 2.0
      target: 0.99
      timeSliceTarget: 0.9
      timeSliceWindow: 10m
"""


def read(folder: Path, text: str) -> list[Slo]:
    (folder / "x.yaml").write_text(text)
    (folder / "infractl.yaml").write_text("openslo: [x.yaml]\n")
    return [parse(line) for line in slo_texts(load(folder / "infractl.yaml"))]


def test_a_ratio_in_a_document_of_its_own_becomes_counters(tmp_path: Path) -> None:
    (found,) = read(tmp_path, RATIO)
    assert found.indicator == 'bad http_requests_total{code=~"5.."} / http_requests_total'
    assert (found.over.days, found.where) == (28, ())  # its query says which service


def test_documents_may_be_a_list(tmp_path: Path) -> None:
    parts = [part.replace("\n", "\n  ").rstrip() for part in RATIO.split("---\n")]
    assert [one.name for one in read(tmp_path, "\n".join(f"- {part}" for part in parts))] == ["web"]


def test_a_quantile_held_against_a_value_is_a_share_of_requests_in_slices(tmp_path: Path) -> None:
    (found,) = read(tmp_path, THRESHOLD)
    name = "vllm:time_to_first_token_seconds"
    assert found.indicator == (
        f'good {name}_bucket{{engine="0",le="2"}} / {name}_count{{engine="0"}} in 0.99 of requests per 10m'
    )


def test_slices_with_and_without_a_target(tmp_path: Path) -> None:
    text = RATIO.replace("Occurrences", "Timeslices").replace("0.995", "0.995\n      timeSliceTarget: 0.95")
    assert read(tmp_path, text)[0].indicator.endswith(" in 0.95 of requests per 5m")
    text = RATIO.replace("Occurrences", "RatioTimeslices").replace("0.995", "0.995\n      timeSliceWindow: 1h")
    assert read(tmp_path, text)[0].indicator.endswith("http_requests_total per 1h")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (RATIO.replace("type: Prometheus", "type: Redshift", 1), "line 7: metricSource of type Redshift"),
        (RATIO.replace("indicatorRef: availability", "indicatorRef: other"), "line 21: indicatorRef 'other'"),
        (RATIO.replace("sum(rate(http_requests_total[5m]))", "a / b"), "line 11: query 'a / b' is no single counter"),
        (RATIO.replace("bad:", "raw:"), "line 5: ratioMetric needs total and good or bad"),
        (RATIO.replace("counter: true", "counter: false").replace("sum(rate(http_requests_total[5m]))", "x"),
         "line 11: query 'x' has neither rate"),
        (RATIO.replace("isRolling: true", "isRolling: false"), "line 22: only one rolling timeWindow"),
        (RATIO.replace("Occurrences", "Events"), "line 23: budgetingMethod Events"),
        (THRESHOLD.replace("10m", "1m"), "line 20: timeSliceWindow 1m is not counted"),
        (THRESHOLD.replace("op: lte", "op: gte"), "line 16: op gte"),
        (THRESHOLD.replace("sum by (le) (", "sum by (le, model) ("), "line 9: query"),
        (RATIO.replace("openslo/v1", "openslo/v2alpha", 1), "line 1: apiVersion"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_refused_with_its_line_and_a_remedy(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text)
    assert f"x.yaml, {says}" in str(refused.value)
    assert refused.value.hint


def test_queries_that_say_more_than_a_counter_are_none() -> None:
    for query in ("sum(a) / sum(b)", "rate(a[5m]) * 2", "sum by (x) (rate(a[5m]))", "max(a)", "a offset 5m", ""):
        assert promql.counter(query) is None
    for query in ("histogram_quantile(0.9, a_bucket)", "histogram_quantile(0.9, rate(a[5m]))", "a"):
        assert promql.quantile(query) is None
