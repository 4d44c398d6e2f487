"""A lake in S3-compatible storage is as good as one in a directory, and its outage loses and hides nothing."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import httpx
import pytest

from store.database import Database
from store.errors import StoreError, UsageError
from store.lake.compact import compact
from store.lake.mirror import own_manifest, read_manifest
from store.lake.s3 import Bucket, make_readable, refused
from store.lake.seal import seal, waiting
from store.lake.storage import storage
from store.lake.sweep import sweep
from store.settings import S3Settings, StoreSettings
from tests.store.lake.rows import HOUR, LATER, NOW, append, repeated, seen, window
from tests.store.rows import NOON

pytest.importorskip("obstore")
pytest.importorskip("moto")
SECRET = "not-for-logs"


class Server:
    """A moto server that can be stopped and started again at the same address, empty."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        port = self.port
        command = [sys.executable, "-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while True:
            try:
                httpx.put(f"{self.url}/bucket", trust_env=False)
                return
            except httpx.HTTPError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    made.start()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    connect = Database._connect

    def connected(self, path):
        con = connect(self, path)
        if not con.filesystem_is_registered("s3"):
            make_readable(con, self.settings.s3)
        return con

    monkeypatch.setattr(Database, "_connect", connected)


def place(server: Server) -> S3Settings:
    return S3Settings(server.url, "us-east-1", timeout_s=3.0)


def opened(directory: Path, server: Server, lake: str, node: str = "n") -> Database:
    return Database(directory, StoreSettings(min_free_bytes=0, node=node, lake=lake, s3=place(server)))


def bucket(server: Server, lake: str, drafts: Path) -> Bucket:
    made = storage(lake, place(server), drafts)
    assert isinstance(made, Bucket)
    return made


def test_readers_see_the_same_before_and_after_sealing_merging_and_sweeping(server: Server, tmp_path: Path):
    lake = "s3://bucket/whole/lake"
    with opened(tmp_path, server, lake) as database:
        for n in range(4):
            append(database, [n], NOON + HOUR * (n % 2))
            before = seen(database)
            seal(database, NOW)
            assert seen(database) == before
        assert append(database, [0]) == 0
        assert len(compact(database, NOW, parts=2)) == 2
        assert seen(database) == before
        assert sweep(database, LATER).dropped == 4
        assert seen(database) == before
        assert not repeated(database)
        assert own_manifest(database).height == 2
        assert not list((tmp_path / "drafts").iterdir())
    with opened(tmp_path, server, lake) as database:
        assert seen(database) == before


def test_nothing_in_a_bucket_is_ever_written_over(server: Server, tmp_path: Path):
    lake = bucket(server, "s3://bucket/once/", tmp_path)
    for content in (b"first", b"second"):
        draft = lake.draft("spans")
        draft.write_bytes(content)
        if content == b"first":
            lake.create("spans/x", draft)
        else:
            with pytest.raises(FileExistsError):
                lake.create("spans/x", draft)
    assert lake.read("spans/x") == b"first"


def test_a_bucket_answers_as_a_directory_does(server: Server, tmp_path: Path):
    for lake in (
        bucket(server, "s3://bucket/same/", tmp_path / "d"),
        storage(f"{tmp_path}/l/", place(server), tmp_path),
    ):
        lake.replace("a.json", b"1")
        lake.replace("a.json", b"2")
        draft = lake.draft("spans/x=1")
        draft.write_bytes(b"rows")
        lake.create("spans/x=1/part-1.parquet", draft)
        assert lake.read("a.json") == b"2"
        assert lake.names() == ["a.json"]
        assert {item.path: item.size_bytes for item in lake.files()} == {"a.json": 1, "spans/x=1/part-1.parquet": 4}
        assert [item.path for item in lake.files("spans")] == ["spans/x=1/part-1.parquet"]
        lake.delete("a.json")
        lake.delete("a.json")
        with pytest.raises(FileNotFoundError):
            lake.read("a.json")


def test_a_file_left_by_a_run_that_died_takes_no_name_and_is_swept(server: Server, tmp_path: Path):
    lake = "s3://bucket/orphan/"
    with opened(tmp_path, server, lake) as database:
        append(database, [1])
        left = bucket(server, lake, tmp_path)
        draft = left.draft("spans")
        draft.write_bytes(b"half a seal")
        left.create("spans/date=2026-11-30/hour=12/node=n/part-1.parquet", draft)
        (done,) = seal(database, NOW)
        assert done.path.endswith("part-2.parquet")
        assert sweep(database, LATER).orphans == 1
        assert database.table("spans").height == 1


def test_two_nodes_share_a_bucket_and_see_their_own(server: Server, tmp_path: Path):
    lake = "s3://bucket/shared/"
    with opened(tmp_path / "a", server, lake, "a") as first, opened(tmp_path / "b", server, lake, "b") as second:
        append(first, [1])
        append(second, [2, 3])
        seal(first, NOW)
        seal(second, NOW)
        sweep(first, LATER)
        sweep(second, LATER)
        assert (first.table("spans").height, second.table("spans").height) == (1, 2)
        assert read_manifest(lake, s3=place(server))["rows"].sum() == 3
        second.settings = replace(second.settings, node="a")
        with pytest.raises(StoreError, match="another store's"):
            seal(second, NOW)


def test_sql_reads_no_other_object_of_the_bucket(server: Server, tmp_path: Path):
    lake = bucket(server, "s3://bucket/", tmp_path)
    lake.replace("elsewhere/secret.csv", b"a\n1\n")
    with opened(tmp_path, server, "s3://bucket/mine/") as database:
        with pytest.raises(UsageError):
            database.sql("SELECT * FROM read_csv('s3://bucket/elsewhere/secret.csv')")
        with database.snapshot() as cursor, pytest.raises(duckdb.Error, match="elsewhere"):  # past the guard
            cursor.execute("SELECT * FROM read_csv('s3://bucket/elsewhere/secret.csv')").fetchall()


def test_while_the_storage_is_away_hot_rows_are_read_and_sealing_waits(tmp_path: Path):
    server = Server()
    server.start()
    try:
        with opened(tmp_path, server, "s3://bucket/away/") as database:
            append(database, [1])
            seal(database, NOW)
            server.stop()
            assert append(database, [2], NOON + 2 * HOUR) == 1
            with pytest.raises(StoreError, match="does not answer") as told:
                seal(database, NOW)
            assert SECRET not in f"{told.value} {told.value.hint}"
            (held,) = waiting(database, NOW)
            assert (held.rows, held.hours) == (1, 1)
            assert database.table("spans", window(NOON + 2 * HOUR)).height == 1
            assert database.counts()["spans"] == 2
    finally:
        server.stop()


def test_what_duckdb_says_of_an_outage_becomes_a_sentence():
    said = (
        "Traceback (most recent call last):\n  File x\n"
        "GenericError: Generic S3 error: Error performing HEAD http://h/b/x in 1s - HTTP error: error sending request\n"
        "\nDebug source:\nGeneric {"
    )
    told = refused("s3://b/", said)
    assert told is not None
    assert str(told) == (
        "the lake s3://b/ does not answer as it should: Generic S3 error: Error performing HEAD http://h/b/x in 1s - "
        "HTTP error: error sending request"
    )
    assert refused("/data/lake/", said) is None
    assert refused("s3://b/", "Parser Error: syntax error") is None


def test_an_address_of_another_kind_is_refused(tmp_path: Path):
    with pytest.raises(StoreError, match="ftp"):
        storage("ftp://host/x/", S3Settings(), tmp_path)
