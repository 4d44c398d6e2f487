"""What groups cost by the hour or day, with what is usual as a band and drifts shaded: those that drift first."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dashboards.charts.banded import Banded
from dashboards.charts.plate import Plate
from dashboards.figures import Drawn

if TYPE_CHECKING:
    import polars as pl

_NO_LABELS = ("bucket", "cost", "expected", "low", "high", "score", "alert")


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBands:
    """The frames `hours` and `drifts` of `cost`, a panel for each group, currency and basis."""

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the panels; None without hours."""
        hours = plate.frame("hours", "bucket", "cost", "low", "high", "currency", "basis")
        if hours is None:
            return None
        key = tuple(name for name in hours.columns if name not in _NO_LABELS)
        frames = {"values": self._values(hours, key)}
        drifts = plate.frame("drifts", *key, "since", "until", "impact")
        if drifts is not None:
            frames["marks"] = self._marks(drifts)
        banded = Banded(
            frame="values", key=key, marks="marks", loud=("direction", "up"),
            title="Cost and what is usual for it, drifts shaded",
        )  # fmt: skip
        return banded.draw(replace(plate, frames=frames))

    def _values(self, hours: "pl.DataFrame", key: tuple[str, ...]) -> "pl.DataFrame":
        """Order the groups: those with an alert first, then the dearest."""
        import polars as pl

        foremost = (pl.col("alert").any().over(key), pl.col("cost").sum().over(key))
        return (
            hours.with_columns(foremost[0].alias("_first"), foremost[1].alias("_sum"))
            .sort("_first", "_sum", *key, "bucket", descending=[True, True, *[False] * (len(key) + 1)])
            .rename({"bucket": "ts", "cost": "value"})
            .with_columns(pl.col("currency").fill_null("").alias("unit"), pl.col("value").cast(pl.Float64))
            .drop("_first", "_sum")
        )

    def _marks(self, drifts: "pl.DataFrame") -> "pl.DataFrame":
        import polars as pl

        up = pl.when(pl.col("impact") > 0).then(pl.lit("up")).otherwise(pl.lit("down"))
        return drifts.rename({"since": "start", "until": "end"}).with_columns(up.alias("direction"))
