"""Advice on sampling: keep every failure and every slow trace, and of the rest what the tier of a service is worth."""

from typing import Any

import polars as pl
import yaml

from analytics.errors import ErrorsParams
from analytics.errors.meanings import ABORT, CUT
from analytics.errors.outcomes import Outcomes
from store.errors import UsageError
from store.window import Window

TIERS = {"gold": 0.10, "silver": 0.02, "bronze": 0.005}
"""Share of unremarkable traces kept by tier."""
FEWEST_A_DAY = 1000.0
"""Unremarkable traces a day below which the share is raised: fewer cannot tell an ordinary day."""
SLOWEST = 0.99
UNMARKED = (ABORT, CUT)
"""Outcomes that no attribute of a span tells a Collector: kept at the share of the others."""
FAILED_NUMBERS = {
    "http.response.status_code": (400, 599), "http.status_code": (400, 599), "rpc.grpc.status_code": (1, 16)
}  # fmt: skip
"""Numbers that say failure where the span's status does not: a server leaves it unset for a 4xx (HTTP conventions)."""
FEWEST_HELD, WAITS_HELD = 50_000, 4
"""Traces the Collector holds at least (its default), and how many waits' worth of mean traffic, for peaks."""


def tiers(params: ErrorsParams) -> dict[str, str]:
    """Read SERVICE=TIER. Raises UsageError for a tier that is none."""
    made = {}
    for text in params.tiers:
        service, _, tier = text.rpartition("=")
        if not service or tier not in TIERS:
            raise UsageError(f"tiers cannot be {text!r}", "SERVICE=gold, silver or bronze")
        made[service] = tier
    return made


def advice(found: Outcomes, params: ErrorsParams, window: Window) -> list[dict[str, Any]]:
    """Return a row per service; the slow threshold is null where rollups were read."""
    chosen, days = tiers(params), window.span.total_seconds() / 86400
    rows = []
    for (service,), part in sorted(found.counts.group_by("service"), key=lambda item: str(item[0][0])):
        total = int(part["n"].sum())
        failed = int(part.drop_nulls("code").filter(~pl.col("code").is_in(UNMARKED))["n"].sum())
        slow = (
            found.requests.filter(pl.col("service") == service)["e2e_s"]
            if not found.rolled
            else pl.Series([], dtype=pl.Float64)
        )
        tier = chosen.get(str(service), "silver")
        a_day, error_ratio = total / days, failed / total
        others = a_day * (1 - error_ratio)
        keep = min(1.0, max(TIERS[tier], FEWEST_A_DAY / others if others else 1.0))
        slower = others * (1 - SLOWEST) * (1 - keep)
        rows.append(
            {
                "service": service, "tier": tier, "requests_per_day": a_day, "error_ratio": error_ratio,
                "slow_s": slow.quantile(SLOWEST, "linear"), "keep_ratio": keep,
                "kept_per_day": a_day * error_ratio + others * keep + slower,
            }
        )  # fmt: skip
    return rows


def policy(rows: list[dict[str, Any]]) -> str:
    """Write the configuration of the tail_sampling processor (OpenTelemetry Collector, contrib)."""
    policies: list[dict[str, Any]] = [
        {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}},
        {
            "name": "failed-error.type",
            "type": "string_attribute",
            "string_attribute": {"key": "error.type", "values": [".+"], "enabled_regex_matching": True},
        },
    ]
    for key, (low, high) in FAILED_NUMBERS.items():
        number = {"key": key, "min_value": low, "max_value": high}
        policies.append({"name": f"failed-{key}", "type": "numeric_attribute", "numeric_attribute": number})
    for row in rows:
        service = row["service"] or "unknown_service"
        of = {
            "name": f"of-{service}",
            "type": "string_attribute",
            "string_attribute": {"key": "service.name", "values": [service]},
        }
        if row["slow_s"]:
            slow = {
                "name": f"slow-{service}-ms",
                "type": "latency",
                "latency": {"threshold_ms": max(round(row["slow_s"] * 1000), 1)},
            }
            policies.append({"name": f"slow-{service}", "type": "and", "and": {"and_sub_policy": [of, slow]}})
        share = {
            "name": f"share-{service}-percent",
            "type": "probabilistic",
            "probabilistic": {"sampling_percentage": round(100 * row["keep_ratio"], 3)},
        }
        policies.append({"name": f"share-{service}", "type": "and", "and": {"and_sub_policy": [of, share]}})
    wait_s = max([30.0, *(2 * row["slow_s"] for row in rows if row["slow_s"])])
    a_second = sum(row["requests_per_day"] for row in rows) / 86400
    held = max(FEWEST_HELD, round(a_second * wait_s * WAITS_HELD))
    processor = {"decision_wait": f"{round(wait_s)}s", "num_traces": held, "policies": policies}
    text: str = yaml.safe_dump({"processors": {"tail_sampling": processor}}, sort_keys=False, width=120)
    return text
