"""From measured inputs and assumptions to the answer of `analyze whatif`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.result import Result, Status
from analytics.whatif import FRAMES, NUMBERS, WhatifParams, assumptions, measured
from analytics.whatif.assumption import change
from analytics.whatif.blocks import Blocks, Estimate, blocks_of
from analytics.whatif.break_even import break_even
from analytics.whatif.outcome import cents, sensitivity, yearly_rows
from analytics.whatif.prices import Prices, Rates, given, known, mixed, swaps
from analytics.whatif.scene import MONEY_OF, UNITS, Scene, Tokens, scene
from analytics.whatif.usage import Pair, Usage, usage_of
from analytics.whatif.yearly import COLD, MODEL, parts
from store.window import Window

NO_COST = (
    "no cost or price is known: no model of these requests has a price (--price MODEL=INPUT/OUTPUT), no bill names "
    "their service (--base-cost), and no machine has a price (--resource-per-hour)"
)
NO_REQUESTS = "no model requests in {window}: --requests-per-year and --base-cost give what a store would"
ASSUMED_NO_HITS = Estimate(0.0, None, 1, 0, "nothing says that a cache answered requests", "assumed", 1.0)


@dataclass(frozen=True, slots=True)
class Group:
    """One group: its hourly rows and requests, the stretches they make, and their usage (None without requests)."""

    labels: dict[str, str]
    hours: pl.DataFrame
    requests: pl.DataFrame
    blocks: Blocks | None
    usage: Usage | None


def answer(inputs: Inputs, params: WhatifParams, window: Window) -> Result:
    """Answer per group. Status: empty without requests, stored or given; refused without any cost."""
    by = list(params.labels)
    hours = inputs["hours"].filter(pl.col("requests") > 0)
    made: dict[str, list[dict[str, Any]]] = {name: [] for name in FRAMES}
    notes: list[str] = []
    for labels in _groups(hours, by):
        notes += _one(_group(labels, hours, inputs, window), inputs, params, made)
    if not hours.height and not made["yearly"]:
        notes = [NO_REQUESTS.format(window=window), *notes]
    dropped = [name for name in params.by if name not in by]
    notes += [f"not by {', '.join(dropped)}: rollups do not know it"] if dropped else []
    status = Status.OK if made["yearly"] else Status.REFUSED if hours.height else Status.EMPTY
    return Result(
        "whatif", status, window, asdict(params), {name: frames.build(by, FRAMES[name], made[name]) for name in FRAMES},
        notes=tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def _groups(hours: pl.DataFrame, by: list[str]) -> list[dict[str, str]]:
    found = [labels for labels, _ in frames.groups(frames.label_columns(hours, by), by)]
    return found or [dict.fromkeys(by, "")]


def _group(labels: dict[str, str], hours: pl.DataFrame, inputs: Inputs, window: Window) -> Group:
    mine, requests = measured.part_of(hours, labels), measured.part_of(inputs["requests"], labels)
    blocks = blocks_of(mine, window) if mine.height else None
    return Group(labels, mine, requests, blocks, usage_of(mine, blocks) if blocks else None)


def _one(group: Group, inputs: Inputs, params: WhatifParams, made: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Add the rows of one group; return what is to say."""
    stored, texts = assumptions(params), given(params.price)
    used = group.hours.group_by(pl.col("provider", "model").fill_null("")).agg(pl.col("requests").sum())
    prices = known(inputs["prices"], texts, params.currency, used)
    tokens, notes = (None, []) if "base_cost" in stored else _tokens(group, prices, params)
    if tokens is None and notes and params.swap:
        return notes
    found, seen_at_model, said = _measure(group, inputs, params, prices.currency, tokens)
    of = scene(found, stored, tokens, params.draws, params.seed, seen_at_model=seen_at_model)
    before, after = parts(of.baseline), parts(of.scenario)
    if not before or not after:
        missing = "" if of.baseline["requests_per_year"] is not None else "; --requests-per-year is not known either"
        return [*notes, NO_COST + missing] if group.hours.height or stored else notes
    made["inputs"] += [group.labels | row for row in _inputs(of, stored, prices.currency)]
    made["yearly"] += [group.labels | row for row in yearly_rows(of, prices.currency)]
    made["sensitivity"] += [group.labels | row for row in sensitivity(of, prices.currency)]
    made["models"] += [group.labels | row for row in _models(group, tokens, prices, params)]
    comparison, more = break_even(of, group.hours, params, prices.currency)
    made["break_even"] += [group.labels | row for row in comparison]
    return [*notes, *said, *more, *_notes(of, group, prices)]


def _measure(
    group: Group, inputs: Inputs, params: WhatifParams, currency: str, tokens: Tokens | None
) -> tuple[dict[str, Estimate], bool, list[str]]:
    """Measure inputs; also whether the requests seen are those that no cache answered."""
    found: dict[str, Estimate] = {}
    marked = measured.marked_hits(group.requests, params)
    found["hit_ratio"] = marked or measured.counted_hits(inputs["response_cache"]) or ASSUMED_NO_HITS
    services = measured.services_of(group.hours, group.requests)
    machine = measured.machine(inputs["costs"], services, currency)
    found |= {"resource_per_hour": machine} if machine else {}
    if group.blocks is None:
        return found, False, []
    n = measured.per_year(group.hours, group.blocks)
    found |= {"requests_per_year": n} if n else {}
    found |= measured.of_requests(group.hours, group.blocks)
    found |= measured.cold(inputs, group.requests, group.hours)
    notes = []
    if tokens is None:
        billed = None if machine else measured.billed(inputs["costs"], group.hours, services, currency)
        found |= {"base_cost": billed} if billed else {}
        notes += (
            ["cost of a request: what its service was billed over its requests, whatever it is billed for"]
            if billed
            else []
        )
    return found, marked is None, notes


def _tokens(group: Group, prices: Prices, params: WhatifParams) -> tuple[Tokens | None, list[str]]:
    """Price the requests; None, and why, where no model has a price or the other model of a swap has none."""
    if group.usage is None:
        return None, []
    before = {pair: rates for pair in group.usage.pairs if (rates := _complete(prices.of(*pair))) is not None}
    notes = [f"prices in another currency are left out: {', '.join(prices.left_out)}"] if prices.left_out else []
    after: dict[Pair, Rates] = dict(before)
    for name, (other, share) in swaps(params.swap).items():
        instead = _complete(prices.by_model.get(other.lower()))
        if instead is None:
            return None, [f"the price of {other} is not known: --price {other}=INPUT/OUTPUT of a million tokens"]
        mine = [pair for pair in group.usage.pairs if pair[1].lower() == name]
        if not mine:
            return None, [f"no request names the model {name}: nothing to swap"]
        after |= {pair: mixed(before[pair], instead, share) for pair in mine if pair in before}
        notes.append(f"{other} instead of {name}: as many tokens are assumed; how good its answers are is not compared")
    if not before:
        return None, notes
    unpriced = group.usage.requests.sum(axis=0)
    lacking = [i for i, pair in enumerate(group.usage.pairs) if pair not in before]
    if lacking:
        share = unpriced[lacking].sum() / unpriced.sum()
        names = ", ".join(group.usage.pairs[i][1] or "(none)" for i in lacking[:5])
        notes.append(f"{share:.1%} of the requests have no price ({names}): taken to cost what the others do")
    return Tokens(group.usage, before, after, change(params.price_change)), notes


def _complete(rates: Rates | None) -> Rates | None:
    """Rates that can price a request: prompt and output."""
    return rates if rates is not None and {"input", "output"} <= set(rates) else None


def _inputs(of: Scene, stored: Mapping[str, Any], currency: str) -> list[dict[str, Any]]:
    """Rows of the frame `inputs`: those that are known on one side at least."""
    rows = []
    for name in NUMBERS:
        one, text = of.measured.get(name), stored.get(name)
        if name == "base_cost" and of.tokens is not None:
            cost = of.tokens.cost(of.baseline, of.measured, scenario=False)
            one = cost and replace(cost, how="tokens x price of the models, see models")
        if of.baseline[name] is None and of.scenario[name] is None:
            continue
        is_given = text is not None and (text.old is not None or one is None)
        low, high = (None, None) if one is None or is_given else _limits(name, of, one)
        rows.append(
            {"input": name, "baseline": of.baseline[name], "scenario": of.scenario[name], "low": low, "high": high}
            | {"unit": UNITS.get(name) or f"{currency} {MONEY_OF[name]}"}
            | {"n": None if one is None or is_given else one.n}
            | {"source": "given" if is_given or one is None else one.source}
            | {"how": _how(name, text, one, is_given)}
        )
    return rows


def _limits(name: str, of: Scene, one: Estimate) -> tuple[float | None, float | None]:
    draws = of.drawn[0][name]
    if one.error is None or not isinstance(draws, np.ndarray):
        return None, None
    return float(np.quantile(draws, 0.025)), float(np.quantile(draws, 0.975))


def _how(name: str, text: Any, one: Estimate | None, is_given: bool) -> str:
    option = f"--{name.replace('_', '-')} {text.text}" if text is not None else ""
    if is_given or one is None:
        return option
    return f"{one.how}; scenario: {option}" if option else one.how


def _models(group: Group, tokens: Tokens | None, prices: Prices, params: WhatifParams) -> list[dict[str, Any]]:
    if group.usage is None or group.blocks is None:
        return []
    whole, instead = group.usage.requests.sum(), swaps(params.swap)
    rows = []
    for i, pair in enumerate(group.usage.pairs):
        n, by_kind = group.usage.requests[:, i].sum(), group.usage.tokens[:, i].sum(axis=0)
        if not n:
            continue
        alone = Usage([pair], group.usage.requests[:, [i]], group.usage.tokens[:, [i]])
        of = None if tokens is None or pair not in tokens.before else replace(tokens, usage=alone)
        prompt = by_kind[:3].sum()
        before, after = (None if of is None else of.cost({}, {}, scenario=later) for later in (False, True))
        swapped = instead.get(pair[1].lower())
        rows.append(
            {"provider": pair[0], "model": pair[1], "share": n / whole, "input_tokens": prompt / n}
            | {"output_tokens": by_kind[3:].sum() / n, "cached_share": by_kind[1] / prompt if prompt else None}
            | {"currency": prices.currency, "priced_as": _priced_as(pair[1], swapped)}
            | {"per_request": before and cents(before.value), "per_request_scenario": after and cents(after.value)}
        )
    return sorted(rows, key=lambda row: -float(row["share"]))


def _priced_as(model: str, swapped: tuple[str, float] | None) -> str:
    if swapped is None:
        return model
    return swapped[0] if swapped[1] == 1 else f"{swapped[0]} ({swapped[1]:.0%}), {model}"


def _notes(of: Scene, group: Group, prices: Prices) -> list[str]:
    """Say what is left out, and what the intervals do not know."""
    made = []
    known = parts(of.scenario)
    if COLD not in known:
        lacking = [n for n in ("cold_start_share", "cold_start_s", "resource_per_hour") if of.scenario[n] is None]
        made.append(f"cold starts are not in the cost: not known and not given: {', '.join(lacking)}")
    if MODEL not in known:
        made.append("what the model costs is not in the cost: no price, no bill, no --base-cost")
    if group.blocks is not None:
        blocks = group.blocks
        made.append(
            f"a year at the rate of {blocks.seconds / 86_400:.3g} days ({blocks.count} {blocks.what}): growth, seasons "
            "and changes of price are not in the interval"
        )
        if blocks.count == 1:
            made.append("too short for an interval: --since 28d, or eight hours at least")
    bare = [n for n, one in of.measured.items() if one.error is None and one.source == "measured" and n in NUMBERS]
    bare = [name for name in bare if of.scenario[name] is not None and not isinstance(of.drawn[1][name], np.ndarray)]
    if bare:
        made.append(f"intervals leave out how sure these are, which is not known: {', '.join(bare)}")
    made.append(f"amounts are in {prices.currency}; inputs vary independently of each other in the draws")
    return made
