"""Merging and deleting files changes nothing that a reader sees, and touches no other node's files."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.errors import StoreError
from store.lake.compact import compact
from store.lake.mirror import read_manifest, sync
from store.lake.node import cleaned, node
from store.lake.seal import seal
from store.lake.sweep import sweep
from store.manifest import create_views
from store.tables import TABLES
from tests.store.lake.rows import LATER, NOW, append, files, opened, parts, repeated, seen
from tests.store.rows import NOON

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.integers(0, 40), min_size=1, max_size=8, unique=True)),
        st.tuples(st.sampled_from(["seal", "compact", "sweep", "reopen"]), st.just([])),
    ),
    min_size=3,
    max_size=12,
)


def appended_in_parts(database, count: int, at=NOON) -> None:
    for n in range(count):
        append(database, [n], at + timedelta(minutes=n))
        seal(database, NOW)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_what_readers_see_depends_on_appends_alone(tmp_path: Path, steps):
    shutil.rmtree(tmp_path)
    database, twin = opened(tmp_path / "a"), opened(tmp_path / "b")
    try:
        for what, ids in steps:
            if what == "append":
                for store in (database, twin):
                    for i in ids:
                        append(store, [i], NOON + timedelta(minutes=5 * i))
            elif what == "seal":
                seal(database, NOW)
            elif what == "compact":
                compact(database, NOW, parts=2)
            elif what == "sweep":
                sweep(database, LATER)
            else:
                database.close()
                database = opened(tmp_path / "a")
            assert seen(database) == seen(twin)
            assert not repeated(database)
    finally:
        database.close()
        twin.close()


def test_enough_parts_become_one_file_and_the_old_ones_wait_for_the_sweep(tmp_path: Path):
    with opened(tmp_path) as database:
        appended_in_parts(database, 8)
        before = seen(database)
        (done,) = compact(database, NOW)
        assert (done.parts, done.rows, done.duplicates) == (8, 8, 0)
        assert seen(database) == before
        assert len(parts(database)) == 9
        assert sweep(database, NOW).dropped == 0
        assert sweep(database, NOW + timedelta(minutes=16)).dropped == 8
        assert seen(database) == before
        assert parts(database) == [done.path]


def test_few_parts_are_left_alone_until_their_hour_is_a_week_old(tmp_path: Path):
    with opened(tmp_path) as database:
        appended_in_parts(database, 2)
        assert compact(database, NOW) == ()
        assert len(compact(database, NOW + timedelta(days=7))) == 1
        assert compact(database, NOW + timedelta(days=7)) == ()


def test_a_row_that_is_in_two_parts_is_kept_once(tmp_path: Path):
    with opened(tmp_path) as database:
        append(database, [1, 2])
        (done,) = seal(database, NOW)
        path = tmp_path / "lake" / done.path
        shutil.copy(path, path.with_name("part-2.parquet"))
        with database.transaction() as cursor:
            cursor.execute("INSERT INTO manifest SELECT * REPLACE (replace(path, '-1.', '-2.') AS path) FROM manifest")
            create_views(cursor, TABLES, database.lake)
        assert len(repeated(database)) == 2
        (merged,) = compact(database, NOW, parts=2)
        assert (merged.rows, merged.duplicates) == (2, 2)
        assert not repeated(database)


def test_an_old_import_is_not_kept_longer_for_being_merged(tmp_path: Path):
    with opened(tmp_path) as database:
        appended_in_parts(database, 2)
        compact(database, NOW + timedelta(days=8))
        rows = database.table("manifest")
        assert rows["sealed"].unique().to_list() == [NOW.replace(tzinfo=None)]


def test_a_part_that_retention_drops_during_a_merge_stays_dropped(tmp_path: Path, monkeypatch):
    from store.lake import compact as compacting

    with opened(tmp_path) as database:
        appended_in_parts(database, 2)
        write = compacting.write

        def write_slowly(*args):
            made = write(*args)
            with database.transaction() as cursor:
                cursor.execute("UPDATE manifest SET dropped = ? WHERE part = 1", [NOW.replace(tzinfo=None)])
                create_views(cursor, TABLES, database.lake)
            return made

        monkeypatch.setattr(compacting, "write", write_slowly)
        assert compact(database, NOW, parts=2) == ()
        assert database.table("spans").height == 1
        assert len(parts(database)) == 2


def test_litter_of_this_node_goes_and_that_of_others_stays(tmp_path: Path):
    with opened(tmp_path) as database:
        append(database, [1])
        (done,) = seal(database, NOW)
        mine = tmp_path / "lake" / "spans" / "date=2026-11-30" / "hour=12" / "node=n"
        others = mine.with_name("node=m")
        others.mkdir()
        for folder in (mine, others):
            for name in ("part-7.parquet", "x.tmp"):
                (folder / name).write_bytes(b"litter")
        (mine.parent.parent / "hour=13").mkdir()
        gone = sweep(database, LATER)
        assert (gone.dropped, gone.orphans, gone.drafts) == (0, 1, 1)
        assert [path.name for path in sorted(mine.iterdir())] == [Path(done.path).name]
        assert len(list(others.iterdir())) == 2
        assert not (mine.parent.parent / "hour=13").exists()


def test_a_new_file_is_not_taken_for_litter(tmp_path: Path):
    with opened(tmp_path) as database:
        path = tmp_path / "lake" / "spans" / "date=2026-11-30" / "hour=12" / "node=n" / "part-1.parquet"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"a seal is about to name it")
        assert sweep(database, datetime.now(UTC)).orphans == 0
        assert path.exists()


def test_the_mirror_gives_the_manifest_back_as_it_is(tmp_path: Path):
    with opened(tmp_path) as database:
        appended_in_parts(database, 3)
        compact(database, NOW, parts=3)
        live = database.table("manifest").filter(pl.col("dropped").is_null())
        assert read_manifest(database.lake).equals(live)
        assert read_manifest(database.lake, node="n").equals(live)


def test_the_mirror_changes_only_with_the_manifest(tmp_path: Path):
    with opened(tmp_path) as database:
        append(database, [1])
        seal(database, NOW)
        first = sync(database)
        assert sync(database) == first
        append(database, [2], NOON + timedelta(hours=1))
        seal(database, NOW)
        assert sync(database) == first + 1


def test_an_empty_lake_has_an_empty_manifest_and_files_without_one_are_an_error(tmp_path: Path):
    assert read_manifest(str(tmp_path) + "/").height == 0
    with opened(tmp_path) as database:
        append(database, [1])
        seal(database, NOW)
        (tmp_path / "lake" / "manifest-n.json").unlink()
        with pytest.raises(StoreError, match="no manifest"):
            read_manifest(database.lake)


def test_a_damaged_mirror_is_an_error_and_is_written_anew(tmp_path: Path):
    with opened(tmp_path) as database:
        append(database, [1])
        seal(database, NOW)
        mirror = tmp_path / "lake" / "manifest-n.json"
        mirror.write_bytes(mirror.read_bytes()[:100])
        with pytest.raises(StoreError, match="cannot be read"):
            read_manifest(database.lake)
        sync(database)
        assert read_manifest(database.lake).height == 1


def test_two_stores_of_one_name_do_not_share_a_lake(tmp_path: Path):
    lake = str(tmp_path / "shared")
    with opened(tmp_path / "a", lake=lake) as first, opened(tmp_path / "b", lake=lake) as second:
        append(first, [1])
        append(second, [2])
        seal(first, NOW)
        for work in (lambda: seal(second, NOW), lambda: sweep(second, LATER)):
            with pytest.raises(StoreError, match="another store's"):
                work()
        second.settings = replace(second.settings, node="m")
        seal(second, NOW)
        sweep(first, LATER)
        sweep(second, LATER)
        assert (first.table("spans").height, second.table("spans").height) == (1, 1)
        assert read_manifest(first.lake).height == 2


def test_a_store_keeps_its_name_when_the_machine_has_another(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "pod/1 x")
    with opened(tmp_path) as database:
        database.settings = replace(database.settings, node=None)
        assert node(database).name == "pod-1-x"
        monkeypatch.setattr("socket.gethostname", lambda: "pod-2")
        assert node(database).name == "pod-1-x"


def test_a_name_never_leaves_its_folder():
    assert cleaned("../../x") == "x"
    assert cleaned("...") == "node"


def test_a_store_is_made_anew_from_the_mirror(tmp_path: Path):
    with opened(tmp_path) as database:
        appended_in_parts(database, 4)
        compact(database, NOW, parts=4)
        before = seen(database)
    for path in tmp_path.glob("infractl.duckdb*"):
        path.unlink()
    shutil.rmtree(tmp_path / "journal")
    with opened(tmp_path) as database:
        assert seen(database) == before
        assert len(files(database)) == 6


def test_a_store_with_a_new_name_leaves_one_mirror(tmp_path: Path):
    with opened(tmp_path) as database:
        appended_in_parts(database, 2)
        database.settings = replace(database.settings, node="renamed")
        append(database, [9], NOON + timedelta(minutes=50))
        seal(database, NOW)
        assert [path for path in files(database) if path.endswith(".json")] == ["manifest-renamed.json"]
        assert read_manifest(database.lake).height == 3
