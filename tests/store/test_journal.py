"""The journal gives back what it acknowledged, whatever happens to its files, and nothing else."""

import contextlib
import errno
import os
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store import packing
from store.batch import Batch
from store.errors import BusyError, JournalFullError, StoreError, StoreLockedError
from store.journal import Journal
from store.journal_entry import HEADER_BYTES

ROOT = Path(__file__).parents[2]
IN_PLACE = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.none() | st.integers(0, 2**64 - 1),
            "ids": st.none() | st.lists(st.none() | st.integers(0, 2**64 - 1), max_size=3),
            "cost": st.none() | st.decimals(-(10**9), 10**9, places=18),
            "ts": st.none() | st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)),
            "text": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
            "value": st.none() | st.floats(allow_nan=False),
        }
    ),
    max_size=5,
)
SCHEMA = {
    "id": pl.UInt64(),
    "ids": pl.List(pl.UInt64),
    "cost": pl.Decimal(38, 18),
    "ts": pl.Datetime("us"),
    "text": pl.String(),
    "value": pl.Float64(),
}
BATCHES = st.lists(
    st.builds(
        Batch,
        st.text(max_size=5),
        st.dictionaries(
            st.sampled_from(["spans", "events"]), ROWS.map(lambda rows: pl.DataFrame(rows, SCHEMA)), max_size=2
        ),
        st.dictionaries(st.text(max_size=3), st.integers(0, 2**40), max_size=2),
    ),
    max_size=4,
)


def batch(number: int) -> Batch:
    frame = pl.DataFrame(
        {"trace_id": [f"trace-{number}"] * 3, "n": [number, None, 7]}, {"trace_id": pl.String, "n": pl.UInt64}
    )
    return Batch(f"source-{number}", {"spans": frame}, {"no_time": number}, f"batch-{number}")


def same(left: Batch, right: Batch) -> bool:
    return (
        (left.batch_id, left.source, left.drops) == (right.batch_id, right.source, right.drops)
        and list(left.frames) == list(right.frames)
        and all(
            a.schema == b.schema and a.equals(b)
            for a, b in zip(left.frames.values(), right.frames.values(), strict=True)
        )
    )


def write(directory: Path, count: int, **options: int) -> None:
    journal = Journal(directory, **options)
    for number in range(journal.last_sequence + 1, journal.last_sequence + 1 + count):
        journal.append([batch(number)])
    journal.close()


def read(directory: Path, after: int = 0) -> tuple[list[int], Journal]:
    """Numbers of the entries, each held against what was written under it."""
    journal = Journal(directory)
    numbers = []
    for sequence, found in journal.entries(after):
        assert same(found, batch(sequence))
        numbers.append(sequence)
    journal.close()
    return numbers, journal


def newest(directory: Path) -> Path:
    return max(path for path in directory.glob("*.journal") if path.stat().st_size)


@given(first=BATCHES, second=BATCHES)
@IN_PLACE
def test_batches_come_back_equal_and_numbered(
    tmp_path_factory: pytest.TempPathFactory, first: list[Batch], second: list[Batch]
):
    directory = tmp_path_factory.mktemp("journal")
    journal = Journal(directory)
    assert journal.append(first) == len(first)
    assert journal.append(second) == len(first) + len(second)
    journal.close()
    again = Journal(directory)
    for opened in (journal, again):
        found = list(opened.entries(0))
        assert [sequence for sequence, _ in found] == list(range(1, len(first) + len(second) + 1))
        assert all(same(got, made) for (_, got), made in zip(found, [*first, *second], strict=True))
        assert opened.damage == opened.verify() == ()
    again.close()


@given(
    noise=st.binary(max_size=60), flips=st.lists(st.tuples(st.integers(0), st.integers(0, 7)), min_size=1, max_size=4)
)
@IN_PLACE
def test_a_damaged_packed_batch_is_an_error_and_never_the_end_of_the_process(
    noise: bytes, flips: list[tuple[int, int]]
):
    data = bytearray(packing.pack(batch(1)))
    for place, bit in flips:
        data[place % len(data)] ^= 1 << bit
    for bad in (noise, bytes(data)):
        with contextlib.suppress(ValueError):
            packing.unpack(bad)


def test_reading_starts_after_a_number(tmp_path: Path):
    write(tmp_path, 5, segment_bytes=1)
    assert read(tmp_path, after=3)[0] == [4, 5]
    assert read(tmp_path, after=5)[0] == []


def test_a_torn_last_entry_costs_only_itself_at_every_offset(tmp_path: Path):
    write(tmp_path / "whole", 2)
    whole = newest(tmp_path / "whole").read_bytes()
    write(tmp_path / "one", 1)
    start = newest(tmp_path / "one").stat().st_size
    for length in range(start, len(whole)):
        directory = tmp_path / str(length)
        directory.mkdir()
        (directory / f"{1:020d}.journal").write_bytes(whole[:length])
        numbers, journal = read(directory)
        assert numbers == [1]
        assert [item.bytes for item in journal.damage] == ([length - start] if length > start else [])
        assert journal.last_sequence == (2 if length > start else 1)
        assert read(directory)[1].damage == ()


@given(place=st.integers(0), bit=st.integers(0, 7))
@settings(IN_PLACE, max_examples=150)
def test_a_flipped_bit_costs_one_entry_and_is_named(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int):
    directory = tmp_path_factory.mktemp("journal")
    write(directory, 4)
    path = newest(directory)
    data = bytearray(path.read_bytes())
    place %= len(data)
    data[place] ^= 1 << bit
    path.write_bytes(data)
    numbers, journal = read(directory)
    assert len(numbers) == 3
    assert len(journal.damage) == 1
    assert journal.damage[0].path == path
    assert journal.damage[0].entries_lost in ((1,) if 4 in numbers else (1, None))
    assert journal.last_sequence == 4


def test_damage_in_an_old_segment_is_found_when_it_is_read(tmp_path: Path):
    write(tmp_path, 3, segment_bytes=1)
    oldest = min(tmp_path.glob("*.journal"))
    data = bytearray(oldest.read_bytes())
    data[HEADER_BYTES + 20] ^= 1
    oldest.write_bytes(data)
    journal = Journal(tmp_path)
    assert journal.damage == ()
    assert [item.what for item in journal.verify()] == ["entry 1 is damaged"]
    assert [sequence for sequence, _ in journal.entries(0)] == [2, 3]
    assert len(journal.damage) == 1
    journal.close()


def test_a_segment_without_one_readable_entry_is_set_aside(tmp_path: Path):
    write(tmp_path, 1)
    path = newest(tmp_path)
    path.write_bytes(b"\0" * 500)
    numbers, journal = read(tmp_path)
    assert numbers == []
    assert [(item.path.suffix, item.bytes, item.entries_lost) for item in journal.damage] == [(".damaged", 500, None)]
    assert journal.damage[0].path.read_bytes() == b"\0" * 500
    assert read(tmp_path)[1].damage == ()


def test_a_segment_that_vanished_is_named(tmp_path: Path):
    write(tmp_path, 3, segment_bytes=1)
    journal = Journal(tmp_path)
    journal.segments()[1].path.unlink()
    assert [sequence for sequence, _ in journal.entries(0)] == [1, 3]
    assert [item.entries_lost for item in journal.damage] == [1]
    journal.close()


def test_an_entry_of_a_newer_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr("store.journal_entry.VERSION", 2)
        write(tmp_path, 1)
    with pytest.raises(StoreError, match="newer infractl"):
        Journal(tmp_path)


KILLED = """
import sys
from pathlib import Path
from store.journal import Journal
from tests.store.test_journal import batch
journal = Journal(Path(sys.argv[1]), segment_bytes=20_000)
while True:
    first = journal.last_sequence + 1
    print(journal.append([batch(first), batch(first + 1)]), flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path):
    acknowledged: set[int] = set()
    for lines in (1, 17, 40):
        with subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], stdout=subprocess.PIPE, cwd=ROOT) as child:
            assert child.stdout is not None
            said = [child.stdout.readline() for _ in range(lines)]
            child.kill()
            said += child.stdout.readlines()
        last = [int(line) for line in said if line.endswith(b"\n")]
        assert len(last) >= lines
        acknowledged |= {number - back for number in last for back in (0, 1)}
        assert acknowledged <= set(read(tmp_path)[0])


@pytest.mark.parametrize("failing", ["write", "short write", "fsync"])
def test_of_an_append_that_the_disk_refused_nothing_is_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
):
    journal = Journal(tmp_path)
    journal.append([batch(1)])
    size = journal.size_bytes
    write_really = os.write

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def short(handle: int, data: memoryview) -> int:
        return write_really(handle, data[:100]) if len(data) > 5000 else full()

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync" if failing == "fsync" else "write", short if failing == "short write" else full)
        with pytest.raises(StoreError, match="No space left"):
            journal.append([batch(n) for n in range(2, 14)])
    assert (journal.size_bytes, newest(tmp_path).stat().st_size) == (size, size)
    assert journal.append([batch(2)]) == 2
    journal.close()
    assert read(tmp_path)[0] == [1, 2]


def test_where_taking_back_fails_too_no_number_is_given_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    journal = Journal(tmp_path)
    journal.append([batch(1)])

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        patch.setattr(os, "ftruncate", broken)
        with pytest.raises(StoreError, match="Input/output"):
            journal.append([batch(2)])
    assert journal.append([batch(3)]) == 3
    assert [sequence for sequence, _ in journal.entries(0)] == [1, 3]
    journal.close()
    assert read(tmp_path)[0] == [1, 2, 3]


FILE_LIMIT = """
import resource, signal, sys
from pathlib import Path
from store.errors import StoreError
from store.journal import Journal
from tests.store.test_journal import batch
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
journal = Journal(Path(sys.argv[1]))
try:
    while True:
        print(journal.append([batch(journal.last_sequence + 1)]))
except StoreError as error:
    print(error.hint)
"""


def test_a_real_refusal_of_the_system_leaves_what_was_there(tmp_path: Path):
    done = subprocess.run([sys.executable, "-c", FILE_LIMIT, tmp_path], capture_output=True, text=True, cwd=ROOT)
    *numbers, hint = done.stdout.splitlines()
    assert "free space" in hint, done.stderr
    found, journal = read(tmp_path)
    assert found == [int(n) for n in numbers]
    assert journal.damage == ()


def test_beyond_its_limit_it_refuses_until_it_is_trimmed(tmp_path: Path):
    journal = Journal(tmp_path, limit_bytes=4000)
    journal.append([batch(1)])
    journal.append([batch(2)])
    with pytest.raises(JournalFullError, match="is full"):
        journal.append([batch(n) for n in range(3, 9)])
    assert newest(tmp_path).stat().st_size == journal.size_bytes <= 4000
    last = journal.last_sequence
    with pytest.raises(BusyError):
        journal.append([batch(n) for n in range(20)])
    assert journal.trim(last) > 0
    assert journal.append([batch(last + 1)]) == last + 1
    journal.close()
    assert read(tmp_path)[0] == [last + 1]


@given(through=st.integers(0, 12), segment_bytes=st.sampled_from([1, 2500, 10**6]))
@IN_PLACE
def test_a_trim_keeps_what_came_after(tmp_path_factory: pytest.TempPathFactory, through: int, segment_bytes: int):
    directory = tmp_path_factory.mktemp("journal")
    journal = Journal(directory, segment_bytes=segment_bytes)
    for number in range(1, 11):
        journal.append([batch(number)])
    before = journal.size_bytes
    freed = journal.trim(through)
    assert journal.size_bytes == before - freed == sum(p.stat().st_size for p in directory.glob("*.journal"))
    kept = [sequence for sequence, _ in journal.entries(0)]
    assert kept == list(range(journal.oldest_sequence or 11, 11))
    assert set(range(through + 1, 11)) <= set(kept)
    assert segment_bytes > 1 or len(kept) == max(10 - through, 0)
    assert all(segment.last_sequence > through for segment in journal.segments())
    assert journal.damage == ()
    journal.close()


def test_a_restart_knows_the_last_number_though_everything_was_trimmed(tmp_path: Path):
    write(tmp_path, 7)
    for _ in range(3):
        journal = Journal(tmp_path)
        journal.trim(7)
        assert (journal.last_sequence, journal.oldest_sequence, journal.segments()) == (7, None, ())
        journal.close()
        assert len(list(tmp_path.glob("*.journal"))) == 1
    write(tmp_path, 1)
    assert read(tmp_path)[0] == [8]


def test_numbers_up_to_a_known_one_are_not_given_out(tmp_path: Path):
    journal = Journal(tmp_path, next_sequence=5)
    assert journal.append([batch(5)]) == 5
    journal.advance(3)
    journal.advance(10)
    journal.advance(20)
    assert journal.last_sequence == 20
    journal.close()
    journal = Journal(tmp_path)
    assert journal.append([batch(21)]) == 21
    assert journal.append([]) == 21
    journal.close()
    numbers, journal = read(tmp_path)
    assert numbers == [5, 21]
    assert journal.damage == ()


def test_a_new_process_never_writes_to_an_old_segment(tmp_path: Path):
    write(tmp_path, 2)
    old = newest(tmp_path)
    content = old.read_bytes()
    write(tmp_path, 1)
    assert old.read_bytes() == content
    assert newest(tmp_path).name == f"{3:020d}.journal"


def test_segments_tell_numbers_sizes_and_times(tmp_path: Path):
    journal = Journal(tmp_path, segment_bytes=1)
    journal.append([batch(1), batch(2)])
    journal.append([batch(3)])
    first, second = journal.segments()
    assert (first.first_sequence, first.last_sequence, second.first_sequence) == (1, 2, 3)
    assert first.size_bytes == first.path.stat().st_size
    assert first.first_time is not None
    assert first.first_time == first.last_time <= second.first_time
    journal.close()
    assert read(tmp_path)[1].segments()[:2] == (first, second)


def test_a_journal_has_one_owner(tmp_path: Path):
    journal = Journal(tmp_path)
    with pytest.raises(StoreLockedError) as caught:
        Journal(tmp_path)
    assert caught.value.pid == os.getpid()
    code = "import sys; from pathlib import Path; from store.journal import Journal; Journal(Path(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, cwd=ROOT)
    assert "StoreLockedError" in done.stderr
    journal.close()
    Journal(tmp_path).close()
    with pytest.raises(StoreError, match="closed"):
        journal.append([batch(1)])


def test_trims_and_reads_beside_appends_see_whole_entries_in_order(tmp_path: Path):
    journal = Journal(tmp_path, segment_bytes=3000)
    done = threading.Event()

    def append() -> None:
        for number in range(1, 201):
            journal.append([batch(number)])
        done.set()

    thread = threading.Thread(target=append)
    thread.start()
    sent = 0
    while not (done.is_set() and sent == 200):
        for sequence, found in journal.entries(sent):
            assert sequence == sent + 1
            assert same(found, batch(sequence))
            sent = sequence
        journal.trim(sent)
    thread.join()
    assert journal.damage == ()
    assert journal.size_bytes == 0
    journal.close()
