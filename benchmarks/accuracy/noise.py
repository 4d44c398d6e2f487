"""False alarms of `analyze anomalies` on series in which nothing happens: `python benchmarks/accuracy/noise.py`.

Forty series of three weeks at five minutes of each kind; alarms are counted after the first day. At the level that
pages, at the level that is only listed, and by kind of episode.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from analytics.detect.episodes import find
from analytics.detect.novelty import NOTICE, scores

Floats = NDArray[np.float64]
POINTS, SERIES, DAY = 6048, 40, 288
START = 1764547200


def autoregressive(rng: np.random.Generator, coefficient: float) -> Floats:
    """AR(1) around 100."""
    values = rng.normal(size=(POINTS, SERIES))
    for at in range(1, POINTS):
        values[at] += coefficient * values[at - 1]
    return np.asarray(100 + values)


def seasonal(rng: np.random.Generator) -> Floats:
    """Gamma noise whose mean follows the day."""
    day = 2 + np.sin(2 * np.pi * np.arange(POINTS) / DAY)
    return np.asarray(rng.gamma(4.0, 1.0, (POINTS, SERIES)) * day[:, None])


SHAPE = (POINTS, SERIES)
KINDS: dict[str, Callable[[np.random.Generator], Floats]] = {
    "Gaussian": lambda rng: rng.normal(100, 10, SHAPE),
    "lognormal (0.5)": lambda rng: rng.lognormal(0, 0.5, SHAPE),
    "Pareto (3)": lambda rng: 1 + rng.pareto(3, SHAPE),
    "AR(1) 0.95": lambda rng: autoregressive(rng, 0.95),
    "daily x gamma": seasonal,
    "Poisson (2)": lambda rng: rng.poisson(2.0, SHAPE).astype(float),
    "Poisson (0.01)": lambda rng: rng.poisson(0.01, SHAPE).astype(float),
    "AR(1) 0.999": lambda rng: autoregressive(rng, 0.999),
    "random walk": lambda rng: 100 + np.cumsum(rng.normal(size=SHAPE), axis=0),
}


def counted(values: Floats) -> dict[str, float]:
    """Episodes per series-week by level and kind, after the first day."""
    seconds = START + 300 * np.arange(len(values))
    weeks = (len(values) - DAY) * values.shape[1] / 2016
    episodes = [e for e in find(values, seconds) if e.first >= DAY]
    found = {"page": sum(e.page for e in episodes) / weeks, "listed": len(episodes) / weeks}
    for kind in ("value", "hour", "season", "level", "drift", "flat"):
        found[kind] = sum(e.kind == kind for e in episodes) / weeks
    hours = (seconds // 3600 % 24)[:, None]
    found["score"] = float((scores(values, hours)[DAY:] >= NOTICE).sum() / weeks)
    return found


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    rows = {name: counted(made(rng)) for name, made in KINDS.items()}
    heads = list(next(iter(rows.values())))
    print("| series | " + " | ".join(heads) + " |\n|---|" + "---|" * len(heads))
    for name, found in rows.items():
        print(f"| {name} | " + " | ".join(f"{found[head]:.2f}" for head in heads) + " |")


if __name__ == "__main__":
    main()
