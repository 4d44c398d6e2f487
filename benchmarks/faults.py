"""Kill, fill, cut and flip: whatever happens to a store, what it acknowledged is there once, and it opens.

Run `python benchmarks/faults.py [KILLS]` (200 by default); it prints a markdown table. A child process appends,
seals, compacts, sweeps, drops, takes snapshots, trims and rolls up, and tells of every acknowledged batch; it is killed
with SIGKILL at a random moment, and the parent checks what is there. Then come damaged files, a full disk, a directory
that cannot be written, and clocks that jump. The time of all rows lies in the past, so that sealing always has work.
"""

import gzip
import logging
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from store.batch import Batch
from store.database import FILE_NAME, Database
from store.errors import InfractlError
from store.settings import StoreSettings
from store.upkeep import TASKS, upkeep
from store.verify import verify

ROOT = Path(__file__).resolve().parents[1]
OLD = ROOT / "tests" / "store" / "old" / "schema_1.duckdb.gz"
START = datetime(2026, 11, 1)  # noqa: DTZ001 - times of the store are naive UTC
HOURS = 6
SETTINGS = StoreSettings(hot=timedelta(0), min_free_bytes=1)
SERIES = {"series_id": pl.UInt64}


def batch(number: int) -> Batch:
    """Return batch `number`: 40 spans, samples, arrivals and a cost line; equal numbers give equal rows."""
    chance = random.Random(number)
    ids = [number * 40 + i for i in range(40)]
    times = [START + timedelta(seconds=chance.randrange(HOURS * 3600), microseconds=i) for i in ids]
    keys = {"trace_id": [f"{i:032x}" for i in ids], "span_id": [f"{i:016x}" for i in ids], "ts": times}
    spans = pl.DataFrame(keys | {"service": ["chat"] * 40, "operation": ["chat"] * 40, "e2e_s": [0.5] * 40})
    arrivals = pl.DataFrame(keys | {"offsets_us": [[1000, 2000, 4000]] * 40})
    samples = pl.DataFrame(
        {"series_id": [i % 7 for i in ids], "ts": times, "value": [1.0] * 40}, schema_overrides=SERIES
    )
    costs = pl.DataFrame({"line_id": [str(number)], "ts": [times[0]], "billed_cost": ["0.10"], "currency": ["USD"]})
    return Batch("faults", {"spans": spans, "token_arrivals": arrivals, "metric_samples": samples, "costs": costs})


def _short(notice: str) -> str:
    """Return what a notice is about, without its numbers."""
    what = notice.split(":", maxsplit=1)[0].rsplit("/", maxsplit=1)[-1].partition(", rows of")[0]
    return re.sub(r"\d+", "N", what.partition(" (")[0] if "batches" in what else what)


def child(folder: str, seed: str) -> None:
    """Work until killed; print the number of every acknowledged batch."""
    chance, number = random.Random(int(seed)), int(seed) * 100_000
    with Database(Path(folder), SETTINGS) as database:
        print("open", flush=True)
        while True:
            if chance.random() < 0.7:
                sent = number if chance.random() < 0.9 or number % 100_000 == 0 else number - 1  # one in ten again
                database.append([batch(sent)])
                print(sent, flush=True)
                number = max(number, sent + 1)
            else:
                jump = timedelta(days=chance.choice((0, 0, 0, 1, -365, 365)))
                name = chance.choice([task for task in TASKS if task != "retention"])
                upkeep(database, datetime.now(UTC) + jump, [name])


@dataclass
class Tally:
    """What one kind of fault did."""

    times: int = 0
    acknowledged: int = 0
    lost: int = 0
    twice: int = 0
    unreadable: int = 0
    said: Counter[str] = field(default_factory=Counter)


def check(folder: Path, numbers: set[int], tally: Tally, settings: StoreSettings = SETTINGS) -> None:
    """Open the store and count what is not there, or there twice."""
    wanted = {i for number in numbers for i in range(number * 40, number * 40 + 40)}
    tally.times += 1
    tally.acknowledged += len(wanted)
    try:
        with Database(folder, settings) as database:
            for table in ("spans", "token_arrivals"):
                found = database.table(table)["span_id"].to_list()
                ids = Counter(int(i, 16) for i in found)
                tally.lost += len(wanted - ids.keys())
                tally.twice += sum(n - 1 for n in ids.values())
            samples = database.table("metric_samples")
            tally.twice += samples.height - samples.unique(["series_id", "ts"]).height
            tally.lost += len(numbers - {int(i) for i in database.table("costs")["line_id"] if i.isdigit()})
            tally.unreadable += len(verify(database))
            upkeep(database, datetime.now(UTC), ["rollups"])
            rolled = database.sql(
                "SELECT coalesce(sum(requests), 0)::BIGINT AS n FROM rollup_requests WHERE step_s = 300"
            )
            raw = database.sql("SELECT count(*) AS n FROM spans WHERE operation = 'chat'")
            tally.said["rollups differ from rows"] += rolled.column(0)[0].as_py() != raw.column(0)[0].as_py()
            for notice in database.notices[-1:]:
                tally.said[_short(notice.what)] += 1
    except InfractlError as error:
        tally.unreadable += 1
        tally.said[str(error)[:120]] += 1


def killed(folder: Path, seed: int, numbers: set[int], chance: random.Random) -> None:
    """Let a child work for a random time, kill it, and add what it said it stored."""
    command = [sys.executable, str(Path(__file__).resolve()), "--child", str(folder), str(seed)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
    assert process.stdout is not None
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()))
    reader.start()
    limit = time.monotonic() + 20
    opening = chance.random() < 0.15  # killed while it opens, migrates or replays
    while not opening and not lines and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    time.sleep(chance.uniform(0.0, 0.9) + (0.3 if opening else 0.0))
    process.send_signal(signal.SIGKILL)
    process.wait()
    reader.join()
    numbers.update(int(line) for line in lines if line.strip().isdigit() and line.endswith("\n"))


def kills(count: int, table: dict[str, Tally]) -> None:
    """Kill again and again; a new store now and then, every fifth of them from an earlier schema."""
    chance = random.Random(7)
    seed = 1
    while table["kill −9"].times < count:
        with tempfile.TemporaryDirectory() as made:
            folder, numbers = Path(made), set[int]()
            if seed % 5 == 0:
                (folder / FILE_NAME).write_bytes(gzip.decompress(OLD.read_bytes()))
            for _ in range(10):
                killed(folder, seed, numbers, chance)
                check(folder, numbers, table["kill −9"])
                seed += 1


@contextmanager
def filled(settings: StoreSettings = SETTINGS) -> Iterator[tuple[Path, set[int]]]:
    """Give a store that was killed in the middle of work: hot rows, sealed hours, a snapshot, a log of DuckDB's."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "data"
        with Database(folder, settings) as database:
            for number in range(20):
                database.append([batch(number)])
            upkeep(database, datetime.now(UTC), ["seal", "rollups", "snapshot"])
        code = (
            "import os, sys; from pathlib import Path; from benchmarks.faults import *\n"
            f"database = Database(Path({str(folder)!r}), SETTINGS)\n"
            "for number in range(20, 40): database.append([batch(number)])\n"
            "os._exit(9)"
        )
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
        yield folder, set(range(40))


def flip(path: Path, share: float) -> None:
    """Change 16 bytes of a file."""
    content = bytearray(path.read_bytes())
    at = min(int(len(content) * share), max(len(content) - 16, 0))
    content[at : at + 16] = bytes(b ^ 0xFF for b in content[at : at + 16])
    path.write_bytes(content)


def cut(path: Path, share: float) -> None:
    """Cut the end off a file."""
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def damages(table: dict[str, Tally], shares: tuple[float, ...] = (0.0, 0.3, 0.6, 0.95)) -> None:
    """Damage the log and the database in every way that leaves the journal whole."""
    ways: dict[str, Callable[[Path, float], None]] = {
        "flipped": flip,
        "cut": cut,
        "garbage": lambda path, share: path.write_bytes(os.urandom(int(path.stat().st_size * share) + 1)),
        "deleted": lambda path, _: path.unlink(),
    }
    for what, name in (("log of the database", FILE_NAME + ".wal"), ("database file", FILE_NAME)):
        for way, change in ways.items():
            for share in shares:
                with filled() as (folder, numbers):
                    if (folder / name).exists():
                        change(folder / name, share)
                    check_repaired(folder, numbers, table[f"{what} {way}"])
    for what, change in ways.items():
        with filled() as (folder, numbers):
            for path in (folder / "lake").glob("manifest*"):
                change(path, 0.5)
            check(folder, numbers, table[f"manifest mirror {what}"])


def check_repaired(folder: Path, numbers: set[int], tally: Tally) -> None:
    """Open it; where something in the file is damaged still, do what `verify` says: make it anew."""
    with suppress(InfractlError), Database(folder, SETTINGS) as database:
        if not verify(database):
            database.close()
            check(folder, numbers, tally)
            return
    with suppress(InfractlError):
        Database(folder, SETTINGS, rebuild=True).close()
        tally.said["damage found by verify, made anew"] += 1
    check(folder, numbers, tally)


def lost_files(table: dict[str, Tally]) -> None:
    """Damage a sealed file, of which there is no copy: its rows are lost, by name; all others are there."""
    for share in (0.1, 0.5, 0.99):
        with filled() as (folder, numbers):
            path = next((folder / "lake" / "spans").rglob("*.parquet"))
            rows = pl.read_parquet(path).height
            flip(path, share) if share < 0.99 else path.unlink()
            tally = table["sealed file damaged or deleted (no copy exists)"]
            tally.times += 1
            tally.acknowledged += len(numbers) * 40
            with Database(folder, SETTINGS) as database:
                told = [flaw.what for flaw in verify(database)] + [notice.what for notice in database.notices]
                tally.said["named, with file and rows"] += any("rows of spans" in text for text in told)
                try:
                    tally.lost += len(numbers) * 40 - database.table("spans").height
                except InfractlError:
                    tally.lost += rows
                tally.unreadable += database.table("costs").height != len(numbers)


def journal(table: dict[str, Tally]) -> None:
    """Damage the journal while the database is well: nothing is lost, and it is said."""
    for change in (flip, cut):
        for share in (0.1, 0.5, 0.9):
            with filled() as (folder, numbers):
                Database(folder, SETTINGS).close()
                for path in (folder / "journal").glob("*.journal"):
                    change(path, share)
                tally = table["journal damaged, database well"]
                before = tally.unreadable
                check(folder, numbers, tally)
                tally.said["named by verify"] += tally.unreadable > before
                tally.unreadable = before


def full_disk(table: dict[str, Tally]) -> None:
    """Fill a small disk while batches come in, then make room."""
    with tempfile.TemporaryDirectory() as made:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", made], check=False, capture_output=True
        )
        if mounted.returncode:
            table["disk full"].said["not tried: no permission to mount"] += 1
            return
        try:
            for attempt in range(5):
                folder, numbers = Path(made) / f"data{attempt}", set[int]()
                ballast, refused = Path(made) / "ballast", 0
                with Database(folder, SETTINGS) as database:
                    for number in range(400):
                        if number == 60:
                            with suppress(OSError):
                                ballast.write_bytes(b"x" * (48 << 20))
                        if number == 200:
                            ballast.unlink(missing_ok=True)
                            time.sleep(12)  # longer than senders are told to wait
                        try:
                            database.append([batch(number)])
                            numbers.add(number)
                        except InfractlError:
                            refused += 1
                table["disk full"].said["refused, then stored again"] += refused > 0 and max(numbers) > 200
                check(folder, numbers, table["disk full"])
                shutil.rmtree(folder)
        finally:
            subprocess.run(["umount", "-l", made], check=False)


def read_only(table: dict[str, Tally]) -> None:
    """Make the disk read-only: one sentence, and all rows when it can be written again."""
    tally = table["disk is read-only"]
    with filled() as (folder, numbers), tempfile.TemporaryDirectory() as made:
        mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", made]
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            tally.said["not tried: no permission to mount"] += 1
            return
        try:
            copy = Path(shutil.copytree(folder, Path(made) / "data"))
            subprocess.run(["mount", "-o", "remount,ro", made], check=True)
            try:
                Database(copy, SETTINGS).close()
            except InfractlError as error:
                tally.said[str(error).rpartition(": ")[2]] += 1
            subprocess.run(["mount", "-o", "remount,rw", made], check=True)
            check(copy, numbers, tally)
        finally:
            subprocess.run(["umount", "-l", made], check=False)


def clock_jumps(table: dict[str, Tally]) -> None:
    """Do the store's own work at times a year off."""
    for days in (-365, 365, -1, 1):
        with filled() as (folder, numbers):
            with Database(folder, SETTINGS) as database:
                for task in TASKS:
                    if task != "retention":  # a year ahead it rightly drops rows
                        upkeep(database, datetime.now(UTC) + timedelta(days=days), [task])
            check(folder, numbers, table["clock jumps"])


def campaign(count: int) -> dict[str, Tally]:
    """Do everything and return the tallies."""
    table: dict[str, Tally] = {}

    class Rows(dict[str, Tally]):
        def __missing__(self, key: str) -> Tally:
            return self.setdefault(key, Tally())

    table = Rows()
    kills(count, table)
    damages(table)
    lost_files(table)
    journal(table)
    full_disk(table)
    read_only(table)
    clock_jumps(table)
    return table


def main() -> None:
    """Print the table."""
    logging.disable(logging.CRITICAL)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    started = time.monotonic()
    print("| fault | times | spans acknowledged | lost | twice | unreadable | said |\n|---|---|---|---|---|---|---|")
    for fault, tally in campaign(count).items():
        said = "; ".join(f"{what} ({n})" for what, n in tally.said.most_common(3) if n)
        print(
            f"| {fault} | {tally.times} | {tally.acknowledged:,} | {tally.lost} | {tally.twice} "
            f"| {tally.unreadable} | {said} |"
        )
    print(f"\n{time.monotonic() - started:.0f} s in all.")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    main()
