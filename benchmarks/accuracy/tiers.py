"""Price schedules inferred from simulated bills whose schedule is known, beside segmented least squares with BIC."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from analytics.tiers.bills import Item, Month
from analytics.tiers.fitted import Found
from analytics.tiers.infer import Inferred, infer
from analytics.tiers.lines import Array
from analytics.tiers.regimes import follow
from analytics.tiers.schedule import Schedule, Tier, parse_schedule

CENT = Decimal("0.01")
SIZES = (6, 12, 24, 60)
TOP = 300.0
DOCUMENTS = ("0:1.20", "50:0.95", "200:0.78")


@dataclass(frozen=True, slots=True)
class Case:
    """A schedule, and the prices and limits that an answer should name."""

    name: str
    schedule: Schedule
    prices: tuple[float, ...]
    limits: tuple[float, ...]


def _case(name: str, texts: tuple[str, ...], model: str = "graduated", fee: str = "0", minimum: str = "0") -> Case:
    read = parse_schedule(texts, "volume" if model == "volume" else "graduated")
    made = Schedule(read.model, read.tiers, Decimal(fee), Decimal(minimum))
    prices = tuple(float(tier.unit_price) for tier in made.tiers)
    limits = tuple(float(tier.from_q) for tier in made.tiers[1:])
    if made.minimum:
        prices, limits = (0.0, *prices), (float(made.minimum) / prices[0], *limits)
    return Case(name, made, prices, limits)


CASES = (
    _case("graduated 1.20/.95/.78 at 50/200", DOCUMENTS),
    _case("free 100, then 1.20/.95 at 200", ("0:0", "100:1.20", "200:0.95")),
    _case("minimum fee 20", DOCUMENTS, minimum="20"),
    _case("minimum fee 40", DOCUMENTS, minimum="40"),
    _case("fixed fee 10", DOCUMENTS, fee="10"),
    _case("volume 1.20/.95/.78 at 50/200", DOCUMENTS, model="volume"),
    _case("rising 0.50/0.80 at 120", ("0:0.50", "120:0.80")),
    _case("one price 0.37", ("0:0.37",)),
    _case("five tiers", ("0:2", "40:1.6", "100:1.3", "160:1.1", "230:1")),
)


def bill(case: Case, n: int, rng: np.random.Generator) -> tuple[list[float], list[Decimal]]:
    """Quantities, uniform up to 300 with two decimals, and what each month costs, rounded to the cent."""
    quantities = np.maximum(np.round(rng.uniform(0, TOP, n), 2), 0.01).tolist()
    charged = [case.schedule.cost(Decimal(repr(q))).quantize(CENT, ROUND_HALF_UP) for q in quantities]
    return quantities, charged


def close(found: float | None, truth: float, share: float, beside: float = 0.0) -> bool:
    """Say whether a value is within a share of the truth."""
    return found is not None and abs(found - truth) <= share * max(abs(truth), beside)


def prices_right(found: list[float | None], case: Case) -> bool:
    """Say whether all prices are there, in order, within half a percent; a price of 0 within that of the largest."""
    top = max(case.prices) if min(case.prices) == 0 else 0.0
    return len(found) == len(case.prices) and all(
        close(f, p, 0.005, top if p == 0 else 0) for f, p in zip(found, case.prices, strict=True)
    )


def limits_right(answer: Inferred, case: Case) -> bool:
    """Say whether all limits are there within a percent; of volume prices, whether the brackets hold them."""
    starts = [(float(tier.from_q), tier.start) for tier in answer.tiers[1:]]
    if len(starts) != len(case.limits):
        return False
    if case.schedule.model == "volume":
        return all(s is not None and s[0] <= b <= s[1] for (_, s), b in zip(starts, case.limits, strict=True))
    return all(close(at, b, 0.01) for (at, _), b in zip(starts, case.limits, strict=True))


def wrong_identified(answer: Inferred, case: Case) -> int:
    """Count prices and limits that are called identified and are none of the truth, and a model that is not its."""
    wrong = 0
    top = max(case.prices)
    known = answer.model != "unknown"
    for k, tier in enumerate(answer.tiers if known else ()):
        wrong += tier.identified and not any(_price(tier, p, top) for p in case.prices)
        wrong += k > 0 and tier.start_identified and not any(_limit(tier, b, answer.model) for b in case.limits)
    kinds = {"one price"} if len(case.prices) == 1 else {case.schedule.model, "one price", "unknown"}
    return wrong + (known and answer.model not in kinds)


def _price(tier: Found, truth: float, top: float) -> bool:
    return close(None if tier.price is None else float(tier.price), truth, 0.005, top if truth == 0 else 0)


def _limit(tier: Found, truth: float, model: str) -> bool:
    if model == "volume":
        return tier.start is not None and tier.start[0] <= truth <= tier.start[1]
    return close(float(tier.from_q), truth, 0.01)


def segmented(q: Array, c: Array) -> tuple[list[float], list[float]]:
    """Fit continuous segmented least squares (Muggeo 2003) with as many limits as BIC wants, up to four."""
    order = np.argsort(q)
    q, c = q[order], c[order]
    best: tuple[float, list[float], list[float]] = (np.inf, [], [])
    for knots in range(5):
        for offset in (0.0, -0.5, 0.5):
            shift = offset / (knots + 1)
            at = _refined(q, c, np.quantile(q, np.clip(np.arange(1, knots + 1) / (knots + 1) + shift, 0.02, 0.98)))
            score, slopes = _scored(q, c, at)
            if score < best[0]:
                best = score, slopes, at.tolist()
    return best[1], best[2]


def _refined(q: Array, c: Array, knots: Array) -> Array:
    for _ in range(30):
        above = np.maximum(q[:, None] - knots, 0)
        beyond = -(q[:, None] > knots).astype(float)
        beta = np.linalg.lstsq(np.column_stack([np.ones_like(q), q, above, beyond]), c, rcond=None)[0]
        change, step = beta[2 : 2 + knots.size], beta[2 + knots.size :]
        if np.any(np.abs(change) < 1e-9):
            break
        knots = np.sort(np.clip(knots + step / change, q[0], q[-1]))
    return knots


def _scored(q: Array, c: Array, knots: Array) -> tuple[float, list[float]]:
    design = np.column_stack([np.ones_like(q), q, np.maximum(q[:, None] - knots, 0)])
    beta = np.linalg.lstsq(design, c, rcond=None)[0]
    n, rounding = q.size, 0.01**2 / 12
    if n <= design.shape[1] + knots.size:
        return np.inf, []
    rss = float(((c - design @ beta) ** 2).sum())
    score = n * np.log(rss / n + rounding) + (design.shape[1] + knots.size) * np.log(n)
    return score, np.cumsum(beta[1:]).tolist()


PEER = 5
"""The peer is run on one bill in so many: it takes most of the time."""


def row(case: Case, n: int, runs: int, seed: int = 0, peer: bool = True) -> tuple[float, ...]:
    """Shares of runs: prices, limits, model right, prices and limits identified; wrong claims; peer's two shares."""
    rng = np.random.default_rng([seed, n])
    got, wrong = np.zeros(5), 0
    peers: list[tuple[bool, bool]] = []
    kinds = {"one price"} if len(case.prices) == 1 else {case.schedule.model}
    for i in range(runs):
        quantities, costs = bill(case, n, rng)
        answer = infer(quantities, costs, [0.005] * n)
        found = [None if t.price is None else float(t.price) for t in answer.tiers]
        limits = sum(k > 0 and t.start_identified for k, t in enumerate(answer.tiers))
        got += (
            prices_right(found, case), limits_right(answer, case), answer.model in kinds,
            sum(t.identified for t in answer.tiers) / len(case.prices), limits / max(len(case.limits), 1),
        )  # fmt: skip
        wrong += wrong_identified(answer, case)
        if peer and i % PEER == 0:
            slopes, knots = segmented(np.array(quantities), np.array([float(x) for x in costs]))
            right = len(knots) == len(case.limits) and all(map(close, knots, case.limits, [0.01] * len(knots)))
            peers.append((prices_right(list(slopes), case), right))
    other = np.mean(peers, axis=0) if peers else np.full(2, np.nan)
    return (*(float(x) for x in got / runs), float(wrong), *(float(x) for x in other))


def months(schedules: Sequence[Schedule], rng: np.random.Generator) -> tuple[Month, ...]:
    """Months of 28 days, about 10 units a day, each day's line rounded to the cent."""
    made = []
    for k, schedule in enumerate(schedules):
        start = datetime(2025 + k // 12, k % 12 + 1, 1)  # noqa: DTZ001  # frames hold naive UTC
        so_far, quantities, charged = Decimal(0), [], [Decimal(0)]
        for _ in range(28):
            step = Decimal(repr(round(float(rng.lognormal(2.2, 0.4)), 2)))
            charged.append(charged[-1] + schedule.added(so_far, so_far + step).quantize(CENT, ROUND_HALF_UP))
            so_far += step
            quantities.append(float(so_far))
        days = tuple(start + timedelta(days=day) for day in range(28))
        made.append(Month(start, days, tuple(quantities), tuple(charged[1:]), tuple(range(1, 29))))
    return tuple(made)


def changes(runs: int) -> None:
    """Print how often a price change in the last of 12 months is found, on its day, and how often one is invented."""
    print("| all prices change by | found | on the right day | schedule right before |\n|---|---|---|---|")
    before = CASES[0].schedule
    for percent in ("0", "1", "2", "5", "-5", "20"):
        factor = 1 + Decimal(percent) / 100
        after = Schedule("graduated", tuple(Tier(t.from_q, t.unit_price * factor) for t in before.tiers))
        got = np.zeros(3)
        rng = np.random.default_rng(int(percent) + 10)
        for _ in range(runs):
            given = months([before] * 11 + [after], rng)
            found = follow(Item({}, {}, given, 0.005), given, 0.0).changes
            known = follow(Item({}, {}, given[:11], 0.005), given[:11], 0.0).inferred.schedule
            got += (
                bool(found), bool(found) and found[-1].since == given[-1].start,
                known is not None and known.tiers == before.tiers,
            )  # fmt: skip
        print(f"| {percent} % | " + " | ".join(f"{x / runs:.2f}" for x in got) + " |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    print("| bill | n | prices right | limits right | model right | prices identified | limits identified |", end="")
    print(" wrong | BIC: prices | BIC: limits |\n" + "|---" * 10 + "|")
    for case in CASES:
        for n in SIZES:
            got = row(case, n, runs)
            cells = [f"{x:.2f}" for x in got[:5]] + [f"{got[5]:.0f}"] + [f"{x:.2f}" for x in got[6:]]
            print(f"| {case.name} | {n} | " + " | ".join(cells) + " |", flush=True)
    print()
    changes(max(runs // 3, 1))


if __name__ == "__main__":
    main()
