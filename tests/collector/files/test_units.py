"""Units: each converts to one base unit, and to no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.files.units import PER_SECOND, UNITS, factor_to, snake, unit_of_name
from store.errors import UsageError

names = st.sampled_from(sorted(UNITS))


@given(names, names)
def test_a_unit_converts_exactly_to_what_has_its_base(first: str, second: str) -> None:
    base = UNITS[first].base
    if UNITS[second].base == base:
        assert factor_to(base, second, "x") == UNITS[second].factor
    else:
        with pytest.raises(UsageError, match="does not convert"):
            factor_to(base, second, "x")


@given(names, st.floats(1e-6, 1e6))
def test_there_and_back_is_the_same_value(name: str, value: float) -> None:
    factor = UNITS[name].factor
    assert value * factor / factor == pytest.approx(value, rel=1e-12)


def test_the_two_tables_of_time_units_agree() -> None:
    assert {name: 1 / UNITS[name].factor for name in PER_SECOND} == pytest.approx(PER_SECOND)


def test_an_unknown_unit_names_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        factor_to("s", "mss", "ttft_s")
    assert caught.value.hint == "did you mean ms?"


def test_a_unit_of_something_else_is_refused_with_the_fitting_ones() -> None:
    with pytest.raises(UsageError, match="ttft_s is measured in s: MiB does not convert") as caught:
        factor_to("s", "MiB", "ttft_s")
    assert caught.value.hint == "units that do: s, ms, us, ns, m, h"


@pytest.mark.parametrize(
    ("name", "unit"),
    [("duration_us", "us"), ("start_unix_nano", "ns"), ("latencyMs", "ms"), ("TTFT (ms)", "ms"), ("used_mib", "MiB"),
     ("gpu_util_percent", "percent"), ("kv_cache_usage_perc", None), ("tokens", None), ("s", None)],
)  # fmt: skip
def test_the_ending_of_a_column_name_states_its_unit(name: str, unit: str | None) -> None:
    assert unit_of_name(name) == unit


@pytest.mark.parametrize("name", ["ContextTokens", "context tokens", "Context-Tokens", "context_tokens"])
def test_one_name_however_it_is_written(name: str) -> None:
    assert snake(name) == "context_tokens"
