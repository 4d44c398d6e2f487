"""The recording's client rows as spans: what a caller saw of each request, beside what the engine says."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from collector.otlp.failures import http_error
from store.batch import Batch
from store.tables import SPANS, TOKEN_ARRIVALS

if TYPE_CHECKING:
    import polars as pl

ADDRESS = "127.0.0.1:8000"
SERVICE = "vllm-client"
_MODEL = "tiny-llama"


def decode(lines: Iterable[bytes]) -> Batch:
    """Decode client.jsonl: one span per request, parent of the engine's span where the engine served it."""
    import orjson

    requests = [orjson.loads(line) for line in lines]
    arrivals = [_arrivals(request) for request in requests if request["chunk_offsets_us"]]
    frames = {SPANS.name: _frame([_row(request) for request in requests]), TOKEN_ARRIVALS.name: _streams(arrivals)}
    return Batch("sample_data/real/client", frames)


def _frame(rows: list[dict[str, Any]]) -> "pl.DataFrame":
    import polars as pl

    frame = pl.DataFrame(rows, infer_schema_length=None)
    return SPANS.conform(frame.with_columns(pl.col("ts").cast(pl.Datetime("us"))))


def _streams(rows: list[dict[str, Any]]) -> "pl.DataFrame":
    import polars as pl

    return TOKEN_ARRIVALS.conform(pl.DataFrame(rows).with_columns(pl.col("ts").cast(pl.Datetime("us"))))


def _arrivals(request: dict[str, Any]) -> dict[str, Any]:
    """Return when the chunks of an answer came, one token each."""
    return {
        "trace_id": request["trace_id"],
        "span_id": request["span_id"],
        "ts": request["start_unix_nano"] // 1000,
        "service": SERVICE,
        "measured_by": "client",
        "offsets_us": request["chunk_offsets_us"],
    }


def _row(request: dict[str, Any]) -> dict[str, Any]:
    """Return one span; a stream that was cut has no token counts, a refused request no first token."""
    import orjson

    status, duration_s = request["status"], request["duration_us"] / 1e6
    failed = status != 200
    about = {name: request[name] for name in ("phase", "conversation", "turn")}
    return {
        "trace_id": request["trace_id"],
        "span_id": request["span_id"],
        "ts": request["start_unix_nano"] // 1000,
        "duration_s": duration_s,
        "name": "POST /v1/completions",
        "kind": "client",
        "status": "error" if failed else "unset",
        "status_message": request["error"],
        "service": SERVICE,
        "server_address": ADDRESS,
        "operation": "text_completion",
        "provider": "vllm",
        "model": None if status == 404 else _MODEL,
        "request_model": None if status == 404 else _MODEL,  # the name that was refused is only in the message
        "input_tokens": request["prompt_tokens"],
        "output_tokens": request["completion_tokens"],
        "e2e_s": duration_s,
        "stream": True,
        "finish_reason": "abort" if request["aborted"] else None,
        "request_id": request["request_id"],
        "error_code": _error_code(status, request["error"]),
        "attributes": orjson.dumps(about).decode(),
    } | _token_times(request["chunk_offsets_us"])


def _error_code(status: int | None, error: str | None) -> str | None:
    """HTTP_<status> of a refusal, the exception's name where no answer came, None for 200."""
    return error if status is None else http_error(status)


def _token_times(offsets_us: list[int]) -> dict[str, float | str | None]:
    """Return what the arrival of the chunks (one token each) gives; null where there are too few."""
    first = offsets_us[0] / 1e6 if offsets_us else None
    decode_s = (offsets_us[-1] - offsets_us[0]) / 1e6 if len(offsets_us) > 1 else None
    return {
        "ttft_s": first,
        "ttft_source": None if first is None else "client",
        "decode_s": decode_s,
        "tpot_s": None if decode_s is None else decode_s / (len(offsets_us) - 1),
    }
