"""The shipped simulated requests as spans: what a whole service shares, and what follows, is filled in."""

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from sample_data import fleet
from sample_data.fleet import Service
from store.batch import Batch
from store.tables import SPANS

if TYPE_CHECKING:
    import polars as pl


def spans(requests: "pl.DataFrame") -> Batch:
    """Spans of the compact requests of `sample_data.simulate`, one per request, in order of service and arrival."""
    import polars as pl

    whole = requests.join(_services(), on="service", maintain_order="left")
    names = [f"{service}-{number:06d}" for service, number in requests.select("service", "number").iter_rows()]
    made = whole.select(
        *_ids(names),
        *_latencies(),
        ts=pl.col("ts_us").cast(pl.Datetime("us")),
        name=pl.lit("llm_request"),
        kind=pl.lit("server"),
        status=pl.when(pl.col("error_code").is_null()).then(pl.lit("unset")).otherwise(pl.lit("error")),
        operation=pl.lit("chat"),
        cached_input_tokens="cached_tokens",
        response_model=pl.when(pl.col("error_code").is_null()).then("model"),
        stream=pl.lit(value=True),
        finish_reason=pl.when(pl.col("error_code").is_null()).then(pl.lit("stop")),
        **{name: pl.col(name) for name in _AS_THEY_ARE},
    )
    return Batch("sample_data/simulated/requests", {SPANS.name: SPANS.conform(made)})


_AS_THEY_ARE = (
    "service", "input_tokens", "output_tokens", "error_code", "environment", "host", "cloud_provider", "cloud_region",
    "cloud_zone", "provider", "model", "request_model", "scope",
)  # fmt: skip


def _services() -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame([_service(service) for service in fleet.SERVICES])


def _service(service: Service) -> dict[str, Any]:
    node = service.node
    return {
        "service": service.name,
        "environment": "simulation",
        "host": node.name,
        "cloud_provider": node.cloud_provider,
        "cloud_region": node.cloud_region,
        "cloud_zone": node.cloud_zone,
        "provider": "vllm",
        "model": service.model,
        "request_model": service.model,
        "scope": "vllm.tracing.otel",
    }


def _ids(names: list[str]) -> list["pl.Series"]:
    """Request ids, and trace and span ids that are their hash: they need no room in the files."""
    import polars as pl

    digests = [blake2b(name.encode(), digest_size=24).hexdigest() for name in names]
    return [
        pl.Series("request_id", names),
        pl.Series("trace_id", [digest[:32] for digest in digests]),
        pl.Series("span_id", [digest[32:] for digest in digests]),
    ]


def _latencies() -> list["pl.Expr"]:
    """Seconds from the stored microseconds; null where the request was refused or had one token only."""
    import polars as pl

    us = {name: pl.col(f"{name}_us") for name in ("queue", "prefill", "decode", "duration")}
    gaps = pl.col("output_tokens") - 1
    return [
        *((column / 1e6).alias(f"{name}_s") for name, column in us.items()),
        (us["duration"] / 1e6).alias("e2e_s"),
        ((us["queue"] + us["prefill"]) / 1e6).alias("ttft_s"),
        pl.when(us["prefill"].is_not_null()).then(pl.lit("server")).alias("ttft_source"),
        ((us["prefill"] + us["decode"]) / 1e6).alias("inference_s"),
        pl.when(gaps > 0).then(us["decode"] / 1e6 / gaps).alias("tpot_s"),
    ]
