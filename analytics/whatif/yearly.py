"""The formula: what a year costs, by parts.

A request that a cache does not answer costs the model; any may meet a cold start. Both terms grow with the requests:

    yearly = requests x (1 - hit) x cost of a request + requests x share x delay x price of the machine

With `concurrency` the time of requests on machines is added: requests x (1 - hit) x seconds x price / concurrency.
"""

from collections.abc import Mapping
from typing import Any

MODEL, COLD, SERVING, TOTAL = "model", "cold_starts", "serving", "total"
NEEDS = {
    MODEL: ("requests_per_year", "hit_ratio", "base_cost"),
    COLD: ("requests_per_year", "cold_start_share", "cold_start_s", "resource_per_hour"),
    SERVING: ("requests_per_year", "hit_ratio", "request_s", "resource_per_hour", "concurrency"),
}


def parts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Yearly cost by part, of numbers or arrays; a part whose inputs are not all known is missing."""
    have = {part for part, names in NEEDS.items() if all(values.get(name) is not None for name in names)}
    made: dict[str, Any] = {}
    if MODEL in have:
        made[MODEL] = values["requests_per_year"] * (1 - values["hit_ratio"]) * values["base_cost"]
    if COLD in have:
        waited = values["requests_per_year"] * values["cold_start_share"] * values["cold_start_s"]
        made[COLD] = waited * values["resource_per_hour"] / 3600
    if SERVING in have:
        busy = values["requests_per_year"] * (1 - values["hit_ratio"]) * values["request_s"]
        made[SERVING] = busy / values["concurrency"] * values["resource_per_hour"] / 3600
    return made


def total(values: Mapping[str, Any]) -> Any:
    """Sum of the parts."""
    return sum(parts(values).values())
