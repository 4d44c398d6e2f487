"""The analyses, by name. An analysis is one module with an `ANALYSIS` and one line here."""

from importlib import import_module
from typing import Any

from analytics.analysis import Analysis
from store.errors import UsageError
from store.nearest import nearest

ANALYSES = {
    "overview": "Requests, errors, latency and tokens per service; targets up or down.",
    "p99": "Which drivers the tail latency is associated with, and since when it is unusual.",
    "latency": "In which segment and on which span the time of requests goes; cold starts; how waiting grows.",
    "retries": "Attempts that are one request: amplification, storms, duplicates, back-off against recovery.",
    "anomalies": "Metrics and requests that left what is usual for them, since when, and why this says so.",
    "stream": "How evenly tokens arrive: jitter, stalls, time per token, goodput, the worst streams.",
    "engines": "Serving engines side by side: latency, rates, errors, speed by prompt length, load tests.",
    "errors": "Errors that stand out by place, code and time; outages; how to sample traces.",
    "ab": "Whether a variant is slower, in its body or its tail, keeps its SLA, and how sure that is.",
    "slo": "How much of each error budget is left and how fast it burns.",
    "factorial": "What two factors and their interaction do to the mean and the spread of a latency.",
    "connections": "How often connections are reused, what handshakes cost, which concurrency is cheapest.",
    "whatif": "What a year costs, and would with another hit ratio, price, model, cold start or machine.",
    "cache": "How polluted prefix caches are, what each size would hit, how evenly their engines are used.",
    "cost": "What things cost by hour and day, where that drifts and why, the month's forecast, budgets.",
    "tokens": "What tokens cost by model, request and tenant, against the bill; what has no price; models swapped.",
    "tiers": "Which prices by quantity a bill follows, how sure that is, and whether a price changed.",
    "pareto": "Which configurations no other one beats on two or three objectives, and how sure that is.",
}


def load(name: str) -> Analysis[Any]:
    """Import and return an analysis. Raises UsageError with the nearest name for an unknown one."""
    if name not in ANALYSES:
        raise UsageError(f"there is no analysis {name!r}", nearest(name, ANALYSES, "analyses: " + ", ".join(ANALYSES)))
    analysis: Analysis[Any] = import_module(f"analytics.{name}").ANALYSIS
    return analysis


def load_all() -> list[Analysis[Any]]:
    """All analyses, in catalog order."""
    return [load(name) for name in ANALYSES]
