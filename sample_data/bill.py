"""The bill of the simulated fleet: forty-two days of hourly charge lines in FOCUS 1.0, with labelled changes of cost.

What runs all the time costs the same every hour; what follows traffic has a day and a week; a batch job costs on
Sundays. Egress is billed by the day at graduated prices that start again each month. A credit and a tax mislead.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sample_data import fleet
from sample_data.incidents import Incident

Floats = NDArray[np.float64]

HOURS = 1_000
START = fleet.END - timedelta(hours=HOURS)
ACCOUNT, CURRENCY = "100000000001", "USD"
_PERSISTENCE = 0.7  # of the noise, from one hour to the next
_SUNDAY = 6


@dataclass(frozen=True, slots=True)
class Meter:
    """One thing that is charged: `hourly` units at `price` USD each.

    swing: how far day and week move it, as a share. noise: standard deviation of its logarithm. steps: (hour of START,
    factor of the quantity) and price_steps, from that hour on; growth: (hour, share per week) from that hour on.
    """

    service: str
    provider: str
    product: str
    region: str
    sku: str
    unit: str
    hourly: float
    price: float
    swing: float = 0.0
    noise: float = 0.0
    steps: tuple[tuple[int, float], ...] = ()
    price_steps: tuple[tuple[int, float], ...] = ()
    growth: tuple[int, float] | None = None
    sundays: bool = False


def _hour(text: str) -> int:
    return int((datetime.fromisoformat(text) - START.replace(tzinfo=None)).total_seconds() // 3600)


_CHEAPER = _hour("2026-11-27T09:00")
_REINDEX = _hour("2026-11-24T13:00"), _hour("2026-11-24T16:00")
_PRICIER = _hour("2026-11-29T00:00")
_CREEP = _hour("2026-11-14T00:00")

METERS = (
    Meter("chat-api", "AWS", "EC2", "us-east-1", "gpu-instance", "Hours", 2, 4.20, price_steps=((_PRICIER, 1.25),)),
    Meter("chat-api", "AWS", "ELB", "us-east-1", "lcu", "LCU-Hours", 32, 0.008, swing=0.35, noise=0.05),
    Meter("chat-api", "AWS", "S3", "us-east-1", "requests-tier1", "Requests", 90_000, 5e-6, swing=0.35, noise=0.05),
    Meter("code-assist", "AWS", "EC2", "us-east-1", "gpu-instance-spot", "Hours", 2, 2.60, noise=0.02),
    Meter("code-assist", "AWS", "EC2", "us-east-1", "index-cpu", "Hours", 40, 0.05, swing=0.3, noise=0.05,
          growth=(_CREEP, 0.40)),
    Meter("rag-search", "GCP", "Compute Engine", "europe-west4", "gpu-instance", "Hours", 4, 3.90),
    Meter("rag-search", "GCP", "Vector Search", "europe-west4", "queries", "Queries", 52_000, 6e-5, swing=0.4,
          noise=0.06, steps=((_REINDEX[0], 5.0), (_REINDEX[1], 1.0))),
    Meter("rag-search", "GCP", "Batch", "europe-west4", "embedding-job", "Hours", 16, 3.90, noise=0.02, sundays=True),
    Meter("support-bot", "ExampleAI", "Inference API", "global", "m-large-input", "Tokens", 1.1e6, 2.5e-6, swing=0.45,
          noise=0.05, steps=((_CHEAPER, 3.0),)),
    Meter("support-bot", "ExampleAI", "Inference API", "global", "m-large-output", "Tokens", 1.5e5, 1e-5, swing=0.45,
          noise=0.05, steps=((_CHEAPER, 3.0),)),
    Meter("support-bot", "ExampleAI", "Inference API", "global", "m-mini-input", "Tokens", 9.5e6, 1.5e-7, swing=0.45,
          noise=0.05, steps=((_CHEAPER, 0.76),)),
    Meter("support-bot", "ExampleAI", "Inference API", "global", "m-mini-output", "Tokens", 1.2e6, 6e-7, swing=0.45,
          noise=0.05, steps=((_CHEAPER, 0.76),)),
)  # fmt: skip
"""Prices and quantities are shapes, not anybody's list."""

EGRESS_GB, EGRESS_TIERS = 85.0, ((0.0, 0.12), (600.0, 0.09), (1500.0, 0.05))
"""Egress of rag-search a day, and its price per GB from so many GB of a month on."""

COLUMNS = (
    "BillingAccountId", "BillingCurrency", "BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart",
    "ChargePeriodEnd", "ChargeCategory", "ChargeClass", "ChargeDescription", "ServiceName", "ProviderName", "RegionId",
    "SkuId", "ConsumedQuantity", "ConsumedUnit", "BilledCost", "EffectiveCost", "Tags",
)  # fmt: skip


def incidents() -> tuple[Incident, ...]:
    """Return the labelled changes of cost; what lasts ends with the bill."""
    told = (
        ("bill-1", "cost_spike", "rag-search", _REINDEX[0], _REINDEX[1],
         "rag-search: a reindex ran against production for three hours: five times the vector queries"),
        ("bill-2", "cost_level", "support-bot", _CHEAPER, HOURS,
         "support-bot: the router sends three times as many requests to m-large; the mix changed, not their number"),
        ("bill-3", "cost_level", "chat-api", _PRICIER, HOURS, "chat-api: an hour of its GPU instances costs 25 % more"),
        ("bill-4", "cost_trend", "code-assist", _CREEP, HOURS,
         "code-assist: the indexer needs 40 % more CPU hours each week"),
    )  # fmt: skip
    return tuple(
        Incident(id_, kind, service, _at(start), _at(end), _at(end), None, text)
        for id_, kind, service, start, end, text in told
    )


def write(seed: int) -> bytes:
    """Return the bill as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_lines(seed))
    return out.getvalue().encode()


def quantities(meter: Meter, rng: np.random.Generator) -> Floats:
    """Units per hour, rounded so that another processor's last bit changes nothing."""
    hour = np.arange(HOURS)
    day = np.array([_at(int(h)).weekday() for h in hour])
    clock = (hour + START.hour) % 24
    shape = 1 + meter.swing * (np.cos(2 * np.pi * (clock - 14) / 24) - 0.5 * (day >= 5))
    amount = meter.hourly * shape * np.exp(_noise(meter.noise, rng))
    for (first, factor), (end, _) in pairwise((*meter.steps, (HOURS, 1.0))):
        amount[first:end] *= factor
    if meter.growth is not None:
        first, weekly = meter.growth
        amount[first:] *= (1 + weekly) ** (np.arange(HOURS - first) / 168)
    if meter.sundays:
        amount[(day != _SUNDAY) | (clock != 2)] = 0.0
    return np.asarray(amount.round(3))


def _noise(sigma: float, rng: np.random.Generator) -> Floats:
    """AR(1) noise of that standard deviation."""
    draws = rng.normal(0, 1, HOURS).round(6) * sigma * np.sqrt(1 - _PERSISTENCE**2)
    out = np.zeros(HOURS)
    for i in range(HOURS):
        out[i] = (_PERSISTENCE * out[i - 1] if i else 0.0) + draws[i]
    return out


def _lines(seed: int) -> Iterator[list[object]]:
    for number, meter in enumerate(METERS):
        price = np.full(HOURS, meter.price)
        for first, factor in meter.price_steps:
            price[first:] = meter.price * factor
        for hour, amount in enumerate(quantities(meter, np.random.default_rng([seed, 4, number]))):
            if amount:
                yield _line(meter, hour, 1, amount, round(amount * price[hour], 6))
    yield from _egress(np.random.default_rng([seed, 4, len(METERS)]))
    plain = Meter("", "AWS", "Support", "us-east-1", "support", "", 0, 0)
    yield _line(plain, _hour("2026-11-20T10:00"), 1, "", -412.5, "Credit")
    yield _line(plain, _hour("2026-11-01T00:00"), 1, "", 61.37, "Tax")


def _egress(rng: np.random.Generator) -> Iterator[list[object]]:
    """Daily lines at graduated prices, to the cent; a month starts at the first price again."""
    meter = Meter("rag-search", "GCP", "Networking", "europe-west4", "egress", "GB", EGRESS_GB, 0)
    used, month = 0.0, 0
    for hour in range((24 - START.hour) % 24, HOURS - 23, 24):
        if _at(hour).month != month:
            used, month = 0.0, _at(hour).month
        amount = round(float(EGRESS_GB * np.exp(rng.normal(0, 0.1))), 1)
        yield _line(meter, hour, 24, amount, round(graduated(used + amount) - graduated(used), 2))
        used += amount


def graduated(quantity: float) -> float:
    """Cost of so many GB in one month."""
    edges = [*(edge for edge, _ in EGRESS_TIERS), float("inf")]
    return sum(
        price * max(0.0, min(quantity, end) - start)
        for (start, price), end in zip(EGRESS_TIERS, edges[1:], strict=True)
    )


def _line(meter: Meter, hour: int, hours: int, quantity: object, cost: float, category: str = "Usage") -> list[object]:
    month = _at(hour).replace(day=1, hour=0)
    following = (month + timedelta(days=32)).replace(day=1)
    stamps = [f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (month, following, _at(hour), _at(hour + hours))]
    tags = f'{{"service": "{meter.service}", "env": "simulation"}}' if meter.service else ""
    return [
        ACCOUNT, CURRENCY, *stamps, category, "", "", meter.product, meter.provider, meter.region, meter.sku,
        quantity, meter.unit, cost, cost, tags,
    ]  # fmt: skip


def _at(hour: int) -> datetime:
    return START + timedelta(hours=hour)
