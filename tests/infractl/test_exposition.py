"""The /metrics page holds what was published last, and nothing that was not."""

import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from prometheus_client.parser import text_string_to_metric_families

from analytics.analysis import Analysis, Params
from analytics.result import Finding, Result, Severity, Signal, Status, Trigger
from infractl import exposition as module
from infractl.exposition import Exposition
from rules.lint import read_page
from rules.naming import VALUE_CHARS
from rules.own import METRICS
from store.batch import Batch, Receipt
from store.window import Window

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
WINDOW = Window(datetime(2026, 11, 30, 11, tzinfo=UTC), AT)
RATIO = Signal("p99_baseline_ratio", "", "P99 over its baseline", ("service", "gen_ai.request.model"))
TTFT = Signal("ttft_p99", "s", "P99 of TTFT")

Page = dict[tuple[str, frozenset[tuple[str, str]]], float]


def make(name: str = "p99", *signals: Signal, triggers: tuple[Trigger, ...] = ()) -> Analysis[Params]:
    return Analysis(
        name=name,
        title=name,
        doc="made up",
        params=Params,
        inputs=lambda _: {},
        frames={},
        run=lambda _inputs, _params, _window: answer({}),
        signals=signals,
        triggers=triggers,
    )


def answer(samples: dict[str, pl.DataFrame], *findings: Finding, status: Status = Status.OK) -> Result:
    return Result("p99", status, WINDOW, {}, {}, samples, findings)


def rows(*values: tuple[str | None, float | None]) -> pl.DataFrame:
    services, numbers = [v[0] for v in values], [v[1] for v in values]
    return pl.DataFrame({"service": services, "value": pl.Series(numbers, dtype=pl.Float64)})


def read(page: bytes) -> Page:
    """Samples of a page; a sample that is there twice fails, as it does in Prometheus."""
    samples: Page = {}
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            key = (sample.name, frozenset((k, v) for k, v in sample.labels.items() if v))
            assert key not in samples
            samples[key] = sample.value
    return samples


def get(page: bytes, name: str, **labels: str) -> float | None:
    return read(page).get((name, frozenset(labels.items())))


def test_a_page_before_the_first_run_names_every_metric_and_gives_no_sample_of_a_signal() -> None:
    exposition = Exposition([make("p99", RATIO, TTFT)])
    page = exposition.render()
    names = read_page(page.decode()).names
    assert {RATIO.metric, TTFT.metric, *(m.name for m in METRICS)} <= names
    assert get(page, "infractl_analysis_failures_total", analysis="p99") == 0.0
    assert {name for name, _ in read(page)} == {"infractl_analysis_failures_total", "infractl_build_info"}


def test_label_sets_that_vanish_from_a_result_vanish_from_the_page() -> None:
    analysis = make("p99", RATIO)
    exposition = Exposition([analysis])
    exposition.publish(analysis, answer({RATIO.name: rows(("a", 4.0), ("b", 1.0))}), AT, 0.5, 10)
    assert get(exposition.render(), RATIO.metric, service="b") == 1.0
    exposition.publish(analysis, answer({RATIO.name: rows(("a", 3.0))}), AT, 0.5, 10)
    page = exposition.render()
    assert get(page, RATIO.metric, service="a") == 3.0
    assert get(page, RATIO.metric, service="b") is None
    exposition.publish(analysis, answer({}), AT, 0.5, 10)
    assert get(exposition.render(), RATIO.metric, service="a") is None


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_an_undefined_value_is_absent_never_zero(value: float | None) -> None:
    analysis = make("p99", RATIO)
    exposition = Exposition()
    exposition.publish(analysis, answer({RATIO.name: rows(("a", value), ("b", 0.0))}), AT, 0.5, 10)
    page = exposition.render()
    assert get(page, RATIO.metric, service="a") is None
    assert get(page, RATIO.metric, service="b") == 0.0


def test_values_keep_their_last_bit() -> None:
    analysis = make("p99", TTFT)
    exposition = Exposition()
    frame = pl.DataFrame({"value": [0.1 + 0.2]})
    exposition.publish(analysis, answer({TTFT.name: frame}), AT, 0.5, 10)
    assert get(exposition.render(), "infractl_ttft_p99_s") == 0.1 + 0.2


def test_a_run_leaves_time_duration_rows_and_open_findings() -> None:
    def finding(severity: Severity, until: datetime | None) -> Finding:
        return Finding("T", severity, {}, 1.0, (None, None), AT, "s", until)

    analysis = make("p99", RATIO)
    exposition = Exposition()
    found = (finding(Severity.CRITICAL, None), finding(Severity.CRITICAL, None), finding(Severity.WARNING, AT))
    exposition.publish(analysis, answer({}, *found, status=Status.EMPTY), AT, 0.25, 7)
    page = exposition.render()
    assert get(page, "infractl_analysis_last_success_timestamp_seconds", analysis="p99") == AT.timestamp()
    assert get(page, "infractl_analysis_duration_seconds", analysis="p99") == 0.25
    assert get(page, "infractl_analysis_input_rows", analysis="p99") == 7.0
    assert get(page, "infractl_findings", analysis="p99", severity="critical") == 2.0
    assert get(page, "infractl_findings", analysis="p99", severity="warning") == 0.0


def test_a_failed_run_is_counted_and_the_old_time_stays() -> None:
    analysis = make("p99", RATIO)
    exposition = Exposition([analysis])
    exposition.publish(analysis, answer({RATIO.name: rows(("a", 4.0))}), AT, 0.5, 10)
    exposition.failed("p99")
    page = exposition.render()
    assert get(page, "infractl_analysis_failures_total", analysis="p99") == 1.0
    assert get(page, "infractl_analysis_last_success_timestamp_seconds", analysis="p99") == AT.timestamp()


def test_analyses_publish_side_by_side_and_may_share_a_signal() -> None:
    one, two = make("one", RATIO), make("two", RATIO, TTFT)
    exposition = Exposition([one, two])
    exposition.publish(one, answer({RATIO.name: rows(("a", 1.0), ("b", 1.0))}), AT, 0.5, 10)
    exposition.publish(two, answer({RATIO.name: rows(("a", 2.0))}), AT, 0.5, 10)
    page = exposition.render()
    assert get(page, RATIO.metric, service="a") == 2.0
    assert get(page, RATIO.metric, service="b") == 1.0
    with pytest.raises(ValueError, match="p99_baseline_ratio"):
        Exposition([one, make("three", Signal(RATIO.name, "", "another thing"))])


def test_what_is_not_published_is_counted_by_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LABEL_SETS", 2)
    analysis = make("p99", RATIO)
    exposition = Exposition()
    frame = rows(("a", 1.0), ("a", 2.0), ("b", 1.0), ("c", 1.0), ("d", 1.0))
    exposition.publish(analysis, answer({RATIO.name: frame, "other": rows(("a", 1.0))}), AT, 0.5, 10)
    page = exposition.render()
    assert get(page, RATIO.metric, service="a") == 1.0
    for reason, count in (("duplicate label set", 1), ("too many label sets", 2), ("undeclared signal", 1)):
        assert get(page, "infractl_samples_refused_total", analysis="p99", reason=reason) == count


def test_ingest_and_queue_are_on_the_page() -> None:
    exposition = Exposition()
    batch = Batch("otlp", {}, {"open_end": 3})
    exposition.stored(batch, Receipt(batch.batch_id, {"spans": 5, "metric_samples": 0}, {"spans": 1}))
    exposition.stored(batch, Receipt(batch.batch_id, {"spans": 5}, {}))
    exposition.dropped("scrape", {"not a number": 1})
    waiting = [7]
    exposition.watch_queue(lambda: waiting[0], 100)
    page = exposition.render()
    assert get(page, "infractl_ingest_rows_total", source="otlp", table="spans") == 10.0
    assert get(page, "infractl_ingest_dropped_rows_total", source="otlp", reason="open_end") == 6.0
    assert get(page, "infractl_ingest_dropped_rows_total", source="scrape", reason="not a number") == 1.0
    assert get(page, "infractl_queue_rows") == 7.0
    assert get(page, "infractl_queue_limit_rows") == 100.0
    waiting[0] = 0
    assert get(exposition.render(), "infractl_queue_rows") == 0.0


def test_names_and_values_from_span_attributes_make_a_page_that_prometheus_reads(shared: Path) -> None:
    case = shared / "cases" / "70-dotted-and-invalid-alert-labels"
    attributes: dict[str, str] = json.loads((case / "attributes.json").read_text())
    signal = Signal("http.errors", "", 'a "doc"\nof two lines', tuple(attributes))
    frame = pl.DataFrame({**{k: [v] for k, v in attributes.items()}, "value": [1.0]})
    exposition = Exposition()
    exposition.publish(make("p99", signal), answer({signal.name: frame}), AT, 0.5, 1)
    page = exposition.render()
    (labels,) = [dict(key[1]) for key in read(page) if key[0] == "infractl_http_errors"]
    assert labels["gen_ai_request_model"] == "other"
    assert labels["gen_ai_request_model_2"] == "m"
    assert labels["bad_label"] == "x"
    assert len(labels["long"]) == VALUE_CHARS
