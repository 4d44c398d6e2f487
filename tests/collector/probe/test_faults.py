"""Everything that goes wrong has one code, a sentence, and the time it took."""

import socket
from pathlib import Path

import pytest

from collector.prometheus.config import TlsConfig
from store.errors import SourceError
from tests.collector.probe.asking import ask, ask_once
from tests.collector.probe.server import Engine, Script
from tests.collector.prometheus.server import serve
from tests.rules.servers import free_port


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_an_error_of_the_server_is_its_status(served: Engine, status: int) -> None:
    served.script.status = status
    attempt = ask_once(f"http://{served.address}/v1")
    assert attempt.fault is not None
    assert (attempt.fault.code, attempt.status) == (f"HTTP_{status}", status)
    assert attempt.answered
    assert "secret" not in repr(attempt)


@pytest.mark.parametrize(
    ("fault", "code", "events"),
    [
        ("cut", "CUT_SHORT", 1),
        ("close", "NO_ANSWER", 0),
        ("error_event", "HTTP_503", 1),
        ("no_done", "CUT_SHORT", 3),
        ("html", "NO_TOKENS", 0),
        ("bad_json", "BAD_ANSWER", 0),
    ],
)
def test_an_answer_that_is_none_says_in_which_way(served: Engine, fault: str, code: str, events: int) -> None:
    served.script.fault = fault
    attempt = ask_once(f"http://{served.address}/v1")
    assert attempt.fault is not None
    assert attempt.fault.code == code
    assert len(attempt.answer.arrivals) == events
    assert "secret" not in repr(attempt)


@pytest.mark.parametrize(("fault", "events"), [("hang", 0), ("hang_mid", 1)])
def test_an_answer_that_does_not_end_is_given_up_after_the_timeout(served: Engine, fault: str, events: int) -> None:
    served.script.fault = fault
    attempt = ask_once(f"http://{served.address}/v1", timeout="1s")
    assert attempt.fault is not None
    assert attempt.fault.code == "TIMEOUT"
    assert len(attempt.answer.arrivals) == events
    assert attempt.e2e_s >= 1


def test_an_answer_is_complete_at_its_done_whatever_the_connection_does_then(served: Engine) -> None:
    served.script.fault = "hang_done"
    attempt = ask_once(f"http://{served.address}/v1", timeout="3s")
    assert attempt.fault is None
    assert attempt.e2e_s < 3


def test_faults_of_one_attempt_leave_the_others_alone(served: Engine) -> None:
    served.script.fault = "cut"
    attempts = ask(f"http://{served.address}/v1", count=2, keep_alive=True)
    served.script = Script()
    assert [attempt.fault.code for attempt in attempts if attempt.fault] == ["CUT_SHORT", "CUT_SHORT"]
    assert ask_once(f"http://{served.address}/v1").fault is None


def test_a_closed_port_refuses() -> None:
    for url in (f"http://127.0.0.1:{free_port()}/v1", f"tcp://127.0.0.1:{free_port()}"):
        attempt = ask_once(url)
        assert attempt.fault is not None
        assert attempt.fault.code == "CONNECTION_REFUSED"
        assert not attempt.answered
        assert [phase.name for phase in attempt.timeline.phases if phase.failed] == ["connect"]


def test_the_next_address_of_a_name_is_tried_and_the_last_one_decides(
    served: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(served.address.rpartition(":")[2])
    known = {"first-dead.test": ["127.0.0.2", "127.0.0.1"], "dead.test": ["127.0.0.2", "127.0.0.3"]}
    real = socket.getaddrinfo

    def resolved(host: str, *args: object, **more: object) -> list[tuple[object, ...]]:
        if host not in known:
            return list(real(host, *args, **more))  # type: ignore[arg-type]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in known[host]]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    attempt = ask_once(f"http://first-dead.test:{port}/v1", model="m")
    assert attempt.fault is None
    assert [(phase.name, phase.failed) for phase in attempt.timeline.phases] == [
        ("dns.lookup", False), ("connect", True), ("connect", False),
    ]  # fmt: skip
    assert served.requests[-1].headers["host"] == f"first-dead.test:{port}"
    failed = ask_once(f"http://dead.test:{port}/v1", model="m")
    assert failed.fault is not None
    assert failed.fault.code == "CONNECTION_REFUSED"


def test_an_unknown_name_is_a_fault_of_the_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    for url in ("http://engine.invalid/v1", "http://engine.invalid/", "tcp://engine.invalid:80"):
        attempt = ask_once(url, model="m")
        assert attempt.fault is not None
        assert attempt.fault.code == "DNS"
        assert [phase.name for phase in attempt.timeline.phases] == ["dns.lookup"]


def test_an_endpoint_without_models_says_what_to_do(served: Engine) -> None:
    served.script.models = ()
    attempt = ask_once(f"http://{served.address}/v1", count=5)
    assert attempt.fault is not None
    assert attempt.fault.code == "NO_MODEL"
    assert "--model" in attempt.fault.remedy


def test_a_handshake_is_timed_and_the_certificate_checked(secure: Engine, certificate: Path) -> None:
    tls = TlsConfig(ca_file=str(certificate / "cert.pem"))
    port = secure.address.rpartition(":")[2]
    attempt = ask_once(f"https://localhost:{port}/v1", tls_config=tls)
    assert attempt.fault is None
    assert [phase.name for phase in attempt.timeline.phases if not phase.failed] == [
        "dns.lookup", "connect", "tls.handshake",
    ]  # fmt: skip
    assert attempt.tls_s is not None
    assert attempt.tls_s > 0
    wrong = ask_once(f"https://{secure.address}/v1", tls_config=tls)
    unknown = ask_once(f"https://localhost:{port}/v1")
    for failed in (wrong, unknown):
        assert failed.fault is not None
        assert failed.fault.code == "TLS"
        assert failed.timeline.failed_phase == "tls.handshake"
    assert unknown.fault is not None
    assert "certificate" in unknown.fault.text
    named = TlsConfig(ca_file=tls.ca_file, server_name="localhost")
    assert ask_once(f"https://{secure.address}/v1", tls_config=named).fault is None


def test_a_port_that_speaks_no_tls_or_only_tls_is_told_apart(secure: Engine) -> None:
    with serve() as plain:
        no_tls = ask_once(f"https://{plain.address}/v1")
    assert no_tls.fault is not None
    assert no_tls.fault.code == "TLS"
    only_tls = ask_once(f"http://{secure.address}/v1")
    assert only_tls.fault is not None
    assert only_tls.fault.code in ("NO_ANSWER", "CONNECTION_RESET")


def test_a_handshake_that_nobody_answers_is_a_timeout_that_names_it(served: Engine) -> None:
    attempt = ask_once(f"https://{served.address}/v1", timeout="1s")
    assert attempt.fault is not None
    assert attempt.fault.code == "TIMEOUT"
    assert "tls.handshake" in attempt.fault.text


def test_a_missing_file_is_named_before_anything_is_asked(tmp_path: Path) -> None:
    from collector.prometheus.config import Authorization

    absent = str(tmp_path / "absent")
    with pytest.raises(SourceError, match="absent"):
        ask("https://127.0.0.1:1/v1", tls_config=TlsConfig(ca_file=absent))
    with pytest.raises(SourceError, match="absent"):
        ask("http://127.0.0.1:1/v1", authorization=Authorization(credentials_file=absent))
