"""Questions of a dashboard over 10 and 50 million spans: hot rows, sealed rows, rollups.

Run `python benchmarks/store_queries.py [MILLIONS …]` (10 and 50 by default); it prints a markdown table of medians
of five. The spans are made in DuckDB: five days at an even rate, 20 models, 5 clouds, 1 % errors, the columns that the
questions read, random ids.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from store.database import Database
from store.query import RollupQuery
from store.settings import StoreSettings
from store.upkeep import upkeep
from store.window import Window

START = datetime(2026, 11, 20, tzinfo=UTC)
HOURS = 120
DAY = Window(START + timedelta(days=3), START + timedelta(days=4))
HOUR = Window(START + timedelta(days=3), START + timedelta(days=3, hours=1))
BOUNDS = "ts >= TIMESTAMP '{0:%Y-%m-%d %H:%M}' AND ts < TIMESTAMP '{1:%Y-%m-%d %H:%M}'"
MAKE = """
INSERT INTO hot_spans (trace_id, span_id, ts, service, operation, model, cloud_provider, cloud_region, status,
  error_code, e2e_s, ttft_s, input_tokens, output_tokens, cost_usd)
SELECT md5(i::VARCHAR), left(md5((i + 7)::VARCHAR), 16), TIMESTAMP '2026-11-20' + INTERVAL ({hour}) HOUR
  + to_microseconds((i * 3600000000 // {rows})::BIGINT), 'service-' || i % 4, 'chat', 'model-' || i % 20,
  'cloud-' || i % 5, 'region-' || i % 3, CASE WHEN i % 100 = 0 THEN 'error' ELSE 'ok' END,
  CASE WHEN i % 100 = 0 THEN 'HTTP_429' END, 0.2 - 0.5 * ln(random()), 0.05 - 0.1 * ln(random()),
  (random() * 4000)::BIGINT, (random() * 600)::BIGINT, random() / 100 FROM range({rows}) t(i)
"""
ROWS = " FROM spans WHERE {b}"
RAW = {
    "requests, errors, P50 and P99 by service, 24 h": (
        DAY,
        "SELECT service, count(*), count(error_code), quantile_cont(e2e_s, [0.5, 0.99])" + ROWS + " GROUP BY 1",
        RollupQuery("latency", ("service",), measures=("e2e_s",), quantiles=(0.5, 0.99)),
    ),
    "P99 by model and 5 minutes, 24 h": (
        DAY,
        "SELECT model, time_bucket(INTERVAL 5 MINUTE, ts), quantile_cont(e2e_s, 0.99)" + ROWS + " GROUP BY 1, 2",
        RollupQuery("latency", ("model",), step_s=300, measures=("e2e_s",), quantiles=(0.99,)),
    ),
    "errors by cloud, code and 5 minutes, 24 h": (
        DAY,
        "SELECT cloud_provider, error_code, time_bucket(INTERVAL 5 MINUTE, ts) AS bucket, count(*)"
        + ROWS
        + " AND error_code IS NOT NULL GROUP BY 1, 2, 3",
        RollupQuery("errors", ("cloud_provider", "error_code"), step_s=300),
    ),
    "cost and tokens by hour and model, 5 days": (
        Window(START, START + timedelta(hours=HOURS)),
        "SELECT model, time_bucket(INTERVAL 1 HOUR, ts), sum(cost_usd), sum(output_tokens)" + ROWS + " GROUP BY 1, 2",
        RollupQuery("requests", ("model",), step_s=3600),
    ),
    "requests by service, 1 h": (
        HOUR,
        "SELECT service, count(*)" + ROWS + " GROUP BY 1",
        RollupQuery("requests", ("service",)),
    ),
}


def median_ms(work: Callable[[], object]) -> float:
    """Median of five, after one that warms up."""
    work()
    took = []
    for _ in range(5):
        started = time.perf_counter()
        work()
        took.append((time.perf_counter() - started) * 1e3)
    return statistics.median(took)


def raw_ms(database: Database) -> dict[str, float]:
    """Milliseconds of each question from rows; one trace by its id within an hour is asked too."""
    found = {}
    for name, (window, text, _) in RAW.items():
        sql = text.format(b=BOUNDS.format(window.start, window.end))
        found[name] = median_ms(lambda sql=sql: database.sql(sql))  # type: ignore[misc]
    bounds = BOUNDS.format(HOUR.start, HOUR.end)
    trace = f"SELECT * FROM spans WHERE {bounds} AND trace_id = md5('77')"
    return found | {"one trace by id within an hour": median_ms(lambda: database.sql(trace))}


def main() -> None:
    """Print the table."""
    print("| spans | question | hot ms | sealed ms | rollup ms | rows / rollup |\n|---|---|---|---|---|---|")
    for millions in [int(text) for text in sys.argv[1:]] or [10, 50]:
        with tempfile.TemporaryDirectory() as made, Database(Path(made), StoreSettings(hot=timedelta(0))) as database:
            for hour in range(HOURS):
                with database.transaction() as cursor:
                    cursor.execute(MAKE.format(hour=hour, rows=millions * 1_000_000 // HOURS))
            hot = raw_ms(database)
            started = time.perf_counter()
            done = upkeep(database, datetime(2026, 12, 1, tzinfo=UTC), ["seal", "rollups"])
            sealed = raw_ms(database)
            for name, ms in sealed.items():
                rolled = None
                if name in RAW:
                    window, _, query = RAW[name]
                    rolled = median_ms(lambda q=query, w=window: database.read(q, w))  # type: ignore[misc]
                told = f"{rolled:.0f} | {ms / rolled:.0f}x" if rolled else "|"
                print(f"| {millions} M | {name} | {hot[name]:.0f} | {ms:.0f} | {told} |", flush=True)
            print(
                f"\n{millions} M: sealed and rolled up in {time.perf_counter() - started:.0f} s with the questions "
                f"({', '.join(f'{item.task} {item.seconds:.0f} s: {item.what}' for item in done)}); "
                f"{database.sealed_bytes() / 1e6:.0f} MB sealed.\n",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
