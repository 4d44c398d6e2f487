"""One HTTP GET of a metrics page: authentication, TLS, time and size limits, errors in the reader's terms."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from collector.prometheus.targets import Target, TlsConfig
from store.errors import SourceError

ACCEPT = "text/plain;version=0.0.4,*/*;q=0.1"
"""Not OpenMetrics: prometheus_client would then turn `a:b` into `a_b` below a TYPE line that keeps `a:b`."""
_MOVED = 5  # redirects followed; a target has no reason for more


@dataclass(frozen=True, slots=True)
class Page:
    """An answer with status 200: body after decompression, and its content type ('' for none)."""

    body: bytes
    content_type: str


@dataclass(slots=True)
class Fetcher:
    """Fetches pages over one connection pool per TLS configuration. Close it when done."""

    _clients: dict[TlsConfig, httpx.AsyncClient] = field(default_factory=dict)

    async def fetch(self, target: Target) -> Page:
        """GET the page of a target. Raises SourceError that says what went wrong."""
        try:
            async with asyncio.timeout(target.timeout_s):
                return await self._get(target)
        except TimeoutError as error:
            raise SourceError(f"no complete answer within {target.timeout_s:g} s", "raise scrape_timeout") from error
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
            raise SourceError(_reason(error), "is the target up, and the address right?") from error
        except OSError as error:
            raise SourceError(f"{error.filename or target.url}: {error.strerror or error}") from error

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    async def _get(self, target: Target) -> Page:
        client = self._client(target.tls)
        extensions = {"sni_hostname": target.tls.server_name} if target.tls.server_name else {}
        async with client.stream(
            "GET", target.url, headers=_headers(target), auth=_auth(target), extensions=extensions
        ) as answer:
            if answer.status_code != httpx.codes.OK:
                raise SourceError(f"HTTP {answer.status_code} {answer.reason_phrase}".rstrip(), _advice(answer))
            body = bytearray()
            async for chunk in answer.aiter_bytes():
                body += chunk
                if target.body_size_limit_bytes and len(body) > target.body_size_limit_bytes:
                    raise SourceError(
                        f"the page is larger than body_size_limit ({target.body_size_limit_bytes} bytes)",
                        "raise body_size_limit",
                    )
            return Page(bytes(body), answer.headers.get("content-type", ""))

    def _client(self, tls: TlsConfig) -> httpx.AsyncClient:
        if tls not in self._clients:
            self._clients[tls] = httpx.AsyncClient(
                verify=_context(tls),
                trust_env=False,
                follow_redirects=True,
                max_redirects=_MOVED,
                timeout=None,  # noqa: S113 - the whole fetch has one time limit
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            )
        return self._clients[tls]


def _context(tls: TlsConfig) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if tls.cert_file:
            context.load_cert_chain(tls.cert_file, tls.key_file)
    except OSError as error:  # SSLError is one; neither names the file
        named = ", ".join(file for file in (tls.ca_file, tls.cert_file, tls.key_file) if file)
        raise SourceError(
            f"tls_config ({named}): {error.strerror or error}", "the files must be readable PEM"
        ) from error
    if tls.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _headers(target: Target) -> Mapping[str, str]:
    headers = {
        "Accept": ACCEPT,
        "Accept-Encoding": "gzip",
        "User-Agent": "infractl",
        "X-Prometheus-Scrape-Timeout-Seconds": f"{target.timeout_s:g}",
    }
    if target.authorization:
        secret = _secret(target.authorization.credentials, target.authorization.credentials_file)
        headers["Authorization"] = f"{target.authorization.type} {secret}"
    return headers


def _auth(target: Target) -> httpx.BasicAuth | None:
    basic = target.basic_auth
    return httpx.BasicAuth(basic.username, _secret(basic.password, basic.password_file)) if basic else None


def _secret(value: str | None, file: str | None) -> str:
    return Path(file).read_text("utf-8").strip() if file else value or ""


def _advice(answer: httpx.Response) -> str:
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return "check authorization or basic_auth of the job"
    return "check metrics_path" if answer.status_code == httpx.codes.NOT_FOUND else "see the target's own log"


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
