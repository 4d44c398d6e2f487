"""Tests of the configuration of event streams."""

import msgspec
import pytest

from collector.kv_events.settings import Endpoint, KvEvents, endpoints
from store.errors import ConfigError


def test_an_entry_is_an_endpoint() -> None:
    entry = msgspec.convert(
        {
            "endpoint": "tcp://*:5557",
            "replay_endpoint": "tcp://gpu1:5558",
            "bind": True,
            "topic": "kv",
            "service": "chat",
        },
        KvEvents,
    )
    assert endpoints([entry]) == [Endpoint("tcp://*:5557", "tcp://gpu1:5558", True, "kv", "chat")]


def test_ranks_are_at_the_ports_that_follow() -> None:
    found = endpoints([KvEvents("tcp://[::1]:5557", "tcp://gpu1:5657", data_parallel_ranks=3)])
    assert [endpoint.address for endpoint in found] == ["tcp://[::1]:5557", "tcp://[::1]:5558", "tcp://[::1]:5559"]
    assert [endpoint.replay for endpoint in found] == ["tcp://gpu1:5657", "tcp://gpu1:5658", "tcp://gpu1:5659"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (KvEvents("http://gpu1:5557"), "no endpoint"),
        (KvEvents("tcp://gpu1"), "no endpoint"),
        (KvEvents("tcp://gpu1:65535", data_parallel_ranks=2), "no endpoint"),
        (KvEvents("tcp://*:5557"), "no host"),
        (KvEvents("tcp://*:5557", "tcp://*:5558", bind=True), "no host"),
        (KvEvents("ipc:///run/kv", data_parallel_ranks=2), "no port"),
        (KvEvents("tcp://gpu1:5557", data_parallel_ranks=0), "less than 1"),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused(entry: KvEvents, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        endpoints([entry])


def test_an_address_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="twice"):
        endpoints([KvEvents("tcp://gpu1:5557", data_parallel_ranks=2), KvEvents("tcp://gpu1:5558")])
