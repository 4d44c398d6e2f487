"""Which server a request went to."""

from typing import Any

import pytest

from collector.otlp.address import take_server_address


@pytest.mark.parametrize(
    ("attributes", "address", "left"),
    [
        ({"server.address": "llm", "server.port": 8000}, "llm:8000", set()),
        ({"server.address": "llm"}, "llm", set()),
        ({"net.peer.name": "old", "net.peer.port": "80"}, "old:80", set()),
        ({"gen_ai.openai.api_base": "https://u:secret@api.x.ai:1/v1"}, "api.x.ai:1", {"gen_ai.openai.api_base"}),
        ({"url.full": "http://[broken"}, None, {"url.full"}),
        ({}, None, set()),
    ],
)
def test_the_address_is_read_from_old_and_new_names(
    attributes: dict[str, Any], address: str | None, left: set[str]
) -> None:
    assert take_server_address(attributes, "client") == address
    assert set(attributes) == left


def test_the_peer_of_a_server_span_is_its_caller() -> None:
    attributes = {"net.peer.name": "caller"}
    assert take_server_address(attributes, "server") is None
    assert attributes == {"net.peer.name": "caller"}
