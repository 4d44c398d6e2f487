"""`infractl analyze --all` over a week: a million spans, 1,000 series.

Run `python benchmarks/analyze_all.py`; it prints a markdown table: seconds of each analysis by itself, in this process
on the same store, then of the whole command as a person runs it. Spans are made in DuckDB: four services of which one
gets slow, fails and stalls on the sixth day; a tenth of the answers have their token arrivals. Series are a sample a
minute: gauges with a daily rhythm, counters, and ten that jump with the incident. Rollups are built before.
"""

import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from analytics.catalog import ANALYSES, load
from infractl.priced import PricedReader
from infractl.runner import run
from store.database import Database
from store.settings import StoreSettings
from store.upkeep import upkeep
from store.window import Window

START = datetime(2026, 11, 20, tzinfo=UTC)
DAYS, SPANS, SERIES = 7, 1_000_000, 1_000
WEEK = Window(START, START + timedelta(days=DAYS))
AT = f"TIMESTAMP '2026-11-20' + to_microseconds((i * {DAYS * 86_400_000_000} // {SPANS})::BIGINT)"
BAD = "(i % 4 = 0 AND i BETWEEN 800000 AND 812000)"
SPAN = f"""
INSERT INTO hot_spans (trace_id, span_id, ts, duration_s, name, kind, service, operation, provider, model,
  cloud_provider, cloud_region, status, error_code, e2e_s, ttft_s, tpot_s, queue_s, prefill_s, decode_s, input_tokens,
  output_tokens, cached_input_tokens, request_id, attributes, resource)
SELECT md5(i::VARCHAR), left(md5((i + 7)::VARCHAR), 16), {AT}, e2e, 'chat', 'server', 'service-' || i % 4, 'chat',
  'vllm', 'model-' || i % 5, 'cloud-' || i % 3, 'region-' || i % 2, CASE WHEN bad < failing THEN 'error' ELSE 'ok' END,
  CASE WHEN bad < failing THEN 'HTTP_503' END, e2e, ttft, (e2e - ttft) / greatest(tokens, 1), ttft * 0.3, ttft * 0.7,
  e2e - ttft, prompt, tokens, prompt // 2, 'r' || i, '{{}}', '{{}}'
FROM (
  SELECT i, bad, failing, prompt, tokens, ttft, ttft + tokens * 0.02 * (0.8 + 0.4 * random()) AS e2e FROM (
    SELECT i, random() AS bad, CASE WHEN {BAD} THEN 0.3 ELSE 0.005 END AS failing, (random() * 4000)::BIGINT AS prompt,
      1 + (random() * 300)::BIGINT AS tokens,
      (CASE WHEN {BAD} THEN 5 ELSE 1 END) * (0.05 - 0.1 * ln(1 - random())) AS ttft FROM range({SPANS}) t(i)))
"""
ARRIVALS = """
INSERT INTO hot_token_arrivals (trace_id, span_id, ts, service, measured_by, offsets_us)
SELECT trace_id, span_id, ts, service, 'client',
  list_transform(range(output_tokens), lambda k: (1e6 * (ttft_s + k * tpot_s * (0.9 + 0.2 * random())))::BIGINT)
FROM hot_spans WHERE request_id[-1] = '0'
"""
SERIES_ROWS = f"""
INSERT INTO metric_series (series_id, name, kind, combine, job, instance, service, labels)
SELECT i, 'metric_' || i % 20, CASE WHEN i % 4 = 0 THEN 'counter' ELSE 'gauge' END, 'mean', 'bench', 'host-' || i // 20,
  'service-' || i % 4, '{{"i": "' || i || '"}}' FROM range({SERIES}) t(i)
"""
SAMPLES = f"""
INSERT INTO hot_metric_samples (series_id, ts, value)
SELECT i, TIMESTAMP '2026-11-20' + to_seconds(m * 60), CASE WHEN i % 4 = 0 THEN m * 60.0 * (1 + i % 7)
  ELSE 50 + 20 * sin(m * 0.00436) + 3 * random() + CASE WHEN i < 40 AND m BETWEEN 8064 AND 8184 THEN 60 ELSE 0 END END
FROM range({SERIES}) s(i), range({DAYS * 1440}) t(m)
"""


def make(folder: Path) -> None:
    """Fill a store and build its rollups."""
    with Database(folder, StoreSettings(hot=timedelta(days=30))) as database:
        with database.transaction() as cursor:
            for text in (SPAN, ARRIVALS, SERIES_ROWS, SAMPLES):
                cursor.execute(text)
        upkeep(database, WEEK.end + timedelta(hours=1), ["rollups"])


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        print("| analysis | rows read | seconds |\n|---|---|---|")
        with Database(folder) as database:
            for analysis in map(load, ANALYSES):
                started = time.perf_counter()
                result, rows = run(PricedReader(database), analysis, analysis.make_params({}), WEEK)
                took = time.perf_counter() - started
                print(f"| {analysis.name} ({result.status}) | {rows:,} | {took:.1f} |", flush=True)
        words = ["analyze", "--all", "--window", str(WEEK), "--data", name, "--format", "json", "--output"]
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "infractl.main", *words, str(folder / "all.json")], check=True)
        print(f"| `infractl analyze --all`, the whole command | | {time.perf_counter() - started:.1f} |")


if __name__ == "__main__":
    main()
