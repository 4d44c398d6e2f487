"""Rows for the tests of rollups, and what a reader would compute from the raw rows."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
from hypothesis import strategies as st

from store.batch import Batch
from store.database import Database
from store.rollups.build import Rolled, roll
from store.window import Window

NOON = datetime(2026, 11, 30, 12)
LATER = datetime(2026, 12, 2, tzinfo=UTC)
DURATION = st.one_of(st.none(), st.just(0.0), st.integers(1, 2**20).map(lambda n: n / 1024))
"""In binary fractions, so that a sum is the same in any order."""
SPAN = st.fixed_dictionaries(
    {
        "at": st.integers(0, 4 * 3600 - 1),
        "operation": st.sampled_from(["chat", "chat", "embeddings", None, "execute_tool"]),
        "service": st.sampled_from(["a", "b", None]),
        "model": st.sampled_from(["m", "n"]),
        "cloud_region": st.sampled_from(["eu", None]),
        "status": st.sampled_from(["ok", "unset", "error"]),
        "error_code": st.sampled_from([None, None, "HTTP_429"]),
        "ttft_s": DURATION,
        "e2e_s": DURATION,
        "cost_usd": DURATION,
        "input_tokens": st.one_of(st.none(), st.integers(0, 1000)),
    }
)
STREAM = st.fixed_dictionaries(
    {"of": st.integers(0, 30), "offsets_us": st.lists(st.integers(1, 64).map(lambda n: n * 15625), max_size=8)}
)
SAMPLE = st.tuples(st.integers(1, 3), st.integers(0, 3 * 3600 - 1), st.one_of(st.none(), st.integers(0, 50)))


def spans(rows: Sequence[dict[str, Any]], first: int = 0) -> pl.DataFrame:
    """Rows of spans; the id is the place in the list, `at` the second after noon."""
    made = [
        {"trace_id": f"{i:032x}", "span_id": f"{i:016x}", "ts": NOON + timedelta(seconds=row["at"])}
        | {name: value for name, value in row.items() if name != "at"}
        for i, row in enumerate(rows, first)
    ]
    return pl.DataFrame(made, infer_schema_length=None)


def arrivals(rows: Sequence[dict[str, Any]], streams: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Rows of token_arrivals of some of the spans, one each."""
    of = {stream["of"]: stream["offsets_us"] for stream in streams if stream["of"] < len(rows)}
    made = [
        {
            "trace_id": f"{i:032x}",
            "span_id": f"{i:016x}",
            "ts": NOON + timedelta(seconds=rows[i]["at"]),
            "service": rows[i]["service"],
            "offsets_us": sorted(offsets),
        }
        for i, offsets in of.items()
    ]
    schema = {"trace_id": pl.String, "span_id": pl.String, "ts": pl.Datetime("us"), "service": pl.String}
    return pl.DataFrame(made, schema=schema | {"offsets_us": pl.List(pl.Int64)})


def samples(rows: Sequence[tuple[int, int, int | None]]) -> pl.DataFrame:
    """Rows of metric_samples: series, second after noon, value."""
    made = [(series, NOON + timedelta(seconds=at), value) for series, at, value in rows]
    schema = {"series_id": pl.UInt64, "ts": pl.Datetime("us"), "value": pl.Float64}
    return pl.DataFrame(made, schema=schema, orient="row")


def store(database: Database, **frames: pl.DataFrame) -> None:
    """Append frames that have rows."""
    database.append([Batch("test", {name: frame for name, frame in frames.items() if frame.height})])


def roll_all(database: Database, now: datetime = LATER, **more: Any) -> list[Rolled]:
    """Roll until nothing is left."""
    done = [roll(database, now, **more)]
    while done[-1].more:
        done.append(roll(database, now, **more))
    return done


def query(database: Database, text: str) -> list[dict[str, Any]]:
    """Rows of an SQL query."""
    return database.sql(text).to_pylist()


def seconds(low: int, high: int) -> Window:
    """Window from one second after noon to another."""
    start = NOON.replace(tzinfo=UTC)
    return Window(start + timedelta(seconds=low), start + timedelta(seconds=high))
