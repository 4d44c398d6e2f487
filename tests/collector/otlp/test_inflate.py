"""gzip and zstd within limits."""

import gzip
import tracemalloc

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.otlp.inflate import TooLargeError, inflate, inflate_zstd
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


def zstd(content: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(content))


@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=3))
def test_one_or_several_zstd_frames_come_back_whole(parts: list[bytes]) -> None:
    assert inflate_zstd(b"".join(map(zstd, parts)), 10_000) == b"".join(parts)


@given(st.binary(min_size=1, max_size=300), st.integers(0, 400))
def test_the_limit_of_zstd_is_exact(content: bytes, limit: int) -> None:
    if len(content) <= limit:
        assert inflate_zstd(zstd(content), limit) == content
    else:
        with pytest.raises(TooLargeError):
            inflate_zstd(zstd(content), limit)


def test_a_zstd_bomb_is_refused_with_no_more_memory_than_the_limit() -> None:
    bomb = zstd(bytes(256 * MIB))
    assert len(bomb) < 16_000
    tracemalloc.start()
    with pytest.raises(TooLargeError):
        inflate_zstd(bomb, 8 * MIB)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 9 * MIB


@pytest.mark.parametrize("body", [b"", b"plain", zstd(b"x" * 1000)[:-3], zstd(b"x") + b"junk", gzip.compress(b"x")])
def test_what_is_no_whole_zstd_stream_is_a_source_error(body: bytes) -> None:
    with pytest.raises(SourceError, match="not zstd") as refused:
        inflate_zstd(body, MIB)
    assert not isinstance(refused.value, TooLargeError)
