"""Quantiles against Prometheus' own histogram_quantile, by promtool (skipped where it is not installed)."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from analytics.metrics.quantiles import AT_LEAST, AT_MOST, quantiles

PROMTOOL = shutil.which("promtool")
QS = (0.25, 0.5, 0.9, 0.99)


def histograms(count: int) -> pl.DataFrame:
    """Random cumulative buckets; some have empty ones, some overflow. Counts are whole, as those of a server."""
    random = np.random.default_rng(7)
    rows = []
    for h in range(count):
        bounds = np.sort(random.choice(np.array([0.001, 0.01, 0.05, 0.1, 0.3, 1, 2.5, 10, 60]), 5, replace=False))
        counts = np.cumsum(random.integers(0, 50, 6) * random.integers(0, 2, 6)) + 1
        rows += [(str(h), float(le), float(n)) for le, n in zip([*bounds, np.inf], counts, strict=True)]
    return pl.DataFrame(rows, ["h", "le", "count"], orient="row").with_columns(pl.lit("x").alias("name"))


def unit_test(buckets: pl.DataFrame, answers: pl.DataFrame) -> dict[str, Any]:
    series = [
        {"series": f'x_bucket{{h="{h}",le="{"+Inf" if le == np.inf else le}"}}', "values": str(int(n))}
        for h, le, n in buckets.select("h", "le", "count").iter_rows()
    ]
    tests = [
        {
            # rounded, since the two interpolate in another order of operations
            "expr": f'round(histogram_quantile({row["q"]}, x_bucket{{h="{row["h"]}"}}), 1e-9)',
            "eval_time": "0s",
            "exp_samples": [{"labels": f'{{h="{row["h"]}"}}', "value": expected(row)}],
        }
        for row in answers.iter_rows(named=True)
        if row["relation"] != AT_MOST
    ]
    return {"rule_files": [], "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}]}


def expected(row: dict[str, Any]) -> float:
    """What Prometheus says: where there is no estimate beyond the last bound, it answers that bound."""
    value = row["low"] if row["relation"] == AT_LEAST else row["value"]
    return float(np.floor(value / 1e-9 + 0.5) / (1 / 1e-9))  # as PromQL's round does


@pytest.mark.skipif(PROMTOOL is None, reason="apt install prometheus")
def test_quantiles_are_those_of_prometheus(tmp_path: Path) -> None:
    assert PROMTOOL
    buckets = histograms(25)
    answers = quantiles(buckets, ["h"], QS)
    relations = set(answers["relation"])
    assert relations == {"=", AT_LEAST, AT_MOST}
    path = tmp_path / "quantiles.yml"
    path.write_text(yaml.safe_dump(unit_test(buckets, answers)))
    run = subprocess.run([PROMTOOL, "test", "rules", str(path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
