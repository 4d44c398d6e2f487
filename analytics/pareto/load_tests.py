"""Configurations from files of load tests: one per run and stage, as their tools state the figures."""

import re
from collections.abc import Mapping, Sequence

import polars as pl

from analytics.engines.load_tests import WHOLE
from analytics.pareto.measured import Configuration

_FIGURE = re.compile(r"(.+)_(p\d+(?:\.\d+)?|mean|min|max|std)(_[a-z_]+)?")
_PLAIN = ("value", "mean")
_ALIASES = {"tokens_per_second": ("request_output_tokens_per_second", "p50")}
Told = Mapping[tuple[str, str], float]


def configurations(figures: pl.DataFrame, by: list[str], objectives: Sequence[str]) -> list[Configuration]:
    """Read the objectives of each stage; a summary over stages is none."""
    known = figures.drop_nulls(["run", "metric", "statistic", "value"]).filter(pl.col("value").is_finite())
    found = []
    for part in known.partition_by("run", "stage", maintain_order=True):
        stage = part["stage"][0]
        told = {(m, s): v for m, s, v in part.select("metric", "statistic", "value").iter_rows()}
        values = tuple(_value(told, name) for name in objectives)
        if stage == WHOLE or all(value is None for value in values):
            continue
        labels = {name: _text(part, name) for name in by}
        name = " ".join(filter(None, (part["run"][0], f"stage {stage}" if stage else "")))
        done = told.get(("requests_successful", "value"))
        found.append(Configuration(labels, name, "load test", None if done is None else round(done), values))
    return sorted(found, key=lambda one: one.name)


def _text(part: pl.DataFrame, name: str) -> str:
    texts = part[name].drop_nulls().cast(pl.String).to_list() if name in part.columns else []
    return str(texts[0]) if texts else ""


def _value(told: Told, name: str) -> float | None:
    """Find 'ttft_p99_s' as P99 of ttft_s, and a name without a statistic as its single value or mean."""
    if name == "error_ratio" and (name, "value") not in told:
        failed, done = (told.get((f"requests_{kind}", "value")) for kind in ("failed", "successful"))
        return None if failed is None or done is None or not failed + done else failed / (failed + done)
    plain = next((told[name, kind] for kind in _PLAIN if (name, kind) in told), None)
    if plain is not None:
        return plain
    if name in _ALIASES:
        return told.get(_ALIASES[name])
    figure = _FIGURE.fullmatch(name)
    return told.get((figure[1] + (figure[3] or ""), figure[2])) if figure else None
