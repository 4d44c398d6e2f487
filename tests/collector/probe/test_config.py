"""Which URL asks what, and what of a configuration is refused."""

from typing import Any

import pytest

from collector.probe.config import ProbeConfig, compile_probe
from collector.probe.target import Operation, parse_target
from collector.prometheus.config import JobError
from store.errors import UsageError


@pytest.mark.parametrize(
    ("url", "operation", "path", "models"),
    [
        ("http://h:8000/v1", Operation.CHAT, "/v1/chat/completions", "/v1/models"),
        ("http://h:8000/v1/", Operation.CHAT, "/v1/chat/completions", "/v1/models"),
        ("https://h/openai/v1", Operation.CHAT, "/openai/v1/chat/completions", "/openai/v1/models"),
        ("https://h/api/v1beta2", Operation.CHAT, "/api/v1beta2/chat/completions", "/api/v1beta2/models"),
        ("https://h/x/chat/completions?v=1", Operation.CHAT, "/x/chat/completions?v=1", "/x/models?v=1"),
        ("http://h/v1/completions", Operation.COMPLETION, "/v1/completions", "/v1/models"),
        ("http://h/health", Operation.PAGE, "/health", ""),
        ("http://h", Operation.PAGE, "/", ""),
        ("http://h/a b?c=ü%20d", Operation.PAGE, "/a%20b?c=%C3%BC%20d", ""),
        ("tcp://h:1", Operation.TCP, "", ""),
    ],
)
def test_a_url_says_what_is_asked(url: str, operation: Operation, path: str, models: str) -> None:
    target = parse_target(url)
    assert (target.operation, target.path, target.models_path) == (operation, path, models)


def test_ports_and_addresses_are_as_in_a_url() -> None:
    assert parse_target("https://h/v1").address == "h:443"
    assert parse_target("http://[::1]:8000/v1").address == "[::1]:8000"


@pytest.mark.parametrize(
    "url", ["h:8000", "ftp://h/", "tcp://h", "http://", "http://h:99999/", "http://[::1/", "http://a..b/", ""]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="no address"):
        parse_target(url)


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"url": "nonsense"}, "url"),
        ({"count": 0}, "count"),
        ({"concurrency": -1}, "concurrency"),
        ({"prompt_tokens": 0}, "prompt_tokens"),
        ({"every": "soon"}, "every"),
        ({"timeout": "0s"}, "timeout"),
        ({"headers": {"a b": "c"}}, "headers"),
        ({"headers": {"a": "b\r\nc: d"}}, "headers"),
    ],
)
def test_what_cannot_be_used_names_its_key(given: dict[str, Any], key: str) -> None:
    with pytest.raises(JobError) as caught:
        compile_probe(ProbeConfig(**{"url": "http://h/v1", **given}))
    assert caught.value.path == (key,)
    assert caught.value.hint
