"""A model that begins to answer for another is told, with its effect on the cost; routers and dated names are not."""

from collections.abc import Sequence
from datetime import UTC, timedelta
from decimal import Decimal

import numpy as np
import pytest

from analytics.result import Result
from analytics.tokens.names import family, same_model
from tests.analytics.tokens.asked import AT, answer, own, requests

PRICES = "- {model: m-large, input_per_1m: 10}\n- {model: m-mini, input_per_1m: 1}"
PAIRS = [("openai", name) for name in ("m-large", "m-large-2026-01-01", "m-mini")]


def answered(names: Sequence[str], asked: str = "m-large") -> Result:
    rows = [{"request_model": asked, "response_model": n, "model": n, "input_tokens": 1_000_000} for n in names]
    return answer(requests(rows), own(PRICES, PAIRS))


def test_a_swap_is_told_since_its_first_request_with_what_it_does_to_the_cost() -> None:
    result = answered(["m-large"] * 100 + ["m-mini"] * 50)
    (finding,) = result.findings
    assert (finding.trigger, finding.until) == ("ModelSwapped", None)
    assert finding.since == (AT + timedelta(seconds=100)).replace(tzinfo=UTC)
    assert "none of the 100 before" in finding.summary
    assert "450.0000 USD less" in finding.summary
    assert len(finding.evidence["trace_ids"]) == 5
    row = result.frames["swaps"].row(0, named=True)
    assert (row["kind"], row["requests"], row["began"]) == ("other", 50, True)
    assert (row["cost"], row["cost_as_asked"], row["effect"]) == (Decimal(50), Decimal(500), Decimal(-450))
    assert result.samples["model_swap_ratio"]["value"][0] > 0.3


def test_a_swap_that_is_over_is_an_episode() -> None:
    (finding,) = answered(["m-large"] * 100 + ["m-mini"] * 30 + ["m-large"] * 200).findings
    assert finding.until is not None
    assert finding.until - finding.since < timedelta(seconds=31)


def test_a_dated_name_is_a_version_and_no_swap() -> None:
    result = answered(["m-large"] * 100 + ["m-large-2026-01-01"] * 50)
    assert result.findings == ()
    row = result.frames["swaps"].row(0, named=True)
    assert (row["kind"], row["effect"]) == ("version", None)


def test_a_router_that_always_chose_among_models_is_no_news() -> None:
    random = np.random.default_rng(1)
    assert answered(["m-mini" if pick else "m-large" for pick in random.random(500) < 0.3], "router").findings == ()


def test_a_rare_answer_of_another_model_is_no_swap() -> None:
    assert answered(["m-large"] * 100 + (["m-mini"] + ["m-large"] * 60) * 12).findings == ()
    assert answered(["m-large"] * 3 + ["m-mini"] * 50).findings == ()


def test_mixtures_that_do_not_change_are_told_less_than_once_in_a_hundred() -> None:
    random = np.random.default_rng(7)
    told = 0
    for share in np.linspace(0.02, 0.6, 150):
        names = ["m-mini" if pick else "m-large" for pick in random.random(300) < share]
        told += bool(answered(names).findings)
    assert told <= 1


@pytest.mark.parametrize(
    ("asked", "given", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("openai/m-large", "m-large-2026-09-01", True),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
        ("claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("gpt-3.5-turbo", "gpt-3.5-turbo-0125", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("m-large", "m-large-vision", False),
        ("gpt-3.5-turbo", "gpt-3.5-turbo-16k", False),
        ("o3", "o3-mini-2025-01-31", False),
        ("llama-3.1-70b", "llama-3.1-405b", False),
    ],
)
def test_dates_and_versions_do_not_make_another_model(asked: str, given: str, same: bool) -> None:
    assert same_model(asked, given) is same
    assert family(family(given)) == family(given)
