"""Effects of a two-way design: contrasts of cell means with errors of minutes, F tests beside them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.stats.smoothed import Array
from analytics.stats.two_way import about_median, analyse, cell_sizes


@dataclass(frozen=True, slots=True)
class Design:
    """Target, codes of both factors, minute of each row, and the levels in order."""

    y: Array
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    minute: NDArray[np.intp]
    names: tuple[tuple[str, ...], tuple[str, ...]]

    @classmethod
    def of(cls, rows: pl.DataFrame) -> "Design":
        """Make a design of columns ts, y, a and b (text); levels in their own order, 'up to' before 'above'."""
        codes, names = [], []
        for name in "ab":
            found = sorted(rows[name].unique(), key=lambda level: (str(level).startswith("above "), level))
            codes.append(_codes(rows[name], found))
            names.append(tuple(map(str, found)))
        minutes = rows["ts"].cast(pl.Int64).to_numpy() // 60_000_000
        return cls(
            rows["y"].to_numpy().astype(np.float64), codes[0], codes[1],
            np.unique(minutes, return_inverse=True)[1], (names[0], names[1]),
        )  # fmt: skip

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Rows per cell."""
        return cell_sizes(self.a, self.b)

    def cell_rows(self) -> list[dict[str, Any]]:
        """Rows of frame `cells`; a cell without rows has n 0 and nulls."""
        rows = []
        for i, a in enumerate(self.names[0]):
            for j, b in enumerate(self.names[1]):
                y = self.y[(self.a == i) & (self.b == j)]
                row: dict[str, Any] = {"a": a, "b": b, "n": y.size}
                if y.size:
                    middle, mean = float(np.median(y)), float(y.mean())
                    sd = float(y.std(ddof=1)) if y.size > 1 else None
                    row |= {"mean": mean, "sd": sd, "median": middle, "spread": float(np.abs(y - middle).mean())}
                    row["cv"] = sd / mean if sd is not None and mean else None
                rows.append(row)
        return rows


def _codes(column: pl.Series, found: list[Any]) -> NDArray[np.intp]:
    return column.replace_strict(found, list(range(len(found))), return_dtype=pl.Int64).to_numpy().astype(np.intp)


def effect_rows(design: Design, factors: tuple[str, ...]) -> list[dict[str, Any]]:
    """Six rows of frame `effects`: both factors and their interaction, on the mean and on the spread."""
    rows = []
    effects = (factors[0], factors[1], f"{factors[0]} x {factors[1]}")
    for on, y in (("mean", design.y), ("spread", about_median(design.y, design.a, design.b))):
        terms = analyse(y, design.a, design.b) if float(np.ptp(y)) > 0 else (None, None, None)
        for i, (effect, term) in enumerate(zip(effects, terms, strict=True)):
            row: dict[str, Any] = {"effect": effect, "on": on, "estimate": None, "p": None}
            row |= {"f": term.f, "p_f": term.p} if term is not None else {"f": None, "p_f": 1.0}
            weights = _weights(design, i)
            if weights is not None:
                row |= _contrast(y, design, weights) | {"contrast": _named(design, i)}
            rows.append(row)
    return rows


def _weights(design: Design, effect: int) -> Array | None:
    """Weights of the cells (levels of a, levels of b) in a contrast; None where a factor has more than two levels."""
    shape = design.sizes.shape
    step = np.array([-1.0, 1.0])
    if effect == 0:
        return np.outer(step, np.full(shape[1], 1 / shape[1])) if shape[0] == 2 else None
    if effect == 1:
        return np.outer(np.full(shape[0], 1 / shape[0]), step) if shape[1] == 2 else None
    return np.outer(step, step) if shape == (2, 2) else None


def _named(design: Design, effect: int) -> str:
    both = [f"{names[-1]} minus {names[0]}" for names in design.names]
    return both[effect] if effect < 2 else "difference of the differences"


def _contrast(y: Array, design: Design, weights: Array) -> dict[str, Any]:
    """Contrast of cell means with the error of whole minutes (Liang & Zeger 1986), Student's t of minutes - 1."""
    from scipy.special import stdtr, stdtrit

    sizes = design.sizes
    sums = np.zeros(sizes.shape)
    np.add.at(sums, (design.a, design.b), y)
    means = sums / sizes
    scores = (weights / sizes)[design.a, design.b] * (y - means[design.a, design.b])
    per_minute = np.bincount(design.minute, scores)
    clusters = per_minute.size
    found: dict[str, Any] = {"estimate": float((weights * means).sum()), "ci_low": None, "ci_high": None}
    if clusters < 5:
        return found
    error = float(np.sqrt(per_minute @ per_minute * clusters / (clusters - 1)))
    half = float(stdtrit(clusters - 1, 0.975)) * error
    found |= {"ci_low": found["estimate"] - half, "ci_high": found["estimate"] + half}
    return found | {"p": float(2 * stdtr(clusters - 1, -abs(found["estimate"]) / error)) if error else 1.0}
