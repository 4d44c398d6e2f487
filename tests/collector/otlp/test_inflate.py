"""gzip within limits."""

import gzip
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.otlp.inflate import TooLargeError, inflate
from store.errors import SourceError

MIB = 1 << 20


@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=3))
def test_one_or_several_members_come_back_whole(parts: list[bytes]) -> None:
    assert inflate(b"".join(gzip.compress(part) for part in parts), 10_000) == b"".join(parts)


@given(st.binary(min_size=1, max_size=300), st.integers(0, 400))
def test_the_limit_is_exact(content: bytes, limit: int) -> None:
    body = gzip.compress(content)
    if len(content) <= limit:
        assert inflate(body, limit) == content
    else:
        with pytest.raises(TooLargeError):
            inflate(body, limit)


@pytest.mark.parametrize("lie", [b"", b"\0\0\0\0"])
def test_a_bomb_is_refused_without_its_memory_whatever_size_it_claims(lie: bytes) -> None:
    bomb = gzip.compress(bytes(64 * MIB))
    bomb = bomb[:-4] + lie if lie else bomb
    tracemalloc.start()
    with pytest.raises(TooLargeError):
        inflate(bomb, 8 * MIB)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * MIB


@pytest.mark.parametrize(
    "body", [b"plain", gzip.compress(b"x" * 1000)[:-9], gzip.compress(b"x") + b"junk", b"\x1f\x8b"]
)
def test_what_is_no_whole_gzip_stream_is_a_source_error(body: bytes) -> None:
    with pytest.raises(SourceError):
        inflate(body, MIB)
