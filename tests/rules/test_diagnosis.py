"""One message carries the diagnosis, and stays short."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from analytics.result import Finding, Severity
from rules.diagnosis import MOST, diagnosis

BASE = "http://127.0.0.1:8050"
FOUND = Finding(
    "P99FarAboveBaseline",
    Severity.CRITICAL,
    {"service": "chat"},
    3.456789,
    (1 / 3, 3.0),
    datetime(2026, 11, 30, tzinfo=UTC),
    "P99 reached 3.5x",
    evidence={
        "trace_ids": ["a1", "b2", "c3", "d4"],
        "drivers": [
            {"driver": "batch", "share": 0.1, "ci_low": 0.0, "ci_high": 0.2},
            {"driver": "queue", "share": 0.6, "ci_low": 0.5, "ci_high": 0.7},
            {"driver": "noise", "share": 0.0, "ci_low": 0.0, "ci_high": 0.0},
        ],
        "moved_most": {"driver": "kv_cache_usage", "driver_inside": 0.98, "driver_outside": 0.4, "moved": 2.0},
    },
)


def test_band_drivers_what_moved_and_three_traces_are_told() -> None:
    assert diagnosis("p99", FOUND, BASE) == (
        "Value 3.457, expected 0.3333 to 3. Associated with: queue 60%, batch 10%. "
        "Moved most: kv_cache_usage (0.4 to 0.98). "
        f"Traces: {BASE}/trace/a1 {BASE}/trace/b2 {BASE}/trace/c3. Ask why with: infractl analyze p99"
    )


def test_the_band_of_each_series_is_told_where_a_finding_is_about_series() -> None:
    series = [{"series": "vllm:num_requests_waiting", "value": 40.0, "low": 0.0, "high": 3.5}]
    causes = [{"cause": "db", "share": 0.8}]
    moved = [{"name": "kv_cache_usage_ratio"}, {"name": "preemptions_total"}]
    told = replace(FOUND, expected=(0.0, 0.0), evidence={"series": series, "causes": causes, "moved": moved})
    assert diagnosis("anomalies", told, BASE) == (
        "vllm:num_requests_waiting is 40, expected 0 to 3.5. Associated with: db 80%. "
        "Also moved: kv_cache_usage_ratio, preemptions_total. Ask why with: infractl analyze anomalies"
    )


def test_money_is_told_by_item_and_errors_by_code() -> None:
    bare = replace(FOUND, value=None, expected=(None, None))
    cost = replace(bare, evidence={"explained": [{"item": "gpt-5 output", "total": "12.50", "price": "12.50"}]})
    assert diagnosis("cost", cost, BASE) == "Most on: gpt-5 output 12.50. Ask why with: infractl analyze cost"
    errors = replace(bare, evidence={"error_codes": [{"error_code": "429", "n": 7}, {"error_code": None, "n": 2}]})
    assert diagnosis("overview", errors, BASE).startswith("Errors: 429 (7), no code (2). ")


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = ("trace_ids", "drivers", "moved_most", "moved", "causes", "series", "explained", "error_codes", "most_spent_on")
ROWS = st.lists(st.dictionaries(st.sampled_from(("driver", "share", "name", "item", "error_code")), VALUES), max_size=4)


@given(st.dictionaries(st.sampled_from(KEYS), ROWS | VALUES))
def test_whatever_the_evidence_is_the_text_is_short_and_says_what_to_ask(evidence: dict[str, Any]) -> None:
    text = diagnosis("p99", replace(FOUND, evidence=evidence), BASE)
    assert len(text) <= MOST
    assert text.endswith("Ask why with: infractl analyze p99")


def test_traces_with_long_addresses_are_left_out_whole() -> None:
    text = diagnosis("p99", FOUND, "http://" + "h" * 400)
    assert "/trace/" not in text
    assert "queue 60%" in text
