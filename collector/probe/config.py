"""`probes` of infractl.yaml: what to probe, how often, with which request."""

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from collector.probe.target import Target, parse_target
from collector.prometheus.config import Authorization, BasicAuth, HttpClient, JobError, TlsConfig
from store.errors import UsageError
from store.window import parse_duration

SERVICE = "infractl-probe"
"""spans.service of a probe that is given none: synthetic requests stay apart from those of users."""
_TOKEN_CHARS = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")


class ProbeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One probe: `count` requests, `concurrency` at a time, every `every`.

    `model` left out is the first that the endpoint lists. `prompt_tokens` makes a prompt of about that size, other
    words each time, so that no prefix cache answers. `usage` says how to ask for token counts: `chunks` with every
    chunk (vLLM, SGLang), `end` once, `none` not at all, `auto` by what the list of models says of the engine. `body`
    holds more fields of the request, null removes one. With `keep_alive` the requests of a round share connections.
    """

    url: str
    every: str = "60s"
    timeout: str = "30s"
    count: int = 1
    concurrency: int = 1
    model: str | None = None
    service: str = SERVICE
    environment: str | None = None
    prompt: str = "Count from one to twenty in words."
    prompt_tokens: int | None = None
    max_tokens: int = 32
    stream: bool = True
    usage: Literal["auto", "chunks", "end", "none"] = "auto"
    body: dict[str, Any] = {}
    headers: dict[str, str] = {}
    keep_alive: bool = False
    authorization: Authorization | None = None
    basic_auth: BasicAuth | None = None
    tls_config: TlsConfig = TlsConfig()

    @property
    def http(self) -> HttpClient:
        """Credentials and TLS in the form that scraping uses."""
        return HttpClient(
            authorization=self.authorization, basic_auth=self.basic_auth, tls_config=self.tls_config
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe whose values have been checked."""

    config: ProbeConfig
    target: Target
    every_s: float
    timeout_s: float


def compile_probe(config: ProbeConfig) -> Probe:
    """Check one probe. Raises JobError whose path names the key."""
    for key in ("count", "concurrency", "max_tokens", "prompt_tokens"):
        value = getattr(config, key)
        if value is not None and value < 1:
            raise JobError(f"{key} cannot be {value}", "write a number from 1", (key,))
    for name, value in config.headers.items():
        if not name or not _TOKEN_CHARS.issuperset(name.lower()) or not _is_line(value):
            raise JobError(f"header {name!r} cannot be sent", "a header is one line of ASCII: Name=value", ("headers",))
    try:
        target = parse_target(config.url)
    except UsageError as error:
        raise JobError(str(error), error.hint, ("url",)) from error
    return Probe(config, target, _seconds(config, "every"), _seconds(config, "timeout"))


def _is_line(value: str) -> bool:
    return value.isascii() and value.isprintable()


def _seconds(config: ProbeConfig, key: str) -> float:
    text: str = getattr(config, key)
    try:
        found = parse_duration(text).total_seconds()
    except UsageError as error:
        raise JobError(f"{key}: {error}", error.hint, (key,)) from error
    if found <= 0:
        raise JobError(f"{key} {text!r} is no time to wait", "write it like 30s", (key,))
    return found
