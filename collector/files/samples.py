"""Columns of a table as series and samples: a series for each name and each set of labels."""

from collections.abc import Mapping, Sequence

import polars as pl

from collector.files.measure import Measure
from store.tables import METRIC_SAMPLES, METRIC_SERIES


def tabulate(
    measures: Sequence[Measure], ts: pl.Series, labels: pl.DataFrame, constants: Mapping[str, str]
) -> dict[str, pl.DataFrame]:
    """Return `metric_series` and `metric_samples` of rows with times `ts` and label columns; a missing value is no sample."""
    raise NotImplementedError
