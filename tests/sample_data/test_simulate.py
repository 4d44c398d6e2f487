"""The generator: the shipped files are its output, and another seed gives another day of the same shape."""

from itertools import pairwise
from pathlib import Path

import polars as pl
from polars.testing import assert_frame_equal

from sample_data import files, scenario
from sample_data.incidents import from_json
from sample_data.simulate import SEED, Simulation, simulate

PARTS = ("requests", "series", "samples")


def test_a_fresh_run_equals_the_shipped_files(fresh: Simulation) -> None:
    for part in PARTS:
        assert_frame_equal(getattr(fresh, part), files.parquet("simulated", f"{part}.parquet"), check_exact=True)
    assert fresh.bill == b"".join(files.lines("simulated", "bill.csv.gz"))
    assert list(fresh.incidents) == from_json(files.read("simulated", "truth.json"))


def test_two_runs_with_one_seed_are_written_alike_byte_by_byte(fresh: Simulation, tmp_path: Path) -> None:
    fresh.write(tmp_path / "a")
    simulate(SEED).write(tmp_path / "b")
    for name in ("requests.parquet", "series.parquet", "samples.parquet", "bill.csv.gz", "truth.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_another_seed_moves_the_requests_but_not_the_incidents(fresh: Simulation) -> None:
    other = simulate(SEED + 1)
    assert other.requests["ts_us"].to_list()[:50] != fresh.requests["ts_us"].to_list()[:50]
    assert [(i.id, i.start, i.end) for i in other.incidents] == [(i.id, i.start, i.end) for i in fresh.incidents]


def test_the_shipped_files_stay_small() -> None:
    sizes = [len(files.read("simulated", f"{part}.parquet")) for part in PARTS]
    assert sum(sizes) < 3_000_000


def test_incidents_of_one_nature_never_overlap_in_time(fresh: Simulation) -> None:
    engines = [i for i in fresh.incidents if i.nature in ("errors", "latency")]
    assert all(earlier.settled < later.start for earlier, later in pairwise(engines))
    assert len(engines) == len(scenario.DISTURBANCES)
    costs = [i for i in fresh.incidents if i.nature == "cost"]
    assert len({i.service for i in costs}) == len(costs) == 4


def test_counters_never_fall_and_every_series_has_a_value_at_every_scrape(fresh: Simulation) -> None:
    counters = fresh.series.filter(pl.col("kind") == "counter").select("series")
    steps = fresh.samples.join(counters, on="series").select(pl.col("value").diff().over("series"))
    assert steps["value"].drop_nulls().min() >= 0
    assert fresh.samples["value"].null_count() == 0
    assert fresh.samples.group_by("series").len()["len"].n_unique() == 1


def test_eight_gpus_on_two_nodes_each_name_the_service_that_runs_on_them(fresh: Simulation) -> None:
    gpus = fresh.series.filter(pl.col("job") == "dcgm").with_columns(
        pl.col("labels").str.json_path_match("$.UUID").alias("uuid"),
        pl.col("labels").str.json_path_match("$.service").alias("service"),
    )
    assert gpus["uuid"].n_unique() == 8
    assert gpus["instance"].n_unique() == 2
    by_service = dict(gpus.group_by("service").agg(pl.col("uuid").n_unique()).iter_rows())
    assert by_service == {"chat-api": 2, "code-assist": 2, "rag-search": 4}
