"""Which span is one model request, and the figures that follow from what it states."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from collector.otlp.arrivals import Arrivals, Event, first_token_ns
from collector.otlp.attribute import Attribute
from collector.otlp.dialects import CLIENT_TTFT, ENGINES
from collector.otlp.failures import OTHER, error_type
from store.tables import INFERENCE_OPERATIONS

_NANO, _MICRO = 1e-9, 1e-6
_MARKS = frozenset({
    "input_tokens", "output_tokens", "ttft_s", "e2e_s", "queue_s", "prefill_s", "decode_s", "inference_s", "tpot_s",
    "request_model", "arrivals",
})  # fmt: skip
REQUESTS = frozenset(INFERENCE_OPERATIONS)
"""Operations that are one model request."""


def name_request(found: dict[str, Any], scope: str | None, module: Any, defaults: Mapping[str, Any]) -> None:
    """Set operation, model and, for an engine's span, provider; `defaults` are those of a request's resource.

    Engines and old instrumentations name no operation: a span that states tokens, a latency or the model asked for is a
    request; a start-up or stage span states none of them and stays without an operation.
    """
    if "operation" not in found and not _MARKS.isdisjoint(found):
        found["operation"] = "inference"
    model = found.get("response_model") or found.get("request_model")
    if model is not None:
        found["model"] = model
    if found.get("operation") not in REQUESTS:
        return
    if "model" not in found and "model" in defaults:
        found["model"] = defaults["model"]
    if "provider" not in found:
        engine = _engine_named(f"{scope or ''} {module or ''}") or defaults.get("provider")
        if engine is not None:
            found["provider"] = engine


@lru_cache(maxsize=256)
def _engine_named(text: str) -> str | None:
    words = text.lower().split()
    return next((engine for engine in ENGINES if any(word.startswith(engine) for word in words)), None)


def derive_latency(
    found: dict[str, Any], origin: Mapping[str, Attribute], start_ns: int, duration_s: float | None,
    events: Sequence[Event], arrivals: Arrivals | None, kind: str | None,
) -> None:  # fmt: skip
    """Fill ttft_s, ttft_source, e2e_s and tpot_s of a request where the span does not state them.

    tpot_s = (e2e_s - ttft_s) / (output_tokens - 1): the first token is paid for by ttft_s.
    """
    if "ttft_s" in found:
        found["ttft_source"] = "client" if origin["ttft_s"].key in CLIENT_TTFT else "server"
    if found.get("operation") not in REQUESTS:
        return
    if "ttft_s" not in found and (first_s := _first_token_s(start_ns, events, arrivals)) is not None:
        found["ttft_s"] = first_s
        found["ttft_source"] = "server" if kind == "server" else "client"
    if "e2e_s" not in found and duration_s is not None:
        found["e2e_s"] = duration_s
    if "tpot_s" not in found and found.get("output_tokens", 0) > 1 and "ttft_s" in found:
        rest_s = found.get("e2e_s", -1.0) - found["ttft_s"]
        if rest_s >= 0:
            found["tpot_s"] = rest_s / (found["output_tokens"] - 1)


def name_error(found: dict[str, Any], status: str | None, events: Sequence[Event]) -> None:
    """Name the error of a failed span that has no error attribute: its last exception, else `_OTHER`."""
    if status != "error" or "error_code" in found:
        return
    raised = [error_type(attributes.get("exception.type")) for name, _, attributes in events if name == "exception"]
    found["error_code"] = next((code for code in reversed(raised) if code), OTHER)


def _first_token_s(start_ns: int, events: Sequence[Event], arrivals: Arrivals | None) -> float | None:
    """Seconds from the start to the earliest token, from events or an array of arrivals; None where neither tells."""
    first_ns = first_token_ns(events) if events else -1
    if first_ns >= start_ns:
        return (first_ns - start_ns) * _NANO
    return arrivals.offsets_us[0] * _MICRO if arrivals is not None and arrivals.offsets_us else None
