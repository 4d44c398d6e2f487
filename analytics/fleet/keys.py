"""Which GPU or MIG instance a series speaks of."""

import polars as pl

from analytics.metrics.series import with_labels

IDENTITY = ("gpu_uuid", "gpu_model", "pci_bus_id", "host", "gpu", "mig_instance", "mig_profile")
"""Standard labels of a GPU's series; a whole GPU has no mig_instance."""


def with_device(series: pl.DataFrame) -> pl.DataFrame:
    """Add the labels of IDENTITY and `device`: the GPU's UUID, else host (else address) and index, else bus id.

    A series without UUID takes that of the one GPU which others show at its host and index. Series that name no GPU
    are left out.
    """
    named = with_labels(series, IDENTITY)
    where = pl.coalesce("host", "instance", pl.lit("?"))
    place = pl.concat_str(where, pl.lit(" "), pl.coalesce("gpu", "pci_bus_id")).alias("_place")
    placed = named.with_columns(place)
    known = placed.drop_nulls(["_place", "gpu_uuid"]).group_by("_place").agg(pl.col("gpu_uuid").unique().alias("_of"))
    known = known.filter(pl.col("_of").list.len() == 1).with_columns(pl.col("_of").list.first())
    joined = placed.join(known, on="_place", how="left", maintain_order="left")
    device = pl.coalesce("gpu_uuid", "_of", "_place").alias("device")
    return joined.with_columns(device).drop("_place", "_of").drop_nulls("device")
