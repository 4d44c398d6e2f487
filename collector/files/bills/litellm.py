"""Spend logs of LiteLLM: each row is a request (`spans`) and what it cost (`costs`)."""

import polars as pl

from collector.files.attributes import json_objects
from collector.files.bills.columns import Columns
from collector.files.bills.form import Form
from collector.files.bills.lines import decode_lines, digest
from collector.files.intake import Decoded
from collector.files.options import ImportOptions
from collector.files.rows import Rows
from collector.otlp.failures import error_type
from store.batch import Batch
from store.columns import Kind
from store.tables import SPANS

_US = 1_000_000
_SYNC_OPERATIONS = {
    "completion": "chat", "anthropic_messages": "chat", "responses": "chat", "embedding": "embeddings",
    "text_completion": "text_completion", "rerank": "rerank", "generate_content": "generate_content",
}  # fmt: skip
_OPERATIONS = _SYNC_OPERATIONS | {f"a{name}": operation for name, operation in _SYNC_OPERATIONS.items()}
_CACHED = ("metadatausageobjectprompttokensdetailscachedtokens", "metadataadditionalusagevaluescachereadinputtokens")
_WRITTEN = ("metadataadditionalusagevaluescachecreationinputtokens",)


def _in_dollars(_: Columns, lines: pl.DataFrame) -> dict[str, pl.Series]:
    """Return what no column says: spend is in US dollars, a row is one request, and its quantity is tokens."""
    height = lines.height
    return {
        "currency": pl.repeat("USD", height, dtype=pl.String, eager=True),
        "unit": pl.repeat("tokens", height, dtype=pl.String, eager=True),
        "category": pl.repeat("Usage", height, dtype=pl.String, eager=True),
        "requests": pl.repeat(1, height, dtype=pl.Int64, eager=True),
    }


LITELLM = Form(
    source=lambda _: "litellm",
    needs=frozenset({"requestid", "calltype", "spend", "starttime", "endtime"}),
    fields={
        "ts": ("starttime",),
        "end_ts": ("endtime",),
        "provider": ("customllmprovider",),
        "account": ("organizationid",),
        "sub_account": ("apikey",),
        "model": ("model",),
        "tenant": ("teamid", "enduser", "user", "apikey"),
        "quantity": ("totaltokens",),
        "billed_cost": ("spend",),
    },
    identity=("requestid",),
    tags=("requesttags",),
    written=("messages", "response", "proxyserverrequest"),
    derive=_in_dollars,
)


def decode_litellm(rows: Rows, options: ImportOptions, source: str, stem: str) -> Decoded:
    """Turn a spend log into requests and their charge lines; `cost_usd` of a span is the cost of its line."""
    batch, refused, notes = decode_lines(rows, LITELLM, options, source)
    spans = _spans(rows, options, stem)
    return Batch(source, {"spans": spans, **batch.frames}, batch.drops), refused, notes


def _spans(rows: Rows, options: ImportOptions, stem: str) -> pl.DataFrame:
    columns = Columns(rows)
    start, end = columns.instant(["starttime"], options), columns.instant(["endtime"], options)
    first = columns.instant(["completionstarttime"], options)
    e2e = _seconds(start, end)
    request = columns.text(["requestid"])
    made = [digest(r) + digest("span", r)[:16] for r in request]
    call = columns.text(["calltype"]).replace_strict(_OPERATIONS, default="inference")
    frame = pl.DataFrame(
        {
            "trace_id": [text[:32] for text in made],
            "span_id": [text[32:] for text in made],
            "ts": start,
            "duration_s": e2e,
            "e2e_s": e2e,
            "ttft_s": _seconds(start, first).set((first >= end).fill_null(True), None),  # not streamed: the end itself
            "name": call,
            "operation": call,
            "provider": columns.text(["customllmprovider"]),
            "model": columns.text(["model"]),
            "request_model": columns.text(["modelgroup", "model"]),
            "response_model": columns.text(["model"]),
            "input_tokens": _count(columns, "prompttokens"),
            "output_tokens": _count(columns, "completiontokens"),
            "cached_input_tokens": _count(columns, *_CACHED),
            "cache_write_tokens": _count(columns, *_WRITTEN),
            "request_id": request,
            "server_address": columns.text(["apibase"]),
            "cost_usd": columns.number(["spend"])[0],
            "error_code": _errors(columns),
        }
    )
    kept = columns.real(["apikey", "teamid", "user", "enduser", "cachehit", "sessionid", "status"])
    labels = {name: text for name, text in options.labels.items() if SPANS.column(name) is None}
    given = [pl.lit(t).alias(n) for n, t in options.labels.items() if (c := SPANS.column(n)) and c.kind is Kind.TEXT]
    frame = frame.with_columns(
        json_objects(rows, kept, labels, options.content)[0].alias("attributes"),
        pl.lit("client").alias("kind"),
        pl.lit(stem).alias("service"),
        pl.when(pl.col("ttft_s").is_not_null()).then(pl.lit("server")).alias("ttft_source"),
        pl.when(pl.col("error_code").is_not_null()).then(pl.lit("error")).otherwise(pl.lit("ok")).alias("status"),
    ).with_columns(given)
    return SPANS.conform(frame.filter(pl.col("ts").is_not_null() & pl.col("request_id").is_not_null()))


def _count(columns: Columns, *names: str) -> pl.Series:
    return columns.number(names)[0].round().cast(pl.Int64, strict=False)


def _seconds(start: pl.Series, end: pl.Series) -> pl.Series:
    """Seconds between two times; null where one is missing or the end lies before the start.

    Divided by a column, since polars multiplies by the reciprocal of a single divisor: 400 ms are 0.4 s.
    """
    seconds = (end - start).dt.total_microseconds() / pl.repeat(_US, len(start), dtype=pl.Int64, eager=True)
    return seconds.set(seconds < 0, None)


def _errors(columns: Columns) -> pl.Series:
    failed = columns.text(["status"]).str.to_lowercase() == "failure"
    names = columns.text(["metadataerrorinformationerrorcode", "metadataerrorinformationerrorclass"])
    known = [error_type(name) if name else None for name in names]
    codes = pl.Series("error_code", known, pl.String).fill_null("error")
    return codes.set(~failed.fill_null(False), None)
