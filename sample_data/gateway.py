"""Access log of the gateway before chat-api: Envoy's JSON lines, made from the simulated requests when they are loaded.

Each client keeps a connection and closes it after some requests. For ninety minutes a new client library closes it
after two: requests pay for handshakes, latency of the engine does not change.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sample_data import fleet
from sample_data.incidents import Incident
from store.batch import Batch

if TYPE_CHECKING:
    import polars as pl

SERVICE, BEHIND = "edge", fleet.CHAT_API.name
_SEED = 20261130
_CLIENTS = 24
_REQUESTS, _REQUESTS_CHURN = 14.0, 2.0  # a connection serves before it is closed; geometric
_HANDSHAKE_MS, _HANDSHAKE_SIGMA = 42.0, 0.25
CHURN = fleet.END.replace(hour=12), fleet.END.replace(hour=13, minute=30)


def incidents() -> tuple[Incident, ...]:
    """Return the labelled incident of the gateway."""
    text = "edge: a new client library closes its connection after two requests; before, one served fourteen"
    return (Incident("edge-1", "connection_churn", SERVICE, *CHURN, CHURN[1] + timedelta(minutes=5), None, text),)


def batch(spans: "pl.DataFrame") -> Batch:
    """Decode the log as an import does."""
    import orjson

    from collector.files.access.decode import decode_access_log
    from collector.files.content import Content, Format
    from collector.files.options import FileKind, ImportOptions

    body = b"\n".join(map(orjson.dumps, lines(spans)))
    content = Content(Path("gateway.jsonl"), body, Format.JSON)
    options = ImportOptions(labels={"service": SERVICE, "environment": "simulation"})
    return decode_access_log(content, FileKind.ACCESS_LOG, options, "sample_data/simulated/gateway")[0]


def lines(spans: "pl.DataFrame") -> Iterator[dict[str, Any]]:
    """Yield one line per request of the service behind, in order of arrival."""
    import polars as pl

    rng = np.random.default_rng([_SEED, 7])
    requests = spans.filter(pl.col("service") == BEHIND).sort("ts")
    client = rng.integers(0, _CLIENTS, requests.height)
    leaves = rng.random(requests.height).round(6)
    handshake = (_HANDSHAKE_MS * np.exp(rng.normal(0, _HANDSHAKE_SIGMA, requests.height).round(6))).round()
    port, opened = np.arange(_CLIENTS) + 40_000, np.zeros(_CLIENTS, dtype=int)
    connection = np.arange(_CLIENTS)
    following = _CLIENTS
    for i, row in enumerate(requests.select("ts", "request_id", "duration_s", "error_code").to_dicts()):
        at, who = row["ts"].replace(tzinfo=UTC), client[i]
        if opened[who] == 0:
            connection[who], following, port[who] = following, following + 1, port[who] + _CLIENTS
            opened[who] = handshake[i]
        yield _line(at, row, int(who), int(connection[who]), int(port[who]) % 20_000 + 40_000, int(opened[who]))
        usual = _REQUESTS_CHURN if CHURN[0] <= at < CHURN[1] else _REQUESTS
        if leaves[i] < 1 / usual:
            opened[who] = 0


def _line(at: datetime, row: dict[str, Any], who: int, connection: int, port: int, handshake_ms: int) -> dict[str, Any]:
    refused = row["error_code"] or ""
    return {
        "start_time": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z",
        "method": "POST",
        "path": "/v1/chat/completions",
        "protocol": "HTTP/1.1",
        "response_code": int(refused.removeprefix("HTTP_")) if refused.startswith("HTTP_") else 504 if refused else 200,
        "duration": round(row["duration_s"] * 1000) + 1,
        "request_id": row["request_id"],
        "authority": "chat.example.com",
        "upstream_cluster": BEHIND,
        "downstream_remote_address": f"192.0.2.{who + 10}:{port}",
        "downstream_tls_version": "TLSv1.3",
        "downstream_handshake_duration": handshake_ms,
        "connection_id": connection,
    }
