"""How right `analyze p99` is where the truth is known: `nice python benchmarks/accuracy/p99.py` (about six minutes).

Requests are simulated: TTFT = prefill(prompt) x lognormal + queue rho / (1 - rho) + recompute after KV misses (Pareto
tail) + PCIe contention pc^3 (Pareto tail) + in one scenario a stolen CPU. Drivers are AR(1), one value a minute, with
phi .9; memory wait follows the CPU (correlation .99) and does nothing. The true effect of a driver is how much P99
moves as it alone goes from its 10 % to its 90 % quantile, by simulation. Prints Markdown tables.
"""

import argparse
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from analytics.catalog import load
from analytics.p99.model import fit_requests
from analytics.p99.selection import select
from analytics.result import Result
from analytics.stats.smoothed import Array
from store.window import Window

START = datetime(2026, 11, 30, tzinfo=UTC)
CAUSES = ("queue", "kv", "pcie", "cpu")
NAMES = {"queue": "load", "kv": "kv_misses", "pcie": "pcie_use", "cpu": "cpu_steal", "mem": "mem_wait"}
WINDOWS, PER_WINDOW = 540, 70
P99 = load("p99")


@dataclass(frozen=True)
class Scenario:
    """Strength of each part; the named cause is the strong one."""

    cause: str

    def ttft(self, rng: np.random.Generator, levels: dict[str, Array], prompt: Array) -> Array:
        """TTFT of requests at these levels of the drivers."""
        n = prompt.size
        strong = {name: 1.0 if name == self.cause else 0.25 for name in CAUSES}
        strong["cpu"] *= self.cause == "cpu"
        prefill = (0.02 + 0.0001 * prompt) * rng.lognormal(0, 0.25, n)
        queue = 0.12 * levels["queue"] / (1 - levels["queue"]) * rng.exponential(1, n)
        misses = (rng.random(n) < levels["kv"]) * 0.3 * (1 + rng.pareto(3, n))
        pcie = 1.2 * levels["pcie"] ** 3 * (1 + rng.pareto(3, n)) * (rng.random(n) < 0.3)
        cpu = 1.0 * levels["cpu"] * rng.exponential(1, n)
        return np.asarray(
            prefill + strong["queue"] * queue + strong["kv"] * misses + strong["pcie"] * pcie + strong["cpu"] * cpu
        )


def ar1(rng: np.random.Generator, n: int, phi: float) -> Array:
    """Make n values of a stationary AR(1) of variance 1."""
    series = np.zeros(n + 100)
    for i in range(1, series.size):
        series[i] = phi * series[i - 1] + np.sqrt(1 - phi**2) * rng.standard_normal()
    return series[100:]


def levels(rng: np.random.Generator, n: int, phi: float = 0.9) -> dict[str, Array]:
    """Drivers per window: load .2 to .9, misses 0 to .3, PCIe and CPU 0 to 1, memory wait as the CPU."""

    def between(low: float, high: float) -> Array:
        return low + (high - low) / (1 + np.exp(-ar1(rng, n, phi)))

    made = {"queue": between(0.2, 0.9), "kv": between(0, 0.3), "pcie": between(0, 1), "cpu": between(0, 1)}
    return made | {"mem": 0.9 * made["cpu"] + 0.1 * made["cpu"].std() * rng.standard_normal(n)}


def requests(scenario: Scenario, seed: int, windows: int = WINDOWS, per_window: int = PER_WINDOW) -> pl.DataFrame:
    """Rows of a SpanQuery with the drivers as attributes."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(windows), per_window)
    at = {name: values[of] for name, values in levels(rng, windows).items()}
    prompt = rng.gamma(2, 400, of.size)
    seconds = np.sort(of * 60.0 + rng.random(of.size) * 60.0)
    origin = int(START.timestamp() * 1e6)
    columns = {
        "ts": pl.Series((seconds * 1e6).astype(np.int64) + origin).cast(pl.Datetime("us")),
        "ttft_s": scenario.ttft(rng, at, prompt),
        "input_tokens": prompt,
        "service": ["llm"] * of.size,
    }
    return pl.DataFrame(columns | {NAMES[name]: values for name, values in at.items()})


def true_effects(scenario: Scenario, n: int = 400_000) -> dict[str, float]:
    """Change of the conditional P99 as one driver goes from its 10 % to its 90 % quantile, the others as they come."""
    rng = np.random.default_rng(12345)
    drawn = levels(rng, 4000)
    pick = rng.integers(0, 4000, n)
    prompt = rng.gamma(2, 400, n)
    found = {}
    for name in CAUSES:
        ends = []
        for q in (0.1, 0.9):
            at = {k: v[pick] for k, v in drawn.items()} | {name: np.full(n, np.quantile(drawn[name], q))}
            ends.append(np.quantile(scenario.ttft(np.random.default_rng(7), at, prompt), 0.99))
        found[name] = float(ends[1] - ends[0])
    return found


def analysed(spans: pl.DataFrame, *drivers: str, resamples: int = 100) -> Result:
    """Run the analysis as a person would."""
    given = {"drivers": ",".join(drivers), "resamples": resamples, "taus": "none"}
    end = START + timedelta(minutes=WINDOWS)
    return P99.run({"requests": spans}, P99.make_params(given), Window(START, end))


@dataclass(frozen=True)
class Run:
    """What one run got right."""

    by_effect: bool
    by_share: bool
    ratio: float
    coverage: float
    verdict: str
    curvature: float


def judge(scenario: Scenario, seed: int, effects: dict[str, float], windows: int = WINDOWS) -> Run:
    """Hold one run against the truth; twins that were joined count as the one that acts."""
    drivers = ("load", "kv_misses", "pcie_use", "cpu_steal", "mem_wait", "input_tokens")
    result = analysed(requests(scenario, seed, windows), *drivers)
    top = NAMES[max(effects, key=lambda name: effects[name])]
    rows = result.frames["coefficients"].filter(pl.col("role") == "driver", pl.col("term") != "input_tokens")
    effect = dict(rows.select("term", "effect").iter_rows())
    share = dict(result.frames["contributions"].select("driver", "share").iter_rows())
    share.pop("input_tokens", None)
    names = {"mem_wait": "cpu_steal"}
    strongest = max(effect, key=lambda name: effect[name])
    first = max(share, key=lambda name: share[name], default="")
    fit = result.frames["fit"].row(0, named=True)
    return Run(
        by_effect=names.get(strongest, strongest) == top,
        by_share=top in first.split(" + "),
        ratio=effect.get(top, effect.get("mem_wait", float("nan"))) / max(effects.values()),
        coverage=fit["coverage"],
        verdict=fit["verdict"],
        curvature=fit["curvature"] or 0.0,
    )


def slopes_cover(runs: int, windows: int, per_window: int, phi: float, tau: float) -> tuple[float, float, float]:
    """Share of 95 % limits that hold a slope's true value, their mean width, and the mean of the windows' worth."""
    held, width, worth = [], [], []
    for seed in range(runs):
        rng = np.random.default_rng(10_000 + seed)
        of = np.repeat(np.arange(windows), per_window)
        x, z, other = (ar1(rng, windows, phi)[of] for _ in range(3))
        y = 1 + 0.5 * x + 0.3 * z + rng.gumbel(0, 0.3, of.size)
        seconds = of * 60.0 + np.linspace(0, 59, of.size) % 60
        ts = pl.Series((np.sort(seconds) * 1e6).astype(np.int64)).cast(pl.Datetime("us"))
        rows = pl.DataFrame({"ts": ts, "y": y, "x": x, "other": other})
        model = fit_requests(select(rows, ["x", "other"], tau, 50, auto=False, per_window=False), 200, seed)
        held.append(model.low[1] <= 0.5 <= model.high[1])
        width.append(model.high[1] - model.low[1])
        worth.append(model.n_eff)
    return float(np.mean(held)), float(np.mean(width)), float(np.mean(worth))


def no_effect_covers_zero(runs: int) -> tuple[float, float]:
    """Shares of runs in which the limits of the slope, and of the share, of a driver without effect include 0."""
    slope, share = [], []
    for seed in range(runs):
        spans = requests(Scenario("queue"), 500 + seed, 240).with_columns(
            idle=pl.Series(ar1(np.random.default_rng(seed), 240, 0.5)[np.repeat(np.arange(240), PER_WINDOW)])
        )
        result = analysed(spans, "load", "idle", "input_tokens")
        row = result.frames["coefficients"].row(by_predicate=pl.col("term") == "idle", named=True)
        slope.append(row["ci_low"] <= 0 <= row["ci_high"])
        found = result.frames["contributions"].filter(pl.col("driver") == "idle")["ci_low"]
        share.append(not len(found) or found[0] <= 0.005)
    return float(np.mean(slope)), float(np.mean(share))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="runs per scenario")
    parser.add_argument("--runs", type=int, default=200, help="runs for the coverage of intervals")
    given = parser.parse_args()
    columns = ("scenario", "runs", "top driver by effect", "by share", "estimated / true effect", "held-out coverage")
    print("| " + " | ".join((*columns, "off by, each", "verdicts")) + " |")
    print("|---|---|---|---|---|---|---|---|")
    every: list[Run] = []
    for cause in CAUSES:
        scenario = Scenario(cause)
        effects = true_effects(scenario)
        runs = [judge(scenario, seed, effects) for seed in range(given.seeds)]
        every += runs
        print(line(cause, runs), flush=True)
    print(line("all", every))
    print("\n| 95 % limits of a slope | runs | hold the truth | mean width | windows' worth |\n|---|---|---|---|---|")
    for phi, tau in ((0.5, 0.9), (0.5, 0.99), (0.9, 0.9)):
        held, width, worth = slopes_cover(given.runs, 240, 50, phi, tau)
        print(
            f"| 240 windows x 50, phi {phi}, tau {tau} | {given.runs} | {held:.3f} | {width:.3f} | {worth:.0f} |",
            flush=True,
        )
    slope, share = no_effect_covers_zero(max(given.runs // 5, 10))
    print("\n| driver without effect | runs | limits include 0 |\n|---|---|---|")
    print(f"| slope | {max(given.runs // 5, 10)} | {slope:.3f} |\n| share | {max(given.runs // 5, 10)} | {share:.3f} |")


def line(name: str, runs: list[Run]) -> str:
    """One line of the first table."""
    verdicts = {v: sum(run.verdict == v for run in runs) for v in sorted({run.verdict for run in runs})}
    said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    ratio = np.median([run.ratio for run in runs])
    met = np.array([run.coverage for run in runs])
    right = (np.mean([run.by_effect for run in runs]), np.mean([run.by_share for run in runs]))
    cells = (f"{right[0]:.2f}", f"{right[1]:.2f}", f"{ratio:.2f}", f"{met.mean():.4f}")
    return f"| {name} | {len(runs)} | " + " | ".join((*cells, f"{np.abs(met - 0.99).mean():.4f}", said)) + " |"


if __name__ == "__main__":
    main()
