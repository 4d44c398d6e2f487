"""Which span is one model request, and the figures that follow from what it states."""

from collections.abc import Mapping, Sequence
from typing import Any

from collector.otlp.dialects import CLIENT_TTFT, ENGINES, FIRST_TOKEN_EVENTS
from collector.otlp.failures import OTHER, error_type
from store.tables import INFERENCE_OPERATIONS

Event = tuple[str, int, dict[str, Any]]
"""Name, Unix time in ns, attributes."""

_NANO = 1e-9
_MARKS = (
    "input_tokens", "output_tokens", "ttft_s", "e2e_s", "queue_s", "prefill_s", "decode_s", "inference_s", "tpot_s",
    "request_model",
)  # fmt: skip
_REQUESTS = frozenset(INFERENCE_OPERATIONS)


def name_request(found: dict[str, Any], scope: str | None, module: Any) -> None:
    """Set operation, model and, for an engine's span, provider.

    Engines and old instrumentations name no operation: a span that states tokens, a latency or the model asked for is a
    request; a start-up or stage span states none of them and stays without an operation.
    """
    if "operation" not in found and any(mark in found for mark in _MARKS):
        found["operation"] = "inference"
    model = found.get("response_model") or found.get("request_model")
    if model is not None:
        found["model"] = model
    if "provider" not in found and "operation" in found:
        named = f"{scope or ''} {module or ''}".lower().split()
        engine = next((e for e in ENGINES if any(word.startswith(e) for word in named)), None)
        if engine is not None:
            found["provider"] = engine


def derive_latency(
    found: dict[str, Any], origin: Mapping[str, str], start_ns: int, duration_s: float | None, events: Sequence[Event],
    kind: str | None,
) -> None:  # fmt: skip
    """Fill ttft_s, ttft_source, e2e_s and tpot_s of a request where the span does not state them.

    tpot_s = (e2e_s - ttft_s) / (output_tokens - 1): the first token is paid for by ttft_s.
    """
    if "ttft_s" in found:
        found["ttft_source"] = "client" if origin["ttft_s"] in CLIENT_TTFT else "server"
    if found.get("operation") not in _REQUESTS:
        return
    if "ttft_s" not in found and (first := _first_token(events)) >= start_ns:
        found["ttft_s"] = (first - start_ns) * _NANO
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


def _first_token(events: Sequence[Event]) -> int:
    """Time of the earliest first-token event, -1 where there is none."""
    return min((at for name, at, _ in events if name in FIRST_TOKEN_EVENTS), default=-1)
