"""How long an error lasts: until the request succeeds, or others do after it gave up (Kaplan & Meier 1958)."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

Array = NDArray[np.float64]
CALM = 3
"""Attempts in a row without the error that end a stretch of it."""


def survival_quantile(times: Array, ended: NDArray[np.bool_], q: float) -> float | None:
    """Time by which a share `q` had ended, allowing for those not seen to the end; None where it is not reached."""
    if not times.size:
        return None
    order = np.lexsort((~ended, times))
    at_risk = times.size - np.arange(times.size)
    alive = np.cumprod(1.0 - ended[order] / at_risk)
    reached = np.flatnonzero(alive <= 1.0 - q + 1e-12)
    return float(times[order][reached[0]]) if reached.size else None


def over_at(attempts: pl.DataFrame, code: str) -> pl.DataFrame:
    """Return, per failed attempt with the error: _row, over (us): when the stretch of errors it lies in was over.

    `attempts` of one group, in order of time. A stretch ends with the start of the first of CALM attempts in a row that
    did not have the error; null where that is not seen.
    """
    bad = ((attempts["error_code"] == code).fill_null(value=False) & attempts["failed"]).to_numpy()
    place = np.flatnonzero(bad)
    if not place.size:
        return pl.DataFrame(schema={"_row": pl.UInt32, "over": pl.Int64})
    following = np.append(place[1:], bad.size)
    calm = following - place - 1
    last = np.append(calm[:-1] >= CALM, calm[-1] >= CALM)
    stretch = np.concatenate([[0], np.cumsum(last)[:-1]])
    ends = np.full(int(stretch[-1]) + 1, -1, dtype=np.int64)
    ends[stretch[last]] = attempts["start"].to_numpy()[place[last] + 1]
    over = pl.Series("over", ends[stretch]).replace(-1, None)
    return pl.DataFrame([attempts["_row"].gather(place), over])
