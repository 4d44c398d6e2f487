"""ServeGen's load model: windows become series; quantiles are those of the shares."""

import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.files import FileKind, ImportOptions, load, sniff
from collector.files.content import open_content
from collector.files.traces.servegen import is_servegen

ROWS = "0,19.05,5.3,Weibull,0.405,0.0282\n600,0,0,,0,0\n1200,2.5,1.4,Gamma,0.49,0.78\n"


def values(path: Path, start: datetime | None = None) -> pl.DataFrame:
    """Samples by name, distribution and quantile."""
    [batch] = load(path, ImportOptions(start=start)).batches
    labels = pl.Struct(dict.fromkeys(("service", "distribution", "quantile"), pl.String))
    series = (
        batch.frames["metric_series"]
        .with_columns(pl.col("labels").str.json_decode(labels))
        .unnest("labels", separator=".")
    )
    return batch.frames["metric_samples"].join(series, on="series_id").sort("ts")


def of(frame: pl.DataFrame, name: str, quantile: str | None = None) -> list[float]:
    found: list[float] = frame.filter(pl.col("name") == name, pl.col("labels.quantile").eq_missing(pl.lit(quantile)))[
        "value"
    ].to_list()
    return found


def test_a_trace_without_a_header_is_told_and_its_first_row_kept(tmp_path: Path) -> None:
    path = tmp_path / "chunk-14-trace.csv"
    path.write_text(ROWS)
    assert sniff(path) is FileKind.SERVEGEN
    frame = values(path)
    assert of(frame, "servegen_request_rate_per_second") == [19.05, 0, 2.5]
    assert of(frame, "servegen_arrival_gap_cv_ratio") == [5.3, 1.4]  # nothing arrived in the second window
    shapes = frame.filter(name="servegen_arrival_gap_shape")
    assert dict(zip(shapes["labels.distribution"], shapes["value"], strict=True)) == {"Weibull": 0.405, "Gamma": 0.49}
    assert frame["labels.service"].unique().to_list() == ["chunk-14-trace"]


def test_zero_of_the_clock_is_the_stated_start(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(ROWS)
    frame = values(path, start=datetime(2026, 11, 30, 8, tzinfo=UTC))
    assert (frame["ts"].min(), frame["ts"].max()) == (datetime(2026, 11, 30, 8), datetime(2026, 11, 30, 8, 20))


def test_a_broken_row_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(ROWS + "1800,fast\n")
    imported = load(path, ImportOptions())
    assert [(why, r.count, r.first) for why, r in imported.refused.items()] == [
        ("no window of a trace", 1, f"{path}:4"),
    ]  # fmt: skip


def test_published_traces_have_their_rows_and_first_window(shared: Path) -> None:
    folder = shared / "data" / "servegen"
    frame = values(folder / "language_m-small_chunk-14-trace.csv.gz")
    rate = of(frame, "servegen_request_rate_per_second")
    assert (len(rate), round(rate[0], 3), round(sum(rate), 2)) == (2016, 19.053, 208_635.91)
    assert round(of(frame, "servegen_arrival_gap_cv_ratio")[0], 3) == 5.305
    assert frame.filter(name="servegen_arrival_gap_shape")["labels.distribution"][0] == "Weibull"
    quiet = of(values(folder / "multimodal_mm-image_chunk-1-trace.csv"), "servegen_request_rate_per_second")
    assert (len(quiet), quiet[:8]) == (144, [0, 0, 0, 0, 0, 0, 0, 1.885])


def test_published_lengths_have_a_quantile_and_a_mean_per_window(shared: Path) -> None:
    path = shared / "data" / "servegen" / "multimodal_mm-image_chunk-1-dataset.json"
    assert sniff(path) is FileKind.SERVEGEN
    frame = values(path)
    assert of(frame, "servegen_text_tokens", "0.99") == [50, *of(frame, "servegen_text_tokens", "0.99")[1:]]
    assert of(frame, "servegen_text_tokens", "0.5")[0] == 41
    assert of(frame, "servegen_text_tokens_mean")[0] == pytest.approx(41 * 0.9899306 + 50 * 0.0100694, abs=1e-6)
    assert of(frame, "servegen_audio_tokens_mean") == [0, 0, 0, 0]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=200))
def test_quantiles_are_those_of_the_requests_themselves(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int]
) -> None:
    shares = {length: lengths.count(length) / len(lengths) for length in set(lengths)}
    text = "{" + ", ".join(f"{length}: {share}" for length, share in shares.items()) + "}"
    path = tmp_path_factory.mktemp("servegen") / "dataset.json"
    path.write_text(json.dumps({"0": {"input_tokens": text}}))
    frame = values(path)
    ordered = sorted(lengths)
    for q in (0.5, 0.9, 0.99):
        rank = next(rank for rank in range(1, len(ordered) + 1) if rank / len(ordered) >= q * (1 - 1e-9))
        assert of(frame, "servegen_input_tokens", str(q)) == [ordered[rank - 1]]
    assert of(frame, "servegen_input_tokens_mean") == [pytest.approx(sum(lengths) / len(lengths))]


@pytest.mark.parametrize("text", ["", "{1: }", "{1: 0.5, x: 2}", "{1: 0.0}"])
def test_a_window_without_shares_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps({"0": {"input_tokens": "{7: 1.0}", "output_tokens": text}}))
    imported = load(path, ImportOptions())
    assert [(why, r.first) for why, r in imported.refused.items()] == [
        ("no shares by length", f"{path} window 0 output_tokens"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["a,b,c,d,e,f\n0,1,2,Gamma,3,4\n", "0,1,2,Gamma,3,4\n600,1,2,Gamma,3,4\n", "1,2,3,X,4,5\n" * 3]
)
def test_other_tables_are_not_taken_for_a_trace(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.csv"
    path.write_text(text)
    assert is_servegen(open_content(path)) is False
