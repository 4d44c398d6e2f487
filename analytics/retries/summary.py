"""Frames `summary` and `backoff` of a group: amplification, outcomes, waits against the time errors last."""

from typing import Any

import numpy as np
import polars as pl

from analytics.retries.backoff import Backoff, Limits, fit
from analytics.retries.recovery import survival_quantile
from analytics.retries.sequences import Group, waits
from analytics.stats.autocorrelation import effective_size, lag1
from analytics.stats.proportion import wilson

ALL = "(all)"
MOST_CODES = 25
"""Errors of a group that get a fit, the most frequent ones."""
BELOW = "cap below recovery time"


def summary_rows(group: Group) -> list[dict[str, Any]]:
    """One row for all logical requests, then one per error that a first attempt met, the most frequent first."""
    parts = [(ALL, group.sequences)]
    parts += [(code, group.sequences.filter(pl.col("error_code") == code)) for code in codes_of(group)]
    return [group.labels | {"error_code": code} | _row(part) for code, part in parts]


def codes_of(group: Group) -> list[str]:
    """Return the errors of first attempts, the most frequent first."""
    counted = group.sequences.drop_nulls("error_code").group_by("error_code").len()
    return counted.sort("len", "error_code", descending=[True, False])["error_code"].to_list()


def early(part: pl.DataFrame) -> pl.DataFrame:
    """Return the retried requests that gave up before the error was over."""
    return part.filter(
        pl.col("attempts") > 1, pl.col("ended_failed"), ~pl.col("succeeded"), pl.col("over") > pl.col("last_end")
    )


def early_low(part: pl.DataFrame) -> float | None:
    """Lower 95 % Wilson limit of their share of the retried requests; None where nothing was retried."""
    retried = part.filter(pl.col("attempts") > 1, pl.col("failed_at").is_not_null())
    return float(wilson(early(part).height, retried.height)[0]) if retried.height else None


def _row(part: pl.DataFrame) -> dict[str, Any]:
    retried = part.filter(pl.col("attempts") > 1)
    met = retried.filter(pl.col("failed_at").is_not_null())
    gave_up_early = early(part).height
    mean, low, high = amplification(part["attempts"].to_numpy().astype(np.float64))
    return {
        "sequences": part.height,
        "retried": retried.height,
        "attempts": int(part["attempts"].sum()),
        "amplification": mean,
        "amplification_low": low,
        "amplification_high": high,
        "recovered": met.filter("succeeded").height,
        "gave_up": met.filter(~pl.col("succeeded")).height,
        "gave_up_early": gave_up_early,
        "gave_up_early_ratio": gave_up_early / met.height if met.height else None,
        "gave_up_early_low": early_low(part),
        "told_by": ", ".join(sorted(set(retried["told_by"].drop_nulls()))) or None,
        "sure": retried["sure"].mean(),
    }


def amplification(
    attempts: "np.typing.NDArray[np.float64]",
) -> tuple[float | None, float | None, float | None]:
    """Mean attempts of logical requests in order of time, with 95 % limits, never below 1.

    Retries come in waves: the number of requests is reduced by their lag-1 autocorrelation (Bartlett 1935).
    """
    from scipy.stats import t

    if not attempts.size:
        return None, None, None
    mean = float(attempts.mean())
    n = effective_size(attempts.size, lag1(attempts), 1.0)
    if attempts.size < 2 or n <= 2:
        return mean, None, None
    half = float(t.ppf(0.975, n - 1)) * float(attempts.std(ddof=1)) / float(np.sqrt(n))
    return mean, max(1.0, mean - half), mean + half


def backoff_rows(group: Group, resamples: int, seed: int) -> list[dict[str, Any]]:
    """One row per error that was retried."""
    made = []
    for code in codes_of(group)[:MOST_CODES]:
        part = group.sequences.filter(pl.col("error_code") == code, pl.col("attempts") > 1)
        if part.height:
            found = fit(waits(group.attempts, part["sequence"].to_list()), resamples, seed)
            made.append(group.labels | {"error_code": code} | _fitted(found, part))
    return made


def _fitted(found: Backoff, part: pl.DataFrame) -> dict[str, Any]:
    seen = part["over"].is_not_null().to_numpy()
    until = part.select(pl.coalesce("over", "last_end")).to_series().to_numpy()
    times = (until - part["failed_at"].to_numpy()) / 1e6
    middle, tail = (survival_quantile(times, seen, q) for q in (0.5, 0.99))
    gave_up = part.filter(~pl.col("succeeded"))
    below = found.cap is not None and middle is not None and found.cap.high < middle
    return {
        **_limits("base", found.base, "_s"),
        **_limits("factor", found.factor, ""),
        **_limits("cap", found.cap, "_s"),
        "jitter": found.jitter,
        "gaps": found.gaps,
        "gives_up_after": gave_up["attempts"].median(),
        "recovery_p50_s": middle,
        "recovery_p99_s": tail,
        "recoveries": int(seen.sum()),
        "verdict": BELOW if below and early(part).height else found.verdict,
    }


def _limits(name: str, found: Limits | None, unit: str) -> dict[str, Any]:
    if found is None:
        return {}
    return {f"{name}{unit}": found.value, f"{name}_low{unit}": found.low, f"{name}_high{unit}": found.high}
