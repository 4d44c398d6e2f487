"""Run `cost` over simulated series, imported files and cases, as the store would hand them over."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from analytics.cost import ANALYSIS, ITEMS
from analytics.result import Result
from collector.files.load import load
from collector.files.options import FileKind, ImportOptions
from store.database import Database
from store.query import CostQuery
from store.window import Window
from tests.analytics.cost.lines import SCHEMA

START = datetime(2026, 10, 5)
"""A Monday."""


def hours(costs: Mapping[str, Sequence[float | None]], *, grain: str = "hour", **more: Any) -> pl.DataFrame:
    """Lines of a CostQuery: a service each, an hour (or day) after the other from START; None: no line."""
    types: dict[str, Any] = {**SCHEMA, "service": pl.String, "grain": pl.String}
    step = timedelta(hours=1) if grain == "hour" else timedelta(days=1)
    rows = [
        {"bucket": START + i * step, "service": name, "cost": Decimal(repr(round(float(cost), 6))), "lines": 1,
         "currency": "USD", "category": "Usage", "grain": grain} | more
        for name, series in costs.items()
        for i, cost in enumerate(series)
        if cost is not None
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=types)


def analysed(lines: pl.DataFrame, window: Window | None = None, **params: Any) -> Result:
    """Answer over lines by service, up to the end of the last bucket."""
    last = lines["bucket"].max() or START
    assert isinstance(last, datetime)
    end = last + (timedelta(days=1) if (lines["grain"] == "day").any() else timedelta(hours=1))
    made = ANALYSIS.make_params({"by": "service"} | params)
    return ANALYSIS.run({"lines": lines}, made, window or Window(START.replace(tzinfo=UTC), end.replace(tzinfo=UTC)))


def imported(path: Path, *, kind: FileKind | None = FileKind.BILL, **params: Any) -> Result:
    """Import a file, and answer over all its lines."""
    with TemporaryDirectory() as folder, Database(Path(folder)) as database:
        database.append(list(load(path, ImportOptions(kind=kind)).batches))
        extent = database.extent("costs")
        assert extent is not None
        window = Window(extent.start, extent.end + timedelta(days=1))
        made = ANALYSIS.make_params(params)
        query = ANALYSIS.inputs(made)["lines"]
        assert isinstance(query, CostQuery)
        assert set(ITEMS) <= set(query.by)
        return ANALYSIS.run({"lines": database.read(query, window)}, made, window)


def noisy(days: int, seed: int = 0, series: int = 1, level: float = 10.0) -> Any:
    """Costs (hours, series) with a day, a week and 5 % of AR(0.7) noise."""
    rng = np.random.default_rng(seed)
    hour = np.arange(days * 24)
    usual = level * (1 + 0.4 * np.sin(2 * np.pi * (hour % 24 - 8) / 24)) * np.where(hour // 24 % 7 >= 5, 0.75, 1.0)
    step = rng.normal(size=(hour.size, series)) * 0.05 * np.sqrt(1 - 0.7**2)
    noise = np.zeros_like(step)
    for i in range(1, hour.size):
        noise[i] = 0.7 * noise[i - 1] + step[i]
    return usual[:, None] * np.exp(noise)
