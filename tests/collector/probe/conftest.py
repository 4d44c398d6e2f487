"""Fixtures for probing: an engine with known delays."""

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.probe.server import Engine, engine


@pytest.fixture
def served() -> Iterator[Engine]:
    with engine() as made:
        yield made


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with cert.pem and key.pem for localhost."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command.split(), *names], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def secure(certificate: Path) -> Iterator[Engine]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with engine(tls=context) as made:
        yield made
