"""Usage objects of request logs: counted as their API counts them, whatever the names; --map and --label go first."""

import polars as pl

from collector.files.usage import usage_tokens


def test_cached_tokens_beside_the_prompt_are_added_and_those_within_are_not() -> None:
    frame = pl.DataFrame(
        {
            "usage.prompt_tokens": [2006, None],
            "usage.prompt_tokens_details.cached_tokens": [1920, None],
            "usage.input_tokens": [None, 3],
            "usage.cache_read_input_tokens": [None, 17],
            "usage.output_tokens": [None, 5],
            "usage.completion_tokens": [300, None],
        }
    )
    fields, doubts = usage_tokens(frame, None, ())
    assert fields["input_tokens"].to_list() == [2006, 20]
    assert fields["cached_input_tokens"].to_list() == [1920, 17]
    assert fields["output_tokens"].to_list() == [300, 5]
    assert doubts.to_list() == [None, None]


def test_the_provider_of_a_row_decides_where_names_do_not() -> None:
    frame = pl.DataFrame({"usage.input_tokens": [10, 10], "usage.cache_read_input_tokens": [4, 4]})
    fields, _ = usage_tokens(frame, pl.Series(["anthropic", "openai"]), ())
    assert fields["input_tokens"].to_list() == [14, 10]


def test_contradictions_are_clamped_and_named() -> None:
    frame = pl.DataFrame({"usage.prompt_tokens": [100], "usage.prompt_tokens_details.cached_tokens": [140]})
    fields, doubts = usage_tokens(frame, None, ())
    assert (fields["cached_input_tokens"].to_list(), doubts.to_list()) == ([100], ["cached>prompt"])


def test_fields_that_are_given_and_logs_without_usage_are_left_alone() -> None:
    frame = pl.DataFrame({"usage.prompt_tokens": [1], "tokens": [2]})
    assert "input_tokens" not in usage_tokens(frame, None, {"input_tokens"})[0]
    assert usage_tokens(frame.select("tokens"), None, ())[0] == {}
