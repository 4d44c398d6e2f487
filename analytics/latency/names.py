"""Which part of a request a span or an attribute stands for, by its name."""

from collections.abc import Mapping

SEGMENTS = (
    "dns", "tcp", "tls", "model_load", "queue", "prefill", "decode", "first_token", "upstream", "transfer", "other",
)  # fmt: skip
"""In the order a request goes through them. `first_token` and `upstream` are times that nothing divides further."""

_STAGES: Mapping[str, tuple[str, ...]] = {
    "dns": ("dns", "dns.lookup", "dns_lookup", "http.dns"),
    "tcp": ("connect", "tcp.connect", "http.connect"),
    "tls": ("tls", "tls.handshake", "http.tls"),
    "model_load": (
        "model_load", "load_model", "model.load", "base_model_load", "lora_load", "adapter_load", "weight_load",
        "cold_start",
    ),
    "queue": ("prefill_waiting", "decode_waiting", "queue", "queue_wait", "queue.wait", "scheduling"),
    "prefill": ("prefill", "prefill_forward", "chunked_prefill"),
    "decode": ("decode", "decode_forward", "decode_loop"),
    "transfer": (
        "prefill_transfer_kv_cache", "decode_transferred", "kv_transfer", "tokenize", "detokenize", "serialize",
        "deserialize",
    ),
}  # fmt: skip
STAGE_SEGMENTS = {name: segment for segment, names in _STAGES.items() for name in names}
"""Span name in lower case → segment: SGLang's stages, Go's httptrace, the phases of a probe, and plain words."""

ATTRIBUTE_SEGMENTS = {
    "tls.handshake_s": "tls",
    "upstream.connect_s": "tcp",
    "load_balancer.request_s": "transfer",
    "load_balancer.response_s": "transfer",
    "request.read_s": "transfer",
    "response.write_s": "transfer",
    "upstream.response_s": "upstream",
}
"""Times that access logs state, in seconds, as they are imported."""
NETWORK = ("dns", "tcp", "tls")
LOADS = frozenset(_STAGES["model_load"])
"""Names of spans that load a model."""
