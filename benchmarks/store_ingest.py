"""How fast the store takes rows, by size of batch, against DuckDB alone.

Run `python benchmarks/store_ingest.py`; it prints a markdown table. `store` is `Database.append` (journal with fsync,
anti-join, ledger, COMMIT); the peers put the same Arrow table into a table of the same columns in DuckDB 2.0 with
`INSERT … SELECT` or `executemany`, a transaction each, without looking for duplicates. Rounds alternate in one process.
"""

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl

from store.batch import Batch
from store.database import Database
from store.tables import METRIC_SAMPLES, SPANS

START = datetime(2026, 11, 30)  # noqa: DTZ001 - times of the store are naive UTC
SIZES = {"spans": (1, 100, 1_000, 10_000), "metric_samples": (1_000, 10_000, 100_000)}
SECONDS = 4.0
MOST = 200


def spans(first: int, count: int) -> pl.DataFrame:
    """Return model requests as an engine and its client tell them."""
    chance = random.Random(first)
    ids = range(first, first + count)
    return pl.DataFrame(
        {
            "trace_id": [f"{chance.getrandbits(128):032x}" for _ in ids],
            "span_id": [f"{chance.getrandbits(64):016x}" for _ in ids],
            "ts": [START + timedelta(milliseconds=i) for i in ids],
            "duration_s": [chance.gammavariate(2, 0.4) for _ in ids],
            "name": ["chat"] * count,
            "service": ["chat-api"] * count,
            "operation": ["chat"] * count,
            "model": [f"model-{i % 5}" for i in ids],
            "input_tokens": [chance.randrange(4000) for _ in ids],
            "output_tokens": [chance.randrange(600) for _ in ids],
            "ttft_s": [chance.gammavariate(2, 0.1) for _ in ids],
            "e2e_s": [chance.gammavariate(2, 0.4) for _ in ids],
            "server_address": ["10.0.0.7:8000"] * count,
            "request_id": [f"chatcmpl-{chance.getrandbits(96):024x}" for _ in ids],
            "attributes": [f'{{"user.id":"u{i % 997}","gen_ai.request.top_k":40}}' for i in ids],
        }
    )


def samples(first: int, count: int) -> pl.DataFrame:
    """Return one scrape of `count` series."""
    chance = random.Random(first)
    return pl.DataFrame(
        {
            "series_id": [i * 2_654_435_761 % 2**64 for i in range(count)],
            "ts": [START + timedelta(milliseconds=first)] * count,
            "value": [float(chance.randrange(10**6)) for _ in range(count)],
        },
        schema_overrides={"series_id": pl.UInt64},
    )


def peer(con: duckdb.DuckDBPyConnection, name: str, frame: pl.DataFrame) -> None:
    """INSERT … SELECT of an Arrow table."""
    con.register("incoming", frame.to_arrow())
    con.execute(f'INSERT INTO "{name}" SELECT * FROM incoming')
    con.unregister("incoming")


def many(con: duckdb.DuckDBPyConnection, name: str, frame: pl.DataFrame) -> None:
    """Put rows in one by one."""
    con.execute("BEGIN")
    con.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * frame.width)})', frame.rows())
    con.execute("COMMIT")


def measured(
    work: dict[str, Callable[[pl.DataFrame], object]], make: Callable[[int], pl.DataFrame]
) -> dict[str, list[float]]:
    """Seconds of each way, in turns, over SECONDS or MOST rounds."""
    took: dict[str, list[float]] = {name: [] for name in work}
    number, until = 0, time.monotonic() + SECONDS * len(work)
    while number < MOST and (time.monotonic() < until or number < 3):
        frame = make(number)
        for name, way in work.items():
            started = time.perf_counter()
            way(frame)
            took[name].append(time.perf_counter() - started)
        number += 1
    return took


def main() -> None:
    """Print the table."""
    print("| rows in a batch | way | rows/s | p50 ms | p99 ms | against INSERT … SELECT |\n|---|---|---|---|---|---|")
    for table, make in ((SPANS, spans), (METRIC_SAMPLES, samples)):
        for size in SIZES[table.name]:
            with tempfile.TemporaryDirectory() as made, Database(Path(made) / "a") as database:
                con = duckdb.connect(str(Path(made) / "peer.duckdb"))
                con.execute(table.ddl.replace(table.stored, table.name))
                work: dict[str, Callable[[pl.DataFrame], object]] = {
                    "store": lambda frame, d=database, n=table.name: d.append([Batch("bench", {n: frame})]),  # type: ignore[misc]
                    "INSERT … SELECT": lambda frame, c=con, t=table: peer(c, t.name, t.conform(frame)),  # type: ignore[misc]
                }
                if size <= 1_000:
                    work["executemany"] = lambda frame, c=con, t=table: many(c, t.name, t.conform(frame))  # type: ignore[misc]
                found = measured(work, lambda number, m=make, s=size: m(number * s, s))  # type: ignore[misc]
                base = statistics.median(found["INSERT … SELECT"])
                for way, seconds in found.items():
                    middle, ordered = statistics.median(seconds), sorted(seconds)
                    late = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
                    print(
                        f"| {size:,} {table.name} | {way} | {size / middle:,.0f} | {middle * 1e3:.1f} "
                        f"| {late * 1e3:.1f} "
                        f"| {base / middle:.2f}x |",
                        flush=True,
                    )
                con.close()


if __name__ == "__main__":
    sys.exit(main())
