"""Secrets and certificates of a client, read from their files when they are needed, so that they may rotate."""

import base64
import ssl
from pathlib import Path
from urllib.parse import SplitResult, unquote

from collector.prometheus.config import HttpClient, TlsConfig
from store.errors import SourceError


def secret_header(http: HttpClient) -> str:
    """Return the Authorization header; '' for none. Raises SourceError for a file that cannot be read."""
    if http.basic_auth:
        basic = http.basic_auth
        return _basic(basic.username, _secret(basic.password, basic.password_file))
    token = http.token
    secret = f"{token.type} {_secret(token.credentials, token.credentials_file)}" if token else ""
    if any(ord(char) < ord(" ") for char in secret):
        raise SourceError("the credential holds a line break", "a token is one line")
    return secret


def url_secret(parts: SplitResult) -> str:
    """Return the Authorization header for user and password of a URL; '' for none."""
    return _basic(unquote(parts.username), unquote(parts.password or "")) if parts.username else ""


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _secret(value: str | None, file: str | None) -> str:
    if not file:
        return value or ""
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise SourceError(f"{file}: {reason}", "the file with the credential must be readable") from error


def changed(file: str) -> int:
    """Return when a file was changed, in ns; 0 where it is not there."""
    try:
        return Path(file).stat().st_mtime_ns
    except OSError:
        return 0


def tls_context(tls: TlsConfig) -> ssl.SSLContext:
    """Return the TLS context of a client. Raises SourceError naming the files that cannot be used."""
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
