"""Requests of engines by outcome: which model they were for, how they ended, and who failed."""

import polars as pl

from analytics.metrics.counters import by_entity, increase
from analytics.metrics.series import about, with_labels
from store.window import Window

BY = ("service", "instance", "model")
FAILED = ("error", "errors", "failure", "failed", "timeout", "exception")
"""Outcomes that are failures; an abort is the client's own wish."""
_UPKEEP = r"^/(metrics|health|healthz|ping|ready|readyz|live|livez|load|version)\b"


def with_model(samples: pl.DataFrame) -> pl.DataFrame:
    """Add model: the label, else the only model of the instance (HTTP counters do not know it)."""
    series = with_labels(about(samples).drop("model", strict=False), ["model"])
    only = pl.col("model").drop_nulls().n_unique().over("service", "instance") == 1
    single = pl.when(only).then(pl.col("model").drop_nulls().first().over("service", "instance"))
    named = series.select("series_id", pl.coalesce("model", single))
    return samples.drop("model", strict=False).join(named, on="series_id", how="left", maintain_order="left")


def outcomes(samples: pl.DataFrame, window: Window, *, from_zero: bool = False) -> pl.DataFrame:
    """Return requests by outcome over the window: service, instance, model, name, outcome, increase, per_second, ….

    `outcome` is the label outcome (requests_total), code (request_errors_total), reason (requests_rejected_total) or
    status (http_requests_total; health checks and scrapes left out). The other columns are those of
    `counters.by_entity`.
    """
    names = ("requests_total", "request_errors_total", "requests_rejected_total", "http_requests_total")
    named = samples if "model" in samples.columns else with_model(samples)
    grown = increase(named.filter(pl.col("name").is_in(names)), window, from_zero=from_zero)
    told = with_labels(grown, ["outcome", "code", "status", "reason", "handler"])
    served = told.filter(~pl.col("handler").str.contains(_UPKEEP).fill_null(value=False))
    outcome = pl.coalesce("outcome", "code", "status", "reason").alias("outcome")
    return by_entity(served.with_columns(outcome), [*BY, "outcome"]).drop_nulls("increase")


def by_outcome(found: pl.DataFrame) -> pl.DataFrame:
    """Return per engine the outcomes as text, most frequent first, and how many failed or were refused.

    Columns: BY, outcomes, failed_outcomes (null where the source has no failing outcome), failed_http (5xx),
    refused_http (4xx), answered_http.
    """
    requests = found.filter(pl.col("name") == "requests_total", pl.col("increase") > 0)
    number = pl.coalesce(
        pl.format("{}/s", pl.col("per_second").round_sig_figs(3)),
        pl.col("increase").round(0).cast(pl.Int64).cast(pl.String),
    )
    said = pl.format("{} {}", pl.col("outcome").fill_null("all"), number)
    texts = requests.sort("increase", "outcome", descending=[True, False]).with_columns(said.alias("text"))
    text = texts.group_by(list(BY), maintain_order=True).agg(pl.col("text").str.join(", ").alias("outcomes"))
    by_outcome = (pl.col("name") == "requests_total") & pl.col("outcome").str.to_lowercase().is_in(FAILED)
    by_status = (pl.col("name") == "http_requests_total") & pl.col("outcome").str.starts_with("5")
    refused = (pl.col("name") == "http_requests_total") & pl.col("outcome").str.starts_with("4")
    http = pl.col("increase").filter(pl.col("name") == "http_requests_total")
    failed = pl.col("increase").filter(by_outcome.fill_null(value=False))
    sums = found.group_by(list(BY)).agg(
        pl.when(failed.len() > 0).then(failed.sum()).alias("failed_outcomes"),
        pl.col("increase").filter(by_status.fill_null(value=False)).sum().alias("failed_http"),
        pl.col("increase").filter(refused.fill_null(value=False)).sum().alias("refused_http"),
        pl.when(http.len() > 0).then(http.sum()).alias("answered_http"),
    )
    return sums.join(text, on=list(BY), how="left", nulls_equal=True)
