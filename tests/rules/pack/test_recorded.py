"""A canonical metric is one recorded series, whoever exports it."""

import re
from datetime import timedelta

import pytest

from collector.presets.catalog import catalog
from rules.pack import pack
from rules.pack.recorded import Derived, Recorded
from rules.promql import read
from store.errors import UsageError


def test_names_follow_level_metric_operation() -> None:
    assert Recorded("gpu", "gpu_temperature_celsius", by=("sensor",)).name == "gpu:temperature_celsius:last"
    replays = Recorded("gpu", "gpu_pcie_replay_total", "increase", timedelta(minutes=10))
    assert replays.name == "gpu:pcie_replay_total:increase10m"
    prompts = Recorded("engine", "request_prompt_tokens", "rate", timedelta(minutes=30), suffix="_sum")
    assert prompts.name == "engine:request_prompt_tokens_sum:rate30m"


def test_every_source_is_read_in_every_spelling_and_in_the_canonical_unit() -> None:
    waiting = Recorded("engine", "requests_waiting").expr(catalog())
    assert '__name__=~"(ray_)?vllm[:_]num_requests_waiting"' in waiting
    assert '__name__=~"(ray_)?sglang[:_]num_queue_reqs"' in waiting
    assert "tgi_queue_size" in waiting
    throttled = Recorded("gpu", "gpu_throttle_seconds_total", "rate", timedelta(minutes=5), by=("reason",))
    assert re.search(r"rate\(DCGM_FI_DEV_THERMAL_VIOLATION\[5m\]\) \* 1e-09", throttled.expr(catalog()))


def test_ranks_that_repeat_an_engine_and_a_router_that_repeats_its_engines_are_left_out() -> None:
    waiting = Recorded("engine", "requests_waiting").expr(catalog())
    assert 'server=""' in waiting
    assert 'tp_rank=~"0|"' in waiting


def test_a_value_that_means_not_available_is_left_out() -> None:
    assert "0 <= (last_over_time(DCGM_FI_DEV_XID_ERRORS[2m]) <= 100000)" in Recorded("gpu", "gpu_last_xid").expr(
        catalog()
    )


def test_one_bucket_is_chosen_by_its_bound_in_the_unit_of_each_source_and_in_both_spellings() -> None:
    within = Recorded("engine", "ttft_seconds", "rate", timedelta(minutes=5), suffix="_bucket", limit=0.25)
    assert within.name == "engine:ttft_seconds_bucket_le0_25:rate5m"
    assert 'le="0.25"' in within.expr(catalog())
    assert 'rate(nv_inference_first_response_histogram_ms_bucket{le=~"250|250\\\\.0"}[5m])' in within.expr(catalog())
    assert "* 0.001" not in within.expr(catalog())


def test_series_that_would_hide_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match="differ in \\['kind'\\]"):
        Recorded("gpu", "gpu_nvlink_errors_total").expr(catalog())


def test_every_alert_names_recorded_series_it_reads_and_labels_they_keep() -> None:
    for _, alerts in pack():
        for packed in alerts:
            known = {record.name: frozenset(record.labels) for record in packed.reads}
            expression = read(packed.expr, known)
            assert expression.metrics <= known.keys(), packed.name
            assert expression.labels is not None
            assert set(packed.kept) <= expression.labels, packed.name
            assert not expression.unguarded, packed.name
            inner = [read(record.formula, known) for record in packed.reads if isinstance(record, Derived)]
            assert all(one.metrics <= known.keys() and not one.unguarded for one in inner), packed.name
