"""Time of `analyze cost` on a year of hourly cost of 1,000 items: prints a Markdown table.

Every item is a group of its own, with a daily and weekly pattern and noise; ten have a change. With READ the same lines
are stored first and the time to read them is shown too. Usage: python -m benchmarks.cost_year [ITEMS [DAYS [READ]]]
"""

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from analytics.cost import ANALYSIS
from store.batch import Batch
from store.database import Database
from store.query import CostQuery
from store.tables import COSTS
from store.window import Window

START = datetime(2025, 12, 1, tzinfo=UTC).replace(tzinfo=None)
CHUNK_DAYS = 30


def costs(items: int, days: int) -> np.ndarray:
    """Costs (hours, items): 1 to 100 an hour; every hundredth item costs 60 % more from day 300 on."""
    rng = np.random.default_rng(0)
    hour = np.arange(days * 24)[:, None]
    pattern = (1 + 0.4 * np.sin(2 * np.pi * (hour % 24 - 8) / 24)) * np.where(hour // 24 % 7 >= 5, 0.75, 1.0)
    made = 10 ** rng.uniform(0, 2, items) * pattern * np.exp(rng.normal(size=(hour.size, items)) * 0.05)
    changed = (np.arange(items) % 100 == 50) & (hour >= min(300, days - 3) * 24)
    return np.asarray(made * np.where(changed, 1.6, 1.0))


def lines(items: int, days: int) -> pl.DataFrame:
    """Lines as a CostQuery by service and item gives them, ordered by bucket."""
    amounts = costs(items, days)
    hours = pl.datetime_range(START, START + timedelta(hours=days * 24 - 1), "1h", eager=True, time_unit="us")
    names = pl.Series([f"item-{i:04d}" for i in range(items)])
    bucket = hours.gather(np.repeat(np.arange(len(hours)), items))
    name = names.gather(np.tile(np.arange(items), len(hours)))
    amount = pl.Series(amounts.ravel().round(6)).cast(pl.Decimal(38, 18))
    same = {"currency": "USD", "category": "Usage", "grain": "hour", "unit": "Hours"}
    return pl.DataFrame(
        {"bucket": bucket, "service": name, "sku": name, "cost": amount, "effective": amount}
    ).with_columns(
        *(pl.lit(value).alias(key) for key, value in same.items()),
        *(pl.lit(None, pl.String).alias(key) for key in ("model", "tokens_kind")),
        pl.col("cost").cast(pl.Float64).alias("quantity"), pl.lit(None, pl.Int64).alias("requests"),
        pl.lit(1, pl.Int64).alias("lines"), pl.lit(3600.0).alias("span_s"),
    )  # fmt: skip


def read_s(made: pl.DataFrame, window: Window) -> float:
    """Store the lines and return the seconds that reading them takes."""
    with TemporaryDirectory() as folder, Database(Path(folder)) as database:
        for at in pl.datetime_range(window.start, window.end, f"{CHUNK_DAYS}d", eager=True).dt.replace_time_zone(None):
            part = made.filter(pl.col("bucket").is_between(at, at + timedelta(days=CHUNK_DAYS), closed="left"))
            stored = part.select(
                pl.concat_str("sku", pl.col("bucket").cast(pl.String)).alias("line_id"), pl.col("bucket").alias("ts"),
                (pl.col("bucket") + timedelta(hours=1)).alias("end_ts"), "service", "sku", "category", "currency",
                "unit", "quantity", pl.col("cost").alias("billed_cost"), pl.col("effective").alias("effective_cost"),
            )  # fmt: skip
            assert set(stored.columns) <= set(COSTS.names)
            database.append([Batch("benchmark", {"costs": stored})])
        began = time.perf_counter()
        query = ANALYSIS.inputs(ANALYSIS.make_params({"by": "service"}))["lines"]
        assert isinstance(query, CostQuery)
        assert database.read(query, window).height == made.height
        return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    given = [int(text) for text in sys.argv[1:3]]
    items, days = (*given, 1000, 365)[:2] if not given else (given[0], given[1] if len(given) > 1 else 365)
    made = lines(items, days)
    window = Window(START.replace(tzinfo=UTC), START.replace(tzinfo=UTC) + timedelta(days=days))
    print("| items | days | lines | step | seconds | CPU seconds |\n|---|---|---|---|---|---|")
    if len(sys.argv) > 3:
        print(
            f"| {items:,} | {days} | {made.height:,} | read from the store | {read_s(made, window):.1f} | |", flush=True
        )
    for method in ("seasonal", "rolling"):
        params = ANALYSIS.make_params({"by": "service", "method": method})
        began, used = time.perf_counter(), time.process_time()
        result = ANALYSIS.run({"lines": made}, params, window)
        took, used = time.perf_counter() - began, time.process_time() - used
        found = result.frames["drifts"].height
        print(
            f"| {items:,} | {days} | {made.height:,} | {method}, {found} drifts | {took:.1f} | {used:.1f} |", flush=True
        )


if __name__ == "__main__":
    main()
