"""Authentication and TLS against a real server."""

import asyncio
import base64
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.prometheus.config import ScrapeConfig
from collector.prometheus.fetch import Fetcher, Page
from collector.prometheus.jobs import compile_jobs
from store.errors import SourceError
from tests.collector.prometheus.server import Answer, PageServer, serve


def fetch(address: str, **config: Any) -> Page:
    raw = {"job_name": "j", "static_configs": [{"targets": [address]}], **config}

    async def go() -> Page:
        fetcher = Fetcher()
        try:
            return await fetcher.fetch(compile_jobs([msgspec.convert(raw, ScrapeConfig)])[0].targets().kept[0])
        finally:
            await fetcher.close()

    return asyncio.run(go())


def test_a_token_is_sent_and_its_file_is_read_at_every_scrape(pages: PageServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    for text in ("one\n", "two\n"):
        token.write_text(text)
        fetch(pages.address, authorization={"credentials_file": str(token)})
    fetch(pages.address, authorization={"type": "Token", "credentials": "three"})
    assert [asked["authorization"] for asked in pages.asked] == ["Bearer one", "Bearer two", "Token three"]


def test_basic_authentication_is_sent(pages: PageServer) -> None:
    fetch(pages.address, basic_auth={"username": "u", "password": "p:ä"})
    scheme, text = pages.asked[0]["authorization"].split()
    assert (scheme, base64.b64decode(text).decode()) == ("Basic", "u:p:ä")


def test_a_missing_secret_file_is_named(pages: PageServer, tmp_path: Path) -> None:
    missing = tmp_path / "absent"
    with pytest.raises(SourceError, match="absent"):
        fetch(pages.address, authorization={"credentials_file": str(missing)})


def test_a_refused_login_says_what_to_check(pages: PageServer) -> None:
    pages.answer = Answer(status=401)
    with pytest.raises(SourceError, match="HTTP 401") as caught:
        fetch(pages.address)
    assert "authorization" in caught.value.hint


def test_proxies_of_the_environment_are_not_used(pages: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    pages.answer = Answer(b"a 1\n")
    assert fetch(pages.address).body == b"a 1\n"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=engine.test"
    names = ["-addext", "subjectAltName=DNS:engine.test"]
    subprocess.run([*command.split(), *names], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def secure(certificate: Path) -> Iterator[PageServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with serve(context) as server:
        server.answer = Answer(b"a 1\n")
        yield server


def test_a_certificate_is_checked_against_ca_file_and_server_name(secure: PageServer, certificate: Path) -> None:
    tls = {"ca_file": str(certificate / "cert.pem"), "server_name": "engine.test"}
    assert fetch(secure.address, scheme="https", tls_config=tls).body == b"a 1\n"


@pytest.mark.parametrize("server_name", [None, "other.test"])
def test_a_certificate_for_another_name_is_refused(
    secure: PageServer, certificate: Path, server_name: str | None
) -> None:
    tls = {"ca_file": str(certificate / "cert.pem"), "server_name": server_name}
    with pytest.raises(SourceError, match=r"(?i)certificate"):
        fetch(secure.address, scheme="https", tls_config=tls)


def test_an_unknown_certificate_is_refused_unless_told_otherwise(secure: PageServer) -> None:
    with pytest.raises(SourceError, match=r"(?i)certificate"):
        fetch(secure.address, scheme="https")
    assert fetch(secure.address, scheme="https", tls_config={"insecure_skip_verify": True}).body == b"a 1\n"


def test_a_missing_ca_file_is_named(secure: PageServer, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"absent\.pem"):
        fetch(secure.address, scheme="https", tls_config={"ca_file": str(tmp_path / "absent.pem")})


def test_a_client_certificate_is_presented(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificate / "cert.pem")
    tls = {"insecure_skip_verify": True}
    own = {"cert_file": str(certificate / "cert.pem"), "key_file": str(certificate / "key.pem")}
    with serve(context) as server:
        server.answer = Answer(b"a 1\n")
        with pytest.raises(SourceError):
            fetch(server.address, scheme="https", tls_config=tls)
        assert fetch(server.address, scheme="https", tls_config={**tls, **own}).body == b"a 1\n"


def test_the_older_bearer_token_keys_are_read(pages: PageServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("two\n")
    fetch(pages.address, bearer_token="one")
    fetch(pages.address, bearer_token_file=str(token))
    assert [asked["authorization"] for asked in pages.asked] == ["Bearer one", "Bearer two"]


def test_a_packed_answer_is_asked_for_unless_the_job_says_no(pages: PageServer) -> None:
    pages.answer = Answer(b"a 1\n")
    assert fetch(pages.address).body == fetch(pages.address, enable_compression=False).body == b"a 1\n"
    assert [asked.get("accept-encoding") for asked in pages.asked] == ["gzip", None]


def test_a_renewed_certificate_is_read_without_a_restart(secure: PageServer, certificate: Path, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    other = "openssl req -x509 -newkey rsa:2048 -nodes -keyout /dev/null -days 2 -subj /CN=other.test -out"
    subprocess.run([*other.split(), str(ca)], check=True, capture_output=True)
    tls = {"ca_file": str(ca), "server_name": "engine.test"}
    raw = {"job_name": "j", "scheme": "https", "tls_config": tls, "static_configs": [{"targets": [secure.address]}]}
    (target,) = compile_jobs([msgspec.convert(raw, ScrapeConfig)])[0].targets().kept

    async def go() -> bytes:
        fetcher = Fetcher()
        with pytest.raises(SourceError, match="certificate"):
            await fetcher.fetch(target)
        shutil.copy(certificate / "cert.pem", ca)
        page = await fetcher.fetch(target)
        await fetcher.close()
        return page.body

    assert asyncio.run(go()) == b"a 1\n"
