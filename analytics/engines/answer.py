"""Put the answer of `engines` together."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.engines import FRAMES, EnginesParams
from analytics.engines.differences import differences, named
from analytics.engines.live import live
from analytics.engines.load_tests import best_rates, stages
from analytics.engines.measured import bands, group_row, prepared
from analytics.result import Result, Status
from store.window import Window


def answer(inputs: Inputs, params: EnginesParams, window: Window) -> Result:
    """Run the whole analysis on what was read."""
    by = list(params.by)
    requests = prepared(inputs["requests"], by)
    groups = [(labels, part, group_row(part)) for labels, part in frames.groups(requests, by)]
    shown, tested = live(inputs["metrics"], window), stages(inputs["benchmarks"])
    rates, compared = best_rates(tested, params), differences(groups, params)
    rows = {
        "differences": compared,
        "live": shown,
        "tests": tested,
        "best_rate": rates,
    }
    made = {name: frames.build((), FRAMES[name], found) for name, found in rows.items()}
    made["engines"] = frames.build(by, FRAMES["engines"], [labels | row for labels, _, row in groups])
    split = [row for labels, part, _ in groups for row in bands(part, labels)]
    made["bands"] = frames.build(by, FRAMES["bands"], split)
    nothing = not (groups or shown or tested)
    notes = (f"no model requests, metrics of engines or load tests in {window}",) if nothing else (
        *_of_requests(groups, compared, inputs["requests"], params), *_of_live(shown), *_of_tests(tested),
    )  # fmt: skip
    status = Status.EMPTY if nothing else Status.OK
    return Result("engines", status, window, asdict(params), {name: made[name] for name in FRAMES}, notes=notes)


Groups = Sequence[tuple[dict[str, str], pl.DataFrame, dict[str, Any]]]


def _of_requests(
    groups: Groups, compared: Sequence[dict[str, Any]], requests: pl.DataFrame, params: EnginesParams
) -> list[str]:
    said = []
    timeless = [named(labels) for labels, _, row in groups if row["requests_per_second"] is None and row["n"] > 1]
    if timeless:
        said.append("no rates, and load not compared, where starts of requests are not known: " + ", ".join(timeless))
    unsized = [named(labels) for labels, _, row in groups if row["input_tokens"] is None]
    if unsized and compared:
        said.append("lengths of prompts not compared where none is stated: " + ", ".join(unsized))
    if params.baseline and params.baseline not in [named(labels) for labels, _, _ in groups]:
        said.append(f"there is no group {params.baseline!r}: the one with the most requests is the baseline")
    if compared:
        said.append(
            "intervals allow for requests of one minute (of short runs a twentieth) being alike, not for longer memory"
        )
    share = requests["share_read"].to_numpy().min() if groups and "share_read" in requests.columns else 1.0
    return [*said, f"read {share:.1%} of the traces: counts and rates are of these"] if share < 1 else said


def _of_live(shown: Sequence[dict[str, Any]]) -> list[str]:
    return ["live: TTFT is the engine's own, without the network; vLLM's contains its queue"] if shown else []


def _of_tests(tested: Sequence[dict[str, Any]]) -> list[str]:
    tools = sorted({row["tool"] for row in tested if row["tool"]})
    said = ["load tests state quantiles, not requests: no intervals; TTFT is the client's"] if tested else []
    if len(tools) > 1:
        said.append("ITL is not the same in " + ", ".join(tools) + ": see itl_is")
    return said
