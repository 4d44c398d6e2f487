"""Errors by one name."""

from typing import Any

import pytest

from collector.otlp.failures import error_type, grpc_error, http_error


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("429", "HTTP_429"),
        (503, "HTTP_503"),
        ("HTTP_429", "HTTP_429"),
        ("429 Too Many Requests", "HTTP_429"),
        ("UNAVAILABLE", "GRPC_UNAVAILABLE"),
        ("timeout", "TIMEOUT"),
        ("asyncio.exceptions.TimeoutError", "TIMEOUT"),
        ("openai.RateLimitError", "RateLimitError"),
        ("java.net.SocketTimeoutException", "SocketTimeoutException"),
        ("ConnectionError", "ConnectionError"),
        ("_OTHER", None),
        ("  ", None),
        (None, None),
    ],
)
def test_error_types_are_normalised(value: Any, code: str | None) -> None:
    assert error_type(value) == code


def test_a_message_in_place_of_a_type_is_cut() -> None:
    assert len(error_type("the model said: " + "x" * 10_000) or "") == 128


@pytest.mark.parametrize(
    ("value", "code"), [(200, None), (302, None), (404, "HTTP_404"), ("500", "HTTP_500"), (0, None)]
)
def test_http_statuses_below_400_are_no_errors(value: Any, code: str | None) -> None:
    assert http_error(value) == code


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0, None),
        ("OK", None),
        (14, "GRPC_UNAVAILABLE"),
        ("4", "GRPC_DEADLINE_EXCEEDED"),
        ("Aborted", "GRPC_ABORTED"),
        (99, None),
    ],
)
def test_grpc_statuses_are_read_by_number_and_name(value: Any, code: str | None) -> None:
    assert grpc_error(value) == code
