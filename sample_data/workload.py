"""Arrivals and requests of a simulated service: when they come, how long they are, what befalls them.

Draws are rounded (microseconds, millionths) before anything is computed from them, so the last bit of another
processor's exp() cannot change the outcome.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sample_data import fleet, scenario
from sample_data.fleet import Lengths, Service

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_DAILY_SWING = 0.15
_PEAK_HOUR = 14.5
_NOISE_SIGMA = 0.18  # batch composition and kernel choice: prefill of equal prompts differs by about a fifth
_STALL_RATIO = 0.03  # requests that meet a stall (allocator, page fault, retransmission)
_STALL_SCALE_S = 0.06
_STALL_ALPHA = 2.5  # Pareto: heavy tail, finite variance


@dataclass(frozen=True, slots=True)
class Workload:
    """One array per request field, ordered by arrival.

    arrival_s: after the window's start. prefix_tokens: shared with an earlier prompt. cache_draw: uniform, decides with
    the cache's state whether the prefix is still there. prefill_noise: factor. stall_s: added to prefill. tail: Pareto
    factor (at least 1) by which PCIe contention strikes. error: index into `codes`, -1 for none.
    """

    arrival_s: Floats
    input_tokens: Integers
    output_tokens: Integers
    prefix_tokens: Integers
    cache_draw: Floats
    prefill_noise: Floats
    stall_s: Floats
    tail: Floats
    error: Integers
    codes: tuple[str, ...]


def rate_rps(service: Service, at_s: Floats) -> Floats:
    """Arrivals per second at times after the window's start: daily shape times the bursts of the scenario."""
    hours = fleet.WINDOW.start.hour + at_s / 3600
    base = service.rate_rps * (1 + _DAILY_SWING * np.cos((hours - _PEAK_HOUR) * np.pi / 12))
    factors = [(d.bounds_s, d.rate_factor) for d in scenario.of_service(service)]
    return reduce(lambda rate, f: np.where(_within(at_s, f[0]), rate * f[1], rate), factors, base)


def draw(service: Service, rng: np.random.Generator) -> Workload:
    """Draw the requests of one service over the whole window."""
    at_s = _arrivals(service, rng)
    n = at_s.size
    inputs = _lengths(service.prompt, n, rng)
    outputs = _lengths(service.output, n, rng)
    for d in scenario.of_service(service):
        inside = _within(at_s, d.bounds_s)
        inputs = np.where(inside, _lengths(d.prompt or service.prompt, n, rng), inputs)
        outputs = np.where(inside, _lengths(d.output or service.output, n, rng), outputs)
    codes, error = _errors(service, at_s, rng)
    stalled = rng.random(n) < _STALL_RATIO
    return Workload(
        arrival_s=at_s,
        input_tokens=inputs,
        output_tokens=outputs,
        prefix_tokens=(inputs * service.shared_ratio).astype(np.int64),
        cache_draw=_rounded(rng.random(n)),
        prefill_noise=_rounded(rng.lognormal(0.0, _NOISE_SIGMA, n)),
        stall_s=_rounded(np.where(stalled, _STALL_SCALE_S * (1 + rng.pareto(_STALL_ALPHA, n)), 0.0)),
        tail=_rounded(1 + rng.pareto(_STALL_ALPHA, n)),
        error=error,
        codes=codes,
    )


def _within(at_s: Floats, bounds: tuple[float, float]) -> NDArray[np.bool_]:
    return (at_s >= bounds[0]) & (at_s < bounds[1])


def _rounded(values: Floats) -> Floats:
    return np.round(values, 6)


def _arrivals(service: Service, rng: np.random.Generator) -> Floats:
    """Non-homogeneous Poisson process by thinning (Lewis and Shedler 1979)."""
    span_s = fleet.WINDOW.span.total_seconds()
    top = float(rate_rps(service, np.arange(0.0, span_s, 30.0)).max()) * 1.01
    candidates = np.sort(_rounded(rng.random(rng.poisson(top * span_s)) * span_s))
    kept = rng.random(candidates.size) * top < rate_rps(service, candidates)
    return np.unique(candidates[kept])


def _lengths(lengths: Lengths, n: int, rng: np.random.Generator) -> Integers:
    drawn = np.rint(lengths.median * _rounded(rng.lognormal(0.0, lengths.sigma, n)))
    return np.clip(drawn, lengths.low, lengths.high).astype(np.int64)


def _errors(service: Service, at_s: Floats, rng: np.random.Generator) -> tuple[tuple[str, ...], Integers]:
    """Everyday failures, overlaid by the refusals of an error storm."""
    codes = ["HTTP_500", "TIMEOUT"]
    kind = rng.integers(0, len(codes), at_s.size)
    error = np.where(rng.random(at_s.size) < scenario.BASE_ERROR_RATIO, kind, -1)
    for d in scenario.of_service(service):
        struck = _within(at_s, d.bounds_s) & (rng.random(at_s.size) < d.error_ratio)
        if d.error_code:
            error = np.where(struck, len(codes), error)
            codes.append(d.error_code)
    return tuple(codes), error.astype(np.int64)
