"""Linear quantile regression, exact at any size: 10 million rows and a few columns in about a second.

Subsample, one pass that sums the rows surely above or below the fit ("globbing", Portnoy & Koenker 1997), smoothed
Newton on the rest, then the exact vertex. statsmodels' QuantReg takes 30 to 50 times as long at a million rows, loads
1,600 modules, and answers collinear columns with nonsense; `analytics.stats.collinearity` keeps those away from here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analytics.stats.collinearity import constant_columns
from analytics.stats.sandwich import density_matrix
from analytics.stats.smoothed import Array, Problem, check_loss, minimise, starting_point
from analytics.stats.vertex import descend

DIRECT_ROWS = 5_000
"""Up to here all rows are fitted at once; a subsample would save nothing."""
_CHUNK = 65_536  # a chunk and its residuals stay in the cache
_BAND = 6.0  # standard errors of the subsample fit: a row outside changes side with probability 1e-9
_WIDEN = 2.5
_ROUNDS = 6
_RARE_ROWS = 200
_ROUNDING = 1e-9  # of the largest value: what lies nearer to a plane lies on it


@dataclass(frozen=True, slots=True)
class QuantileFit:
    """A fitted quantile plane.

    `loss` is the sum of rho_tau over the rows; `below` the share of rows at or below the plane; `subgradient` the
    largest |sum x (tau - 1[r < 0])| relative to max |x| of its column (an optimum has at most about the number of
    columns); `exact` says that the optimality conditions were checked and hold.
    """

    tau: float
    coefficients: Array
    loss: float
    n: int
    below: float
    subgradient: float
    exact: bool

    def predict(self, design: Array) -> Array:
        """Fitted quantile of each row of the design."""
        return np.asarray(design @ self.coefficients)


@dataclass(frozen=True, slots=True)
class _Rows:
    """A design and the change of basis to centred and scaled columns; no scaled copy of it is made."""

    design: Array
    y: Array
    change: Array

    @property
    def n(self) -> int:
        return int(self.y.size)

    def take(self, rows: NDArray[np.intp]) -> tuple[Array, Array]:
        return self.design[rows] @ self.change, self.y[rows]

    def chunks(self) -> Iterator[tuple[int, Array, Array]]:
        for start in range(0, self.n, _CHUNK):
            part = slice(start, start + _CHUNK)
            yield start, self.design[part], self.y[part]


def fit(design: Array, y: Array, tau: float, near: Array | None = None, *, close: bool = False) -> QuantileFit:
    """Fit the tau-quantile of y (n,) on the design design (n, p); column 0 of design is the constant 1.

    `near` are coefficients to begin from, such as those of a fit to all but one column: they change how soon the
    optimum is found, not which; `close` says that hardly a row lies between them and it. Deterministic.
    Rows must be finite and the columns linearly independent (see `usable_columns`). Raises ValueError for a tau
    outside (0, 1) or fewer rows than columns.
    """
    n, p = design.shape
    if not 0.0 < tau < 1.0:
        raise ValueError(f"tau must lie between 0 and 1, not {tau}")
    if n < p or y.shape != (n,):
        raise ValueError(f"{n} rows and {y.shape} values cannot carry {p} coefficients")
    sample = _varied(design, _sample(n))
    rows = _Rows(design, y, _standardise(design[sample]))
    law = _law(rows, sample)
    if law is not None:
        return _checked(rows, tau, law, exact=True)[0]
    start = Problem.of(*rows.take(sample), tau)
    begin = starting_point(start) if near is None else _from(start, np.asarray(np.linalg.solve(rows.change, near)))
    beta, width = _closely(start, begin[0]) if close else minimise(start, *begin, rows_near=10 * p)
    if n > DIRECT_ROWS:
        return _globbed(rows, tau, start, beta, width)
    beta, exact = descend(start, beta)
    return _checked(rows, tau, beta, exact=exact)[0]


def _from(problem: Problem, beta: Array) -> tuple[Array, float]:
    """Coefficients to begin from, and a bandwidth as wide as the tail of their residuals."""
    _constant, width = starting_point(replace(problem, y=problem.y - problem.design @ beta))
    return beta, width


def _closely(problem: Problem, beta: Array) -> tuple[Array, float]:
    """Coefficients as they are, and a bandwidth that holds some rows for each of them."""
    distance = np.abs(problem.y - problem.design @ beta)
    place = min(10 * beta.size, distance.size - 1)
    return beta, float(np.partition(distance, place)[place]) or 1e-12 * (float(np.abs(problem.y).max()) or 1.0)


def fit_smallest(y: Array, tau: float) -> QuantileFit:
    """Fit of the constant alone: the tau order statistic of y."""
    level = float(np.quantile(y, tau, method="inverted_cdf"))
    return _checked(_Rows(np.ones((y.size, 1)), y, np.eye(1)), tau, np.array([level]), exact=True)[0]


def _law(rows: _Rows, sample: NDArray[np.intp]) -> Array | None:
    """Coefficients that give every row exactly, where there are any: then every quantile is that plane.

    Pivoting among rows that all lie on the plane would go on for minutes.
    """
    design, y = rows.take(sample)
    beta: Array = np.asarray(np.linalg.lstsq(design, y, rcond=None)[0], dtype=np.float64)
    if not on_plane(design, y, beta):
        return None
    plane = rows.change @ beta
    return beta if all(on_plane(part, values, plane) for _, part, values in rows.chunks()) else None


def on_plane(design: Array, y: Array, beta: Array) -> bool:
    """Whether all rows lie on the plane, but for rounding."""
    return bool(np.abs(y - design @ beta).max() <= _ROUNDING * max(float(np.abs(y).max()), abs(float(beta[0]))))


def _sample(n: int) -> NDArray[np.intp]:
    if n <= DIRECT_ROWS:
        return np.arange(n)
    size = min(max(DIRECT_ROWS, n // 4), max(4 * DIRECT_ROWS, n // 100))  # measured best at 17k, 1M and 10M rows
    return np.sort(np.random.default_rng(0).choice(n, size, replace=False))


def _varied(design: Array, sample: NDArray[np.intp]) -> NDArray[np.intp]:
    """Add rows in which a column moves that does not move in the sample: a rare state of a driver, for one.

    Any rows will do to begin from; a column that they do not tell from the constant has no standard error.
    """
    for i in constant_columns(design[sample, 1:]):
        moves = np.flatnonzero(design[:, 1 + i] != design[sample[0], 1 + i])
        sample = np.union1d(sample, moves[:: max(1, moves.size // _RARE_ROWS)])
    return sample


def _standardise(design: Array) -> Array:
    """Change of basis Z = X C with centred columns of unit spread; column 0 stays the constant."""
    mean, spread = design.mean(axis=0), design.std(axis=0)
    spread[spread == 0] = 1.0
    change = np.diag(1.0 / spread)
    change[0, :] = -mean / spread
    change[:, 0] = 0.0
    change[0, 0] = 1.0
    return np.asarray(change)


def _globbed(rows: _Rows, tau: float, start: Problem, beta: Array, width: float) -> QuantileFit:
    """Fit on the rows near the subsample's fit, the others standing as sums; widen until none has changed side."""
    root = _standard_error_root(start, beta) * _BAND
    for _ in range(_ROUNDS):
        window, linear = _split(rows, tau, beta, root, width)
        if window.size > 2 * beta.size:
            problem = Problem(*rows.take(window), tau, linear)
            near, _width = minimise(problem, beta, width, rows_near=20 * beta.size)
            found, exact = descend(problem, near)
            checked, changed = _checked(rows, tau, found, exact=exact, before=beta)
            if exact and np.isin(changed, window, assume_unique=True).all():
                return checked
        root, width = root * _WIDEN, width * _WIDEN
    found, exact = descend(Problem.of(*rows.take(np.arange(rows.n)), tau), beta)
    return _checked(rows, tau, found, exact=exact)[0]


def _standard_error_root(sample: Problem, beta: Array) -> Array:
    """Matrix R with |R'x| = standard error of x'beta for independent rows."""
    tau = sample.tau
    density, _width = density_matrix(sample.design, sample.y - sample.design @ beta, tau)
    sizes, axes = np.linalg.eigh(tau * (1.0 - tau) * (sample.design.T @ sample.design))
    score = axes * np.sqrt(np.maximum(sizes, 0.0))  # no Cholesky: columns may be collinear among these rows
    return np.asarray(np.linalg.solve(density, score))


def _split(rows: _Rows, tau: float, beta: Array, root: Array, least: float) -> tuple[NDArray[np.intp], Array]:
    """Rows within their band of the fit, and the linear term of those above and below it."""
    near: list[NDArray[np.intp]] = []
    linear = np.zeros(beta.size)
    plane, spread = rows.change @ beta, rows.change @ root
    for start, design, y in rows.chunks():
        residuals = y - design @ plane
        band = design @ spread
        within = np.abs(residuals) <= np.sqrt(np.einsum("ij,ij->i", band, band)) + least
        near.append(np.flatnonzero(within) + start)
        linear += ((residuals < 0) - tau) * ~within @ design
    return np.concatenate(near), rows.change.T @ linear


def _checked(
    rows: _Rows, tau: float, beta: Array, *, exact: bool, before: Array | None = None
) -> tuple[QuantileFit, NDArray[np.intp]]:
    """Pass over all rows: loss, share below and subgradient of the fit; and the rows on another side than `before`."""
    loss, below = 0.0, 0
    changed: list[NDArray[np.intp]] = []
    score, largest = np.zeros(beta.size), np.zeros(beta.size)
    plane = rows.change @ beta
    for start, design, y in rows.chunks():
        residuals = y - design @ plane
        if before is not None:
            changed.append(start + np.flatnonzero((residuals < 0) != (y < design @ (rows.change @ before))))
        residuals[np.abs(residuals) <= 1e-11 * np.maximum(np.abs(y), np.abs(beta[0]))] = 0.0
        loss += check_loss(residuals, tau)
        below += int(np.count_nonzero(residuals <= 0))
        score += (tau - (residuals < 0)) * (residuals != 0) @ design
        largest = np.maximum(largest, np.maximum(design.max(axis=0), -design.min(axis=0)))
    found = QuantileFit(
        tau=tau,
        coefficients=plane,
        loss=loss,
        n=rows.n,
        below=below / rows.n,
        subgradient=float(np.max(np.abs(score) / np.maximum(largest, 1e-300))),
        exact=exact,
    )
    return found, np.concatenate(changed) if changed else np.zeros(0, dtype=np.intp)
