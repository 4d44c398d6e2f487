"""SLIs over stored counters and slices of time: counted by hand, and what names no series is said."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.result import Result, Status
from analytics.slo import ANALYSIS, inputs
from analytics.slo.counters import ratio, selector
from analytics.slo.objective import parse
from store.errors import UsageError
from store.query import RollupQuery
from store.window import Window

END = datetime(2026, 11, 30, 12, tzinfo=UTC)
ERRORS = 'web: bad http_requests_total{status=~"5.."} / http_requests_total @0.9 over 7d'


def grown(name: str, labels: dict[str, str], increases: Sequence[float | None]) -> list[dict[str, Any]]:
    """Rows of a rollup, one bucket of five minutes each, the last at the end."""
    first = END.replace(tzinfo=None) - timedelta(minutes=5 * len(increases))
    known = json.dumps(labels)
    return [{"bucket": first + timedelta(minutes=5 * i), "series_id": hash((name, known)), "name": name, "raw": name,
             "service": labels.get("service"), "labels": known, "increase": value}
            for i, value in enumerate(increases)]  # fmt: skip


def answer(line: str, rows: list[dict[str, Any]], **more: Any) -> Result:
    params = ANALYSIS.make_params({"slos": (line,)} | more)
    frame = pl.DataFrame(rows, schema_overrides={"increase": pl.Float64, "service": pl.String})
    return ANALYSIS.run({parse(line).name: frame}, params, Window(END - timedelta(days=7), END))


WEB = [
    *grown("http_requests_total", {"status": "200", "service": "a"}, [90.0, 90.0, None]),
    *grown("http_requests_total", {"status": "503", "service": "a"}, [10.0, 0.0, None]),
    *grown("http_requests_total", {"status": "500", "service": "b"}, [0.0, 30.0, 0.0]),
]


def test_bad_of_a_counter_is_counted_from_its_growth() -> None:
    row = answer(ERRORS, WEB).frames["slos"].row(0, named=True)
    assert (row["n"], row["bad"]) == (220, 40)
    assert row["budget_left"] == pytest.approx(1 - 40 / 22)


def test_good_is_the_rest_of_bad_and_services_have_budgets_of_their_own() -> None:
    line = ERRORS.replace('bad http_requests_total{status=~"5.."}', 'good http_requests_total{status!~"5.."}')
    rows = {row["service"]: row for row in answer(line, WEB, by=("service",)).frames["slos"].to_dicts()}
    assert (rows["a"]["n"], rows["a"]["bad"]) == (190, 10)
    assert (rows["b"]["n"], rows["b"]["bad"]) == (30, 30)


def test_the_store_is_asked_for_the_metrics_alone() -> None:
    asked = inputs(ANALYSIS.make_params({"slos": (ERRORS,)}))
    assert list(asked) == ["web"]
    assert isinstance(asked["web"], RollupQuery)
    assert asked["web"].names == ("http_requests_total",)


def test_a_bound_that_is_no_bucket_is_said_with_those_there_are() -> None:
    rows = [row for le in ("1.0", "2.5") for row in grown("x_bucket", {"le": le}, [5.0])]
    result = answer('q: good x_bucket{le="2"} / x_count @0.9', rows + grown("x_count", {}, [5.0]))
    assert result.status is Status.EMPTY
    assert 'no series is x_bucket{le="2"} (its buckets end at 1, 2.5)' in result.notes[0]
    same = answer('q: good x_bucket{le="1"} / x_count @0.9', rows + grown("x_count", {}, [8.0]))
    assert same.frames["slos"]["bad"].to_list() == [3]  # 1 and 1.0 are one bound


def test_failures_that_have_no_series_have_not_happened_and_that_is_said() -> None:
    result = answer(ERRORS.replace("5..", "999"), WEB)
    assert result.frames["slos"]["bad"].to_list() == [0]
    assert any('no series is http_requests_total{status=~"999"}' in note for note in result.notes)


def test_slices_of_time_count_alike_however_many_requests_they_have() -> None:
    rows = [*grown("all_total", {}, [1000.0, 10.0, 0.0, 10.0]), *grown("bad_total", {}, [0.0, 1.0, 0.0, 5.0])]
    slices = answer("s: bad bad_total / all_total in 0.9 of requests per 5m @0.5", rows).frames["slos"]
    assert slices.select("n", "bad").row(0) == (3, 1)  # a slice without requests is none; 9 of 10 is enough
    ratios = answer("s: bad bad_total / all_total per 5m @0.5", rows).frames["slos"]
    assert ratios["sli"].to_list() == [pytest.approx(1 - (0 + 0.1 + 0.5) / 3)]
    wide = answer("s: bad bad_total / all_total in 0.9 of requests per 1h @0.5", rows).frames["slos"]
    assert wide.select("n", "bad").row(0) == (1, 0)


def test_twelve_bad_slices_of_an_hour_alert() -> None:
    rows = [*grown("all_total", {}, [10.0] * 200), *grown("bad_total", {}, [0.0] * 188 + [10.0] * 12)]
    found = answer("s: bad bad_total / all_total in 0.9 of requests per 5m @0.99", rows).findings
    assert "SloBurnsFast" in {one.trigger for one in found}
    assert "slices of time" in found[0].summary


@pytest.mark.parametrize("text", ["a{b}", 'a{b="c" d="e"}', 'a{b=~"("}', "a b", ""])
def test_a_selector_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        selector(text)


VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\@'), max_size=8)


@given(st.lists(st.tuples(st.sampled_from(["le", "code", "_x"]), st.sampled_from(["=", "!="]), VALUES), max_size=3))
def test_a_selector_is_read_back_as_it_was_written(matchers: list[tuple[str, str, str]]) -> None:
    text = "vllm:x{" + ", ".join(f'{label}{sign}"{value}"' for label, sign, value in matchers) + "}"
    assert selector(selector(text).text()) == selector(text)
    assert selector(text).matchers == tuple(matchers)


def test_a_line_of_counters_and_slices_is_read_back() -> None:
    for text in (ERRORS, 'q: good vllm:t_bucket{le="2"} / vllm:t_count in 99% of requests per 5m @0.99 over 28d',
                 "e: errors per 1h @0.9", "g: ttft_s<=2 & tpot_s<=0.1 in 0.95 of requests per 5m @0.9"):  # fmt: skip
        assert parse(parse(text).text()) == parse(text)
    assert ratio("ttft_s<=2") is None
    with pytest.raises(UsageError, match="slices cannot be 1m"):
        parse("e: errors per 1m @0.9")


def test_requests_that_failed_without_a_latency_are_bad_and_those_without_one_are_counted() -> None:
    at = [(END - timedelta(minutes=5)).replace(tzinfo=None)]
    known = pl.DataFrame({"bucket": at, "measure": ["ttft_s"], "n": [100], "within_2": [95]})
    requests = pl.DataFrame({"bucket": at, "requests": [130], "errors": [20]})
    asked = {"x": known, "x: requests": requests}
    window = Window(END - timedelta(days=1), END)
    result = ANALYSIS.run(asked, ANALYSIS.make_params({"slos": ("x: ttft_s<=2 @0.9",)}), window)
    assert result.frames["slos"].select("n", "bad").row(0) == (120, 25)
    assert "x: 30 requests state no ttft_s: 20 of them failed and are bad, 10 do not count" in result.notes
    out = ANALYSIS.make_params({"slos": ("x: ttft_s<=2 @0.9",), "failed": "left out"})
    assert list(inputs(out)) == ["x"]
    assert ANALYSIS.run({"x": known}, out, window).frames["slos"].select("n", "bad").row(0) == (100, 5)
