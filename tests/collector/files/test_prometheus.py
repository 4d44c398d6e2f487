"""Prometheus text in files: its own times, one time for the page, or a refusal that says what to do."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.files.load import load, sniff
from collector.files.options import FileKind, ImportOptions
from store.errors import SourceError, UsageError

TIMED = (
    "# TYPE vllm:num_requests_waiting gauge\n"
    'vllm:num_requests_waiting{engine="0"} 3 1796040000000\n'
    'vllm:num_requests_waiting{engine="0"} 4 1796040015000\n'
)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.prom"


def test_samples_keep_their_times_and_their_series_is_known(page: Path) -> None:
    page.write_text(TIMED)
    assert sniff(page) is FileKind.PROMETHEUS
    [batch] = load(page, ImportOptions(labels={"instance": "a:1"})).batches
    noon = datetime(2026, 11, 30, 12, tzinfo=UTC).replace(tzinfo=None)
    assert batch.frames["metric_samples"]["ts"].to_list() == [noon, noon.replace(second=15)]
    [row] = batch.frames["metric_series"].to_dicts()
    assert (row["canonical"], row["instance"]) == ("requests_waiting", "a:1")


def test_openmetrics_states_seconds(page: Path) -> None:
    page.write_text("# TYPE x gauge\nx 1 1796040000.5\n# EOF\n")
    [batch] = load(page, ImportOptions()).batches
    assert batch.frames["metric_samples"]["ts"].to_list() == [
        datetime(2026, 11, 30, 12, 0, 0, 500_000, tzinfo=UTC).replace(tzinfo=None)
    ]


def test_without_times_the_page_needs_one(page: Path) -> None:
    page.write_text("x 1\ny 2\n")
    with pytest.raises(UsageError, match="2 of 2 samples state no time") as caught:
        load(page, ImportOptions())
    assert "--time" in caught.value.hint
    [batch] = load(page, ImportOptions(at=datetime(2026, 11, 30, 12, tzinfo=UTC))).batches
    assert batch.frames["metric_samples"]["ts"].dt.hour().to_list() == [12, 12]


def test_a_line_that_is_no_metric_is_named_and_nothing_is_taken(page: Path) -> None:
    page.write_text(TIMED + "what is this\n")
    with pytest.raises(SourceError) as caught:
        load(page, ImportOptions())
    assert str(caught.value) == f"{page}:4: no metric: what is this"


def test_a_time_out_of_range_is_refused_and_counted(page: Path) -> None:
    page.write_text("x 1 1796040000\nx 2 1796040000000\n")
    imported = load(page, ImportOptions())
    assert {reason: refusal.count for reason, refusal in imported.refused.items()} == {"time_out_of_range": 1}


def test_columns_cannot_be_mapped(page: Path) -> None:
    page.write_text(TIMED)
    with pytest.raises(UsageError, match="--unit does not apply to prometheus files"):
        load(page, ImportOptions(units={"x": "ms"}))
