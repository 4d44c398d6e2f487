"""What holds the clocks of each GPU down: NVML's mask, else the shares of time that a source states per reason."""

import polars as pl

from analytics.fleet.throttle import reason_severity, throttle_reasons, told

MASK, SHARE = "gpu_throttle_reasons_bitmask", "gpu_throttle_ratio"
LEAST_SHARE = 0.01
"""Share of time from which a reason counts; below it is what a sensor rounds up."""


def throttles(levels: pl.DataFrame) -> pl.DataFrame:
    """Return device, throttle (reasons that are not quiet; empty for none) and throttle_severity (of the worst).

    Devices of which nothing is reported are left out.
    """
    masks = levels.filter(pl.col("name") == MASK).group_by("device").agg(pl.col("value").max())
    shares = levels.filter(pl.col("name") == SHARE).join(masks, on="device", how="anti").drop_nulls("reason")
    held = pl.when(pl.col("value") >= LEAST_SHARE).then(pl.col("reason"))
    named = shares.group_by("device").agg(held.drop_nulls().unique().sort().alias("reasons"))
    return pl.concat([_of_masks(masks), _of_names(named)])


def _of_masks(masks: pl.DataFrame) -> pl.DataFrame:
    distinct = masks["value"].unique()
    texts = [told(throttle_reasons(int(mask))) for mask in distinct]
    return _joined(masks, "value", pl.DataFrame({"value": distinct}), texts)


def _of_names(named: pl.DataFrame) -> pl.DataFrame:
    joined = named.with_columns(pl.col("reasons").list.join(","))
    distinct = joined["reasons"].unique()
    texts = [told((name, reason_severity(name)) for name in one.split(",") if name) for one in distinct]
    return _joined(joined, "reasons", pl.DataFrame({"reasons": distinct}), texts)


def _joined(devices: pl.DataFrame, on: str, distinct: pl.DataFrame, texts: list[tuple[str, str]]) -> pl.DataFrame:
    table = distinct.with_columns(
        pl.Series("throttle", [text for text, _ in texts], pl.String),
        pl.Series("throttle_severity", [severity for _, severity in texts], pl.String),
    )
    return devices.join(table, on=on).select("device", "throttle", "throttle_severity")
