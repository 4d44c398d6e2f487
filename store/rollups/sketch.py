"""Log-bucket histogram: quantiles within 1 % from counts that add up, in SQL, polars and Python alike."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

ERROR = 0.01
"""Bound on the relative error of a quantile."""
GAMMA = (1 + ERROR) / (1 - ERROR)
LOG_GAMMA = math.log(GAMMA)
_DIGITS = 6
"""Digits of a rank before it is rounded up, so that 0.07 of 100 is the 7th and not, by its binary value, the 8th."""


def index(value: float) -> int | None:
    """Return the bucket i of a value, gamma^(i-1) < value <= gamma^i; None at or under zero."""
    return math.ceil(math.log(value) / LOG_GAMMA) if value > 0 else None


def estimate(bucket: int | None) -> float:
    """Return the value that is within `ERROR` of all in a bucket: 2 gamma^i / (gamma + 1); 0 for None."""
    return 0.0 if bucket is None else 2 * math.exp(bucket * LOG_GAMMA) / (GAMMA + 1)


def rank(q: float, n: int) -> int:
    """Return which of n values in rising order is the q-quantile: ceil(q n), at least 1; as quantile_disc has it."""
    return max(1, math.ceil(round(q * n, _DIGITS)))


def quantile(counts: Mapping[int | None, int], q: float) -> float | None:
    """Return the q-quantile of a histogram (count by bucket); None where it is empty."""
    left = rank(q, sum(counts.values()))
    for bucket in sorted(counts, key=lambda i: -math.inf if i is None else i):
        left -= counts[bucket]
        if left <= 0:
            return estimate(bucket)
    return None


def index_expr(value: "pl.Expr") -> "pl.Expr":
    """`index` of a polars column."""
    import polars as pl

    return pl.when(value > 0).then((value.log() / LOG_GAMMA).ceil().cast(pl.Int64))


def index_sql(value: str) -> str:
    """`index` of an SQL expression whose value is finite or null."""
    return f"CASE WHEN {value} > 0 THEN CAST(ceil(ln({value}) / {LOG_GAMMA!r}) AS BIGINT) END"


def estimate_sql(bucket: str) -> str:
    """`estimate` of an SQL expression."""
    return f"coalesce(2 * exp({bucket} * {LOG_GAMMA!r}) / {GAMMA + 1!r}, 0)"


def rank_sql(q: float, n: str) -> str:
    """`rank` in SQL; `n` is an expression."""
    return f"greatest(1, ceil(round({q!r}::DOUBLE * {n}, {_DIGITS})))"
