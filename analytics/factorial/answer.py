"""From frames to the answer of `analyze factorial`: levels, cells, effects on mean and spread."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.drivers import join_metrics
from analytics.factorial import FRAMES, WHO, FactorialParams, unit
from analytics.factorial.effects import Design, effect_rows
from analytics.result import Result, Status
from store.window import Window

LEAST_CELL = 20
NUMERIC_LEVELS = 6


def answer(inputs: Inputs, params: FactorialParams, window: Window) -> Result:
    """Answer per group. Status: empty without requests, refused without two factors that vary."""
    requests, by = inputs["requests"], list(params.by)
    if not requests.height:
        return _without(Status.EMPTY, f"no requests that state {params.target} in {window}", params, window)
    if len(params.factors) != 2 or params.factors[0] == params.factors[1]:
        words = "name two factors: --factors a,b (columns such as model, attributes, metrics)"
        return _without(Status.REFUSED, words, params, window)
    rows = frames.label_columns(_with_target(_joined(inputs, params), params), by)
    notes: list[str] = []
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in FRAMES}
    for labels, part in frames.groups(rows, by):
        _examine(labels, part, params, tables, notes)
    adjusted(tables["effects"])
    if not tables["effects"]:
        return _without(Status.REFUSED, *(notes or ["no usable rows"]), params=params, window=window)
    notes.append("an association in what was observed; a cause only where the levels were set by an experiment")
    built = {name: frames.build(by, FRAMES[name], tables[name]) for name in FRAMES}
    return Result("factorial", Status.OK, window, asdict(params), built, notes=tuple(dict.fromkeys(notes)))


def _without(status: Status, *words: Any, params: Any = None, window: Any = None) -> Result:
    if params is None:
        *words, params, window = words  # type: ignore[assignment]
    empty = frames.empty(list(params.by), FRAMES)
    return Result("factorial", status, window, asdict(params), empty, notes=tuple(map(str, words)))


def _joined(inputs: Inputs, params: FactorialParams) -> pl.DataFrame:
    """Return requests with both factors; a metric that has samples goes before an attribute of its name."""
    requests, samples = inputs["requests"], inputs.get("metrics")
    here = [n for n in params.factors if samples is not None and samples.height and (samples["name"] == n).any()]
    if samples is not None and here:
        key = requests.select("ts", *(n for n in WHO if n in requests.columns))
        joined = join_metrics(key, samples, here)
        requests = requests.with_columns(joined[name] for name in here)
    absent = [n for n in params.factors if n not in requests.columns]
    return requests.with_columns(pl.lit(None, pl.String).alias(n) for n in absent)


def _with_target(requests: pl.DataFrame, params: FactorialParams) -> pl.DataFrame:
    if params.target == "output_tokens_per_s":
        value: pl.Expr = pl.when(pl.col("e2e_s") > 0).then(pl.col("output_tokens") / pl.col("e2e_s"))
    else:
        value = pl.col(params.target).cast(pl.Float64)
    return requests.with_columns(pl.when(value.is_finite()).then(value).alias("_y"))


def levels(column: pl.Series, most: int) -> pl.Series:
    """Levels as text: numbers of many values are split at their median, texts keep their most frequent values."""
    number = column.cast(pl.Float64, strict=False)
    numeric = number.null_count() == column.null_count() and column.len() > column.null_count()
    if numeric and number.n_unique() > NUMERIC_LEVELS:
        middle = float(number.median() or 0.0)  # type: ignore[arg-type]
        low, high = f"up to {middle:.4g}", f"above {middle:.4g}"
        return pl.select(
            pl.when(number > middle).then(pl.lit(high)).when(number <= middle).then(pl.lit(low))
        ).to_series()
    text = column.cast(pl.String)
    kept = text.drop_nulls().value_counts(sort=True).head(most)[text.name]
    return pl.select(pl.when(text.is_in(kept.implode())).then(text)).to_series()


def _examine(
    labels: dict[str, str],
    part: pl.DataFrame,
    params: FactorialParams,
    tables: dict[str, list[dict[str, Any]]],
    notes: list[str],
) -> None:
    who = f"{', '.join(labels.values())}: " if labels else ""
    stated = part.drop_nulls("_y")
    coded = pl.DataFrame({
        "ts": stated["ts"], "y": stated["_y"],
        **{name: levels(stated[factor], params.most_levels) for name, factor in zip("ab", params.factors, strict=True)},
    }).drop_nulls()  # fmt: skip
    for factor in params.factors:
        if levels(stated[factor], params.most_levels).drop_nulls().n_unique() < 2:
            notes.append(f"{who}{factor} does not vary here, or no request states it")
            return
    if coded.height == 0 or min(coded[name].n_unique() for name in "ab") < 2:
        notes.append(f"{who}no request states both factors, or one does not vary where the other is known")
        return
    design = Design.of(coded)
    tables["cells"] += [labels | row for row in design.cell_rows()]
    if int(design.sizes.min()) < LEAST_CELL:
        notes.append(
            f"{who}no effects: a cell has {int(design.sizes.min())} requests, {LEAST_CELL} are needed in each of "
            f"{design.sizes.size}"
        )
        return
    tables["effects"] += [labels | row | {"unit": unit(params.target)} for row in effect_rows(design, params.factors)]
    lost = part.height - coded.height
    if lost:
        notes.append(f"{who}{lost:,} requests left out: target or a factor is missing")


def adjusted(rows: Sequence[dict[str, Any]]) -> None:
    """Adjust over all effects of all groups (Benjamini & Hochberg 1995) and say what they show."""
    from scipy.stats import false_discovery_control

    ps = [row["p"] if row["p"] is not None else row["p_f"] for row in rows]
    for row, p in zip(rows, false_discovery_control(np.clip(ps, 0, 1)) if ps else (), strict=True):
        row["p_adj"] = float(p)
        size = f" ({row['estimate']:+.3g} {row['unit']})" if row["estimate"] is not None else ""
        row["verdict"] = f"associated with the {row['on']}{size}" if p <= 0.05 else "no effect shown"
