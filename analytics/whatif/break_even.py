"""GPUs of one's own against paying per request: from how many requests a year they cost less."""

import math
from typing import Any

import numpy as np
import polars as pl

from analytics.whatif import HOURS_OF_YEAR, WhatifParams
from analytics.whatif.assumption import amount
from analytics.whatif.outcome import cents
from analytics.whatif.scene import Scene
from analytics.whatif.yearly import MODEL, parts


def break_even(
    of: Scene, hours: pl.DataFrame, params: WhatifParams, currency: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows of the frame `break_even`, none where no price of a GPU is given, and what is to say."""
    price, rate = (
        amount("gpu_per_hour", params.gpu_per_hour),
        amount("requests_per_gpu_hour", params.requests_per_gpu_hour),
    )
    if price is None:
        return [], []
    instead, requests = parts(of.scenario).get(MODEL), of.scenario["requests_per_year"]
    if instead is None or not requests:
        return [], ["no break-even: what the requests cost without GPUs of one's own is not known"]
    gpus = _gpus(of, hours, params, rate)
    if gpus is None:
        return [], ["no break-even: --gpus, or --requests-per-gpu-hour, is not given"]
    yearly = gpus * price * HOURS_OF_YEAR
    capacity = None if rate is None else gpus * rate * HOURS_OF_YEAR
    even = yearly / (instead / requests) if instead > 0 else None
    draws = parts(of.drawn[1])[MODEL]
    row = {
        "option": f"{gpus} GPU{'' if gpus == 1 else 's'} at {price:g} {currency} an hour",
        "currency": currency, "gpus": gpus, "yearly": cents(yearly), "instead_of": cents(instead),
        "break_even_requests": even, "capacity": capacity,
        "chance": float(np.mean(draws > yearly)) if np.ndim(draws) else None,
        "verdict": _verdict(yearly, instead, even, capacity, requests * (1 - (of.scenario["hit_ratio"] or 0.0))),
    }  # fmt: skip
    return [row], ["GPUs of one's own: rent or depreciation only, not staff, power or idle spares"]


def _gpus(of: Scene, hours: pl.DataFrame, params: WhatifParams, rate: float | None) -> int | None:
    """As many as given; else as many as the busiest hour of the window needs, at the requests of the scenario."""
    wanted = amount("gpus", params.gpus)
    if wanted is not None:
        return math.ceil(wanted)
    if rate is None:
        return None
    busiest = hours.group_by("bucket").agg(pl.col("requests").sum())["requests"].max() if hours.height else None
    before, after = of.baseline["requests_per_year"], of.scenario["requests_per_year"] or 0.0
    missed = 1 - (of.scenario["hit_ratio"] or 0.0)
    if isinstance(busiest, int) and before:
        seen = 1 - (of.baseline["hit_ratio"] or 0.0)
        return max(math.ceil(busiest * (after * missed) / (before * seen) / rate), 1)
    return max(math.ceil(after * missed / HOURS_OF_YEAR / rate), 1)


def _verdict(yearly: float, instead: float, even: float | None, capacity: float | None, asked: float) -> str:
    if capacity is not None and asked > capacity:
        return "too few: they cannot serve the requests of the scenario"
    if even is None:
        return "the requests cost nothing without them"
    if capacity is not None and even > capacity:
        return "never: at the price of a request they would have to serve more than they can"
    return "they cost less" if yearly < instead else "they cost more at this many requests"
