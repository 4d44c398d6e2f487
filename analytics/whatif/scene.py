"""One group's baseline and scenario: every input with its value, its draws, and where it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.whatif import NUMBERS
from analytics.whatif.assumption import Assumption
from analytics.whatif.blocks import Estimate
from analytics.whatif.prices import Rates
from analytics.whatif.usage import Changed, Pair, Usage

Array = NDArray[np.float64]
UNITS = {
    "requests_per_year": "requests", "hit_ratio": "ratio", "prefix_hit_ratio": "ratio", "input_tokens": "tokens",
    "output_tokens": "tokens", "cold_start_share": "ratio", "cold_start_s": "s", "request_s": "s",
    "concurrency": "requests",
}  # fmt: skip
OF_TOKENS = ("prefix_hit_ratio", "input_tokens", "output_tokens")
MONEY_OF = {"base_cost": "a request", "resource_per_hour": "an hour"}


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the cost of a request is made of: usage, rates of both sides, and the scenario's factor of price."""

    usage: Usage
    before: Mapping[Pair, Rates]
    after: Mapping[Pair, Rates]
    price: float

    def cost(
        self, values: Mapping[str, float | None], measured: Mapping[str, Estimate], scenario: bool
    ) -> Estimate | None:
        """Cost of a request with these tokens and this share of the prompt cached."""

        def factor(name: str) -> float:
            base, value = measured.get(name), values.get(name)
            return value / base.value if base is not None and value is not None and base.value > 0 else 1.0

        own, prefix = measured.get("prefix_hit_ratio"), values.get("prefix_hit_ratio")
        change = Changed(
            factor("input_tokens"), factor("output_tokens"), self.price if scenario else 1.0,
            None if prefix is None else (own.value if own is not None else 0.0, prefix),
        )  # fmt: skip
        return self.usage.cost(self.after if scenario else self.before, change)


@dataclass(frozen=True, slots=True)
class Scene:
    """Values and draws of both sides; `tokens` is None where a request's cost was given or taken from a bill."""

    baseline: dict[str, float | None]
    scenario: dict[str, float | None]
    measured: dict[str, Estimate]
    tokens: Tokens | None
    drawn: tuple[dict[str, Any], dict[str, Any]]

    def cost_at(self, name: str, factor: float) -> dict[str, float | None]:
        """Values of the scenario with one input multiplied; `token_price` multiplies what tokens cost."""
        values = dict(self.scenario)
        if name == "token_price":
            values["base_cost"] = (values["base_cost"] or 0.0) * factor
            return values
        value = (values[name] or 0.0) * factor
        values[name] = min(value, 1.0) if UNITS.get(name) == "ratio" else value
        if name in OF_TOKENS and self.tokens is not None:
            found = self.tokens.cost(values, self.measured, scenario=True)
            values["base_cost"] = None if found is None else found.value
        return values


@dataclass(frozen=True, slots=True)
class Side:
    """Value of an input and its draws: an array, or the value itself where it is exact."""

    value: float | None
    draws: Any


NOTHING = Side(None, None)


def scene(
    measured: dict[str, Estimate],
    given: Mapping[str, Assumption],
    tokens: Tokens | None,
    size: int,
    seed: int,
    *,
    seen_at_model: bool,
) -> Scene:
    """Combine what is measured with what is given.

    With `seen_at_model` the requests measured are those that no cache answered: all are 1 / (1 - hit ratio) as many.
    """
    streams = dict(zip(NUMBERS, np.random.default_rng(seed).spawn(len(NUMBERS)), strict=True))
    sides = {name: _sides(measured.get(name), given.get(name), streams[name], size) for name in NUMBERS}
    if seen_at_model:
        sides["requests_per_year"] = _all_requests(sides, measured, given.get("requests_per_year"))
    baseline, scenario = ({name: pair[i] for name, pair in sides.items()} for i in (0, 1))
    if tokens is not None:
        rng = np.random.default_rng([seed, 1])
        costs = [
            tokens.cost({name: side.value for name, side in one.items()}, measured, scenario=later)
            for one, later in ((baseline, False), (scenario, True))
        ]
        z = rng.standard_t(costs[0].freedom if costs[0] else 1, size)
        baseline["base_cost"], scenario["base_cost"] = (_cost(cost, z) for cost in costs)
    return Scene(
        {name: side.value for name, side in baseline.items()},
        {name: side.value for name, side in scenario.items()},
        measured,
        tokens,
        ({n: side.draws for n, side in baseline.items()}, {n: side.draws for n, side in scenario.items()}),
    )


def _sides(found: Estimate | None, given: Assumption | None, rng: np.random.Generator, size: int) -> tuple[Side, Side]:
    """Baseline and scenario of one input. What nothing measures and NEW alone gives holds on both sides."""
    before = NOTHING
    if given is not None and given.old is not None:
        before = Side(given.old, given.old)
    elif found is not None:
        before = Side(found.value, found.value if found.error is None else found.drawn(rng, size))
    after = _after(before, given)
    return (before if before.value is not None else after), after


def _after(before: Side, given: Assumption | None) -> Side:
    if given is None:
        return before
    if given.absolute:
        return Side(given.of(None), given.of(None))
    return NOTHING if before.value is None else Side(given.of(before.value), given.of(before.draws))


def _all_requests(
    sides: Mapping[str, tuple[Side, Side]], measured: Mapping[str, Estimate], given: Assumption | None
) -> tuple[Side, Side]:
    before, after = sides["requests_per_year"]
    hit = sides["hit_ratio"][0]
    if "requests_per_year" not in measured or (given is not None and given.old is not None) or not hit.value:
        return before, after
    missed = 1 - np.minimum(hit.draws, 0.9999)
    whole = Side((before.value or 0.0) / (1 - min(hit.value, 0.9999)), before.draws / missed)
    return whole, _after(whole, given)


def _cost(cost: Estimate | None, z: Array) -> Side:
    if cost is None or cost.error is None:
        return NOTHING if cost is None else Side(cost.value, cost.value)
    return Side(cost.value, np.maximum(cost.value + z * cost.error, 0.0))
