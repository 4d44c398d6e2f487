"""`server_address`: which host and port served a request, over old and new conventions."""

from typing import Any
from urllib.parse import urlsplit

from collector.otlp.values import text, whole

_PAIRS = (("server.address", "server.port"), ("net.peer.name", "net.peer.port"))
_URLS = ("gen_ai.openai.api_base", "url.full", "http.url")


def take_server_address(attributes: dict[str, Any], kind: str | None) -> str | None:
    """Return `host:port` (or `host`) and take what it was read from out of `attributes`; a URL stays there.

    On a server's or consumer's span `net.peer.name` is the caller, so it is not read.
    """
    for host_key, port_key in _PAIRS[:1] if kind in ("server", "consumer") else _PAIRS:
        host = text(attributes.get(host_key))
        if host is not None:
            attributes.pop(host_key)
            port = whole(attributes.pop(port_key, None))
            return host if port is None else f"{host}:{port}"
    return next((found for key in _URLS if (found := _netloc(attributes.get(key)))), None)


def _netloc(url: Any) -> str | None:
    """Host and port of a URL, without credentials."""
    if not isinstance(url, str):
        return None
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or None
    except ValueError:
        return None
