"""What a probe asks: an OpenAI-compatible endpoint, a plain page or a TCP port, told by its URL."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import SplitResult, quote, urlsplit

from collector.prometheus.masking import shown
from store.errors import UsageError

PORTS = {"http": 80, "https": 443}
_VERSION = re.compile(r"/v\d+[a-z0-9]*$")
_SENT_AS_IS = "/?%&=:;,+@!$'()*~[]"
_REMEDY = "write it like http://127.0.0.1:8000/v1, https://example.com/health or tcp://127.0.0.1:8000"


class Operation(StrEnum):
    """What is asked. The first two are model requests, under their names in spans.operation."""

    CHAT = "chat"
    COMPLETION = "text_completion"
    PAGE = "page"
    TCP = "tcp"

    @property
    def is_inference(self) -> bool:
        """Whether it asks a model."""
        return self in (Operation.CHAT, Operation.COMPLETION)


_PATHS = {Operation.CHAT: "/chat/completions", Operation.COMPLETION: "/completions"}


@dataclass(frozen=True, slots=True)
class Target:
    """Where to ask.

    `path` and `models_path` (the list of models; '' where none is asked) are encoded, the query included; `shown_url`
    holds no secrets.
    """

    operation: Operation
    scheme: str
    host: str
    port: int
    path: str
    shown_url: str
    models_path: str = ""
    parts: SplitResult = field(default_factory=lambda: urlsplit(""), repr=False)

    @property
    def address(self) -> str:
        """host:port, as spans.server_address has it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_target(url: str) -> Target:
    """Read a URL. A path that ends in a version (/v1) is the base of an OpenAI-compatible API and means chat.

    Raises UsageError for anything that cannot be probed.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme)
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise UsageError(f"{shown(url)} is no address to probe", _REMEDY) from None
    if parts.scheme not in (*PORTS, "tcp") or not parts.hostname or port is None:
        raise UsageError(f"{shown(url)} is no address to probe", _REMEDY)
    operation, path, models_path = _asked(parts)
    query = f"?{parts.query}" if parts.query else ""
    path, models_path = (quote(one and one + query, safe=_SENT_AS_IS) for one in (path, models_path))
    return Target(operation, parts.scheme, parts.hostname, port, path, shown(url), models_path, parts)


def _asked(parts: SplitResult) -> tuple[Operation, str, str]:
    """Operation, path and path of the list of models."""
    if parts.scheme == "tcp":
        return Operation.TCP, "", ""
    path = parts.path.rstrip("/")
    for operation, end in _PATHS.items():
        if path.endswith(end):
            return operation, path, path.removesuffix(end) + "/models"
    if _VERSION.search(path):
        return Operation.CHAT, path + _PATHS[Operation.CHAT], path + "/models"
    return Operation.PAGE, parts.path or "/", ""
