"""Pages and ports, without a model."""

from tests.collector.probe.asking import ask, ask_once
from tests.collector.probe.server import Engine


def test_a_page_is_read_to_its_end(served: Engine) -> None:
    attempt = ask_once(f"http://{served.address}/health?x=1")
    assert attempt.fault is None
    assert (attempt.status, attempt.body_bytes) == (200, len("a page"))
    assert attempt.ttft_s is None
    assert attempt.ttfb_s is not None
    assert [one.path for one in served.asked] == ["/health?x=1"]


def test_an_error_page_is_an_error(served: Engine) -> None:
    served.script.status = 503
    attempt = ask_once(f"http://{served.address}/health")
    assert attempt.fault is not None
    assert attempt.fault.code == "HTTP_503"


def test_a_port_that_is_open_is_connected_to(served: Engine) -> None:
    attempts = ask(f"tcp://{served.address}", count=3)
    assert [attempt.fault for attempt in attempts] == [None] * 3
    assert all(attempt.tcp_s for attempt in attempts)
    assert served.asked == []
