"""Which driver moved most in an episode: a fit on the calm requests and those of the episode alone.

The fit over the whole window is an average over all its incidents; one with two different ones blames the same driver
for both. Between calm and one episode, the driver whose change moves the fitted quantile most is the one to look at.
"""

from typing import Any

import numpy as np
import polars as pl

from analytics.p99 import ABOVE
from analytics.p99.group import Group
from analytics.p99.selection import select
from analytics.p99.windows import Episode, episodes
from analytics.stats.quantile_regression import fit
from analytics.stats.smoothed import Array


def moved_most(group: Group, episode: Episode) -> dict[str, Any] | None:
    """Driver, by how much it moved the fitted quantile (coefficient x change of its mean), and both means.

    None where there is no model, or no request outside of all episodes to compare with.
    """
    if group.model is None:
        return None
    every = episodes(group.table, ABOVE, group.size)
    calm = group.selection.rows.filter(~pl.any_horizontal([_within(e) for e in every]))
    inside = group.selection.rows.filter(_within(episode))
    if not calm.height or not inside.height:
        return None
    names, slopes = _slopes(group, pl.concat([calm, inside]).sort("ts"))
    here, there = (rows.select(pl.col(names).mean()).to_numpy()[0] for rows in (inside, calm))
    moves = slopes * (here - there)
    most = int(np.argmax(moves))
    return {
        "driver": names[most],
        "moved": float(moves[most]),
        "driver_inside": float(here[most]),
        "driver_outside": float(there[most]),
    }


def _within(episode: Episode) -> pl.Expr:
    return (pl.col("ts") >= episode.since) & (pl.col("ts") < episode.until)


def _slopes(group: Group, rows: pl.DataFrame) -> tuple[list[str], Array]:
    """Drivers and their slopes over these rows; those of the whole fit where the rows cannot carry one."""
    model, names = group.model, list(group.selection.names)
    assert model is not None
    if model.method == "qr":
        local = select(rows, names, model.tau, 1, auto=False, per_window=False)
        if not local.refusal and local.tau == model.tau:
            return list(local.names), fit(local.design, local.y, local.tau).coefficients[1:]
    return names, model.coefficients[1:]
