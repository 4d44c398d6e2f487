"""Critical path of all traces as a table: per service in which traces begin, span by span."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from analytics import frames
from analytics.latency.critical import Path
from analytics.latency.names import LOADS
from analytics.latency.trees import Forest

MOST_ROWS = 40
"""Rows per entry; the rest is one row, for names that hold an id are as many as requests."""
OWN = "infractl"
"""Service of our own traces, which are nobody's requests."""
REST = "(others)"


def path_rows(
    forest: Forest, path: Path, units: pl.DataFrame, labels: Sequence[str], *, only: bool
) -> list[dict[str, Any]]:
    """Rows of the frame `critical_path`. `labels` are those of the requests in `units`; `only` keeps their traces."""
    spans = _on_path(forest, path)
    if only or labels:
        of = frames.label_columns(units, labels).unique("trace_id", keep="first").select("trace_id", *labels)
        spans = spans.join(of, on="trace_id", how="semi" if only else "left")
        spans = spans if not only else spans.join(of, on="trace_id", how="left")
        spans = frames.label_columns(spans, labels)
    return [row for group, part in frames.groups(spans, [*labels, "entry"]) for row in _rows(group, part)]


def _on_path(forest: Forest, path: Path) -> pl.DataFrame:
    service = forest.spans["service"].fill_null("")
    known = forest.root >= 0
    own = (service == OWN) & (forest.spans["scope"].fill_null("") != "infractl.probe")
    name = forest.spans["name"].fill_null("").str.to_lowercase()
    own |= name.is_in(list(LOADS)) | forest.spans["operation"].fill_null("").is_in(list(LOADS))  # matters for roots
    spans = forest.spans.select("trace_id", pl.col("name").fill_null("").alias("span")).with_columns(
        service,
        pl.Series("root", np.maximum(forest.root, 0)),
        pl.Series("start", forest.start),
        pl.Series("self_s", path.self_us / 1e6),
    )
    spans = spans.with_columns(service.gather(spans["root"]).alias("entry"), own.gather(spans["root"]).alias("own"))
    first = spans.filter(pl.Series(forest.parent < 0)).sort("start").unique("trace_id", keep="first")
    entries = first.select("trace_id", "entry")
    kept = spans.filter(pl.Series(known), ~pl.col("own"), pl.col("self_s") > 0).drop("entry")
    return kept.join(entries, on="trace_id", how="left")


def _rows(group: dict[str, str], spans: pl.DataFrame) -> list[dict[str, Any]]:
    length = spans.group_by("trace_id").agg(pl.col("self_s").sum().alias("length"))
    slow = length.filter(pl.col("length") >= length["length"].quantile(0.99, "higher"))
    tail = spans.join(slow, on="trace_id", how="semi")
    whole, slowest = float(spans["self_s"].sum()), float(tail["self_s"].sum())
    key = ["service", "span"]
    found = (
        spans.group_by(key)
        .agg(pl.col("self_s").sum(), pl.len().alias("spans"))
        .join(tail.group_by(key).agg(pl.col("self_s").sum().alias("tail_s")), on=key, how="left")
        .sort("self_s", *key, descending=[True, False, False])
    )
    rest = found[MOST_ROWS:]
    if rest.height:
        sums = rest.select(pl.col("self_s", "spans", "tail_s").sum())
        named = sums.with_columns(pl.lit("").alias("service"), pl.lit(REST).alias("span"))
        found = pl.concat([found[:MOST_ROWS], named.select(found.columns)])
    made = found.with_columns(
        (pl.col("self_s") / whole).alias("share"),
        (pl.col("tail_s").fill_null(0.0) / slowest).alias("share_of_p99"),
        (pl.col("self_s") / length.height).alias("per_trace_s"),
        pl.lit(length.height).alias("traces"),
    )
    return [group | row for row in made.iter_rows(named=True)]
