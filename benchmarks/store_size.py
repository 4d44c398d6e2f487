"""Bytes of a million spans and of a million samples: database, sealed, journal, and what Prometheus needs.

Run `python benchmarks/store_size.py`; it prints a markdown table. The samples are 1,000 series every 15 s over four
hours: counters, gauges and histogram buckets that move as an engine's do. Prometheus gets the same samples as blocks
(`promtool tsdb create-blocks-from openmetrics`), VictoriaMetrics by its import where it is installed.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from benchmarks.store_ingest import spans
from store.batch import Batch
from store.database import FILE_NAME, Database
from store.lake.seal import seal

START = datetime(2026, 11, 30)  # noqa: DTZ001 - times of the store are naive UTC
SERIES, STEPS, EVERY_S = 1_000, 960, 15
LATER = datetime(2026, 12, 2, tzinfo=UTC)


def moved(steps: int, seed: int) -> list[list[float]]:
    """Return values by series: a third counters, a third gauges, a third buckets that often stand still."""
    chance = random.Random(seed)
    made: list[list[float]] = []
    for series in range(SERIES):
        value, row = float(chance.randrange(10**6)), []
        for _ in range(steps):
            if series % 3 == 0:
                value += chance.randrange(50)
            elif series % 3 == 1:
                value = round(max(value + chance.gauss(0, 10), 0.0), 2)
            elif chance.random() < 0.1:
                value += 1
            row.append(value)
        made.append(row)
    return made


def frame(values: list[list[float]], step: int) -> pl.DataFrame:
    """Return one scrape."""
    return pl.DataFrame(
        {
            "series_id": [i * 2_654_435_761 for i in range(SERIES)],
            "ts": [START + timedelta(seconds=EVERY_S * step)] * SERIES,
            "value": [row[step] for row in values],
        },
        schema_overrides={"series_id": pl.UInt64},
    )


def size(path: Path) -> int:
    """Bytes of a file or of everything below a folder."""
    return path.stat().st_size if path.is_file() else sum(p.stat().st_size for p in path.rglob("*") if p.is_file())


def stored(batches: list[Batch], rows: int, scale: float) -> list[tuple[str, float]]:
    """Append, then seal; return bytes per million rows of each form."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with Database(folder) as database:
            for start in range(0, len(batches), 20):
                database.append(batches[start : start + 20])
            found = [("journal", size(folder / "journal") / rows)]
        found.insert(0, ("database, hot", size(folder / FILE_NAME) / rows))
        with Database(folder) as database:
            seal(database, LATER)
            found.insert(1, ("sealed Parquet", size(folder / "lake") / rows))
    return [(name, each * scale) for name, each in found]


def text(values: list[list[float]]) -> str:
    """Return the samples as OpenMetrics with times."""
    base = START.replace(tzinfo=UTC).timestamp()
    lines = []
    for series, row in enumerate(values):
        name = f"bench_series_{series}"
        lines.append(f"# TYPE {name} gauge")
        lines += [f'{name}{{job="vllm",instance="10.0.0.7:8000"}} {v} {base + EVERY_S * i}' for i, v in enumerate(row)]
    return "\n".join([*lines, "# EOF", ""])


def prometheus(values: list[list[float]], rows: int) -> float | None:
    """Bytes per sample in Prometheus' blocks."""
    if not shutil.which("promtool"):
        return None
    with tempfile.TemporaryDirectory() as made:
        source = Path(made) / "samples.om"
        source.write_text(text(values))
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(source), str(Path(made) / "blocks")]
        subprocess.run(command, check=True, capture_output=True)
        return size(Path(made) / "blocks") / rows


def victoria(values: list[list[float]], rows: int) -> float | None:
    """Bytes per sample in VictoriaMetrics after its parts are merged."""
    program = shutil.which("victoria-metrics")
    if not program:
        return None
    with tempfile.TemporaryDirectory() as made:
        options = ["-storageDataPath", made, "-httpListenAddr", "127.0.0.1:18428", "-retentionPeriod=100y"]
        process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        root = "http://127.0.0.1:18428"
        try:
            for _ in range(100):
                try:
                    opener.open(root + "/health")
                    break
                except OSError:
                    time.sleep(0.1)
            base = START.replace(tzinfo=UTC).timestamp() * 1000
            for series, row in enumerate(values):
                name = f'bench_series_{series}{{job="vllm",instance="10.0.0.7:8000"}}'
                body = "\n".join(f"{name} {v} {base + EVERY_S * 1000 * i:.0f}" for i, v in enumerate(row))
                opener.open(urllib.request.Request(root + "/api/v1/import/prometheus", body.encode()))
            opener.open(root + "/internal/force_flush")
            opener.open(root + "/internal/force_merge")
            time.sleep(5)
        finally:
            process.terminate()
            process.wait(20)
        return size(Path(made) / "data") / rows


def main() -> None:
    """Print the table."""
    print("| what | form | MB per million | against Prometheus |\n|---|---|---|---|")
    batches = [Batch("bench", {"spans": spans(1000 * i, 1000)}) for i in range(200)]
    for name, each in stored(batches, 200_000, 1.0):
        print(f"| spans | {name} | {each:.1f} | |", flush=True)
    values = moved(STEPS, 1)
    rows = SERIES * STEPS
    base = prometheus(values, rows)
    found = stored([Batch("bench", {"metric_samples": frame(values, i)}) for i in range(STEPS)], rows, 1.0)
    peers = [("Prometheus, blocks", base), ("VictoriaMetrics, merged", victoria(values, rows))]
    for name, each in [*found, *((name, each) for name, each in peers if each is not None)]:
        print(f"| samples | {name} | {each:.2f} | {f'{each / base:.1f}x' if base else ''} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
