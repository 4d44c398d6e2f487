"""Engines by files of load tests: the figures of each stage, and the best rate that keeps the P99 within a limit."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from analytics.engines import EnginesParams
from analytics.engines.measured import error_share

RUN = ("run", "tool", "engine", "model")
KEPT_UP = 0.95
"""Share of the rate asked for below which a tool did not send the load that its stage is named after."""
MOST_FAILED = 0.01
"""Share of failed requests above which a stage is no good, however quick the others were."""
WHOLE = "summary"
ITL = {
    "vllm_bench": "each gap between chunks",
    "inference_perf": "each gap between tokens or chunks",
    "aiperf": "mean of a request: what others call TPOT",
    "guidellm": "mean of a request: what others call TPOT",
    "llmperf": "none; its own counts the first token's wait, so it is not shown",
}
_VALUES = {
    "n_good": "requests_successful", "failed": "requests_failed",
    "requests_per_second": "throughput_requests_per_second",
    "output_tokens_per_second": "throughput_output_tokens_per_second",
}  # fmt: skip


def stages(figures: pl.DataFrame) -> list[dict[str, Any]]:
    """Return a row per run and stage with latencies or rates of requests, in order of the rate."""
    known = figures.drop_nulls(["run", "metric", "statistic", "value"]).filter(pl.col("value").is_finite())
    found = []
    for part in known.partition_by("run", "stage", "tool", "ts", maintain_order=True):
        about = part.row(0, named=True)
        told = {(m, s): v for m, s, v in part.select("metric", "statistic", "value").iter_rows()}
        if any(metric in ("ttft_s", "e2e_s", "itl_s", "tpot_s", "requests_successful") for metric, _ in told):
            found.append(_stage(about, told))
    return sorted(found, key=lambda row: (row["run"], row["request_rate"] or float("inf"), row["stage"] or ""))


def _stage(about: Mapping[str, Any], told: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    plain = {name: _first(told, metric, ("value", "mean")) for name, metric in _VALUES.items()}
    good, failed = plain.pop("n_good"), plain["failed"]
    n = None if good is None else good + (failed or 0)
    latencies = {
        f"{name}_{q}_s": told.get((f"{name}_s", q))
        for name in ("ttft", "itl", "tpot", "e2e")
        for q in ("p50", "p95", "p99")
    }
    # Without a word on failures none can be claimed: the ratio stays null.
    shares = error_share(failed, n) if n and failed is not None else error_share(0, 0)
    return {
        **{name: about[name] for name in (*RUN, "stage", "request_rate", "concurrency")},
        "sent_per_second": _first(told, "achieved_request_rate_per_second", ("value",)),
        **plain,
        "failed": None if failed is None else round(failed),
        "n": None if n is None else round(n),
        **shares,
        "input_tokens": told.get(("input_tokens", "mean")),
        "output_tokens": told.get(("output_tokens", "mean")),
        **(latencies if good != 0 else dict.fromkeys(latencies)),
        "itl_is": ITL.get(about["tool"] or ""),
    }


def _first(told: Mapping[tuple[str, str], float], metric: str, statistics: tuple[str, ...]) -> float | None:
    return next((told[metric, s] for s in statistics if (metric, s) in told), None)


def best_rates(rows: Sequence[dict[str, Any]], params: EnginesParams) -> list[dict[str, Any]]:
    """Return per run the highest stage whose P99 is within the limit; a summary over stages is no stage."""
    column = params.measure.removesuffix("_s") + "_p99_s"
    runs: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["stage"] != WHOLE and row["request_rate"] is not None and row[column] is not None:
            runs.setdefault(tuple(row[name] for name in RUN), []).append(row)
    return [dict(zip(RUN, key, strict=True)) | _best(found, column, params) for key, found in runs.items()]


def _best(found: list[dict[str, Any]], column: str, params: EnginesParams) -> dict[str, Any]:
    levels = sorted(found, key=lambda row: float(row["request_rate"]))
    good = [i for i, row in enumerate(levels) if _within(row, column, params.p99_limit)]
    best = levels[good[-1]] if good else None
    above = levels[(good[-1] + 1) if good else 0 :]
    return {
        "stages": len(levels),
        "best_rate": best and best["request_rate"],
        "p99_s": best and best[column],
        "achieved_per_second": best and best["requests_per_second"],
        "next_rate": above[0]["request_rate"] if above else None,
        "next_p99_s": above[0][column] if above else None,
        "note": _note(levels, good, params) or None,
    }


def _within(row: Mapping[str, Any], column: str, limit: float) -> bool:
    return row[column] <= limit and (row["error_ratio"] or 0.0) <= MOST_FAILED


def _note(levels: Sequence[Mapping[str, Any]], good: list[int], params: EnginesParams) -> str:
    said = []
    if not good:
        return f"no stage has P99 <= {params.p99_limit:g} s and at most {MOST_FAILED:.0%} failed"
    best = levels[good[-1]]
    if good[-1] == len(levels) - 1:
        said.append("the highest rate tested: more may be possible")
    if good != list(range(len(good))):
        said.append("a lower rate is beyond the limit")
    done = best["requests_per_second"]
    if done is not None and done < KEPT_UP * best["request_rate"]:
        said.append(f"completed only {done:.4g} requests per second")
    if best["error_ratio"] is None:
        said.append("failures are not stated")
    return "; ".join(said)
