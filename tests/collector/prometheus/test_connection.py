"""The HTTP client against servers that answer in every way there is."""

import asyncio
import gzip
from collections.abc import Sequence
from typing import Any

import pytest

from collector.prometheus.config import HttpClient
from collector.prometheus.fetch import Fetcher, Page, Request
from store.errors import SourceError

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


class Scripted:
    """Gives each connection its answers in turn: bytes, or None to close; keeps what was asked on which connection."""

    def __init__(self, *connections: Sequence[bytes | None]) -> None:
        self.connections = list(connections)
        self.asked: list[tuple[int, str]] = []
        self.opened = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number, self.opened = self.opened, self.opened + 1
        for answer in self.connections[min(number, len(self.connections) - 1)]:
            if answer is None:
                break
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            self.asked.append((number, head.decode()))
            writer.write(answer)
        writer.close()


def ask(script: Scripted, *urls: str, **more: Any) -> list[Page | SourceError]:
    """Ask the URLs one after the other with one fetcher."""

    async def go() -> list[Page | SourceError]:
        server = await asyncio.start_server(script, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        fetcher, found = Fetcher(), list[Page | SourceError]()
        options = {"http": HttpClient(), "timeout_s": 2.0, **more}
        for url in urls or ("/m",):
            try:
                found.append(await fetcher.get(Request(f"http://127.0.0.1:{port}{url}", **options)))
            except SourceError as error:
                found.append(error)
        await fetcher.close()
        server.close()
        return found

    return asyncio.run(go())


def sized(body: bytes, head: bytes = OK) -> bytes:
    return head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_a_connection_is_used_again() -> None:
    script = Scripted([sized(b"1"), sized(b"2"), sized(b"3")])
    assert [page.body for page in ask(script, "/a", "/b", "/c") if isinstance(page, Page)] == [b"1", b"2", b"3"]
    assert script.opened == 1


def test_a_connection_that_the_server_closed_meanwhile_is_replaced_and_the_question_asked_again() -> None:
    script = Scripted([sized(b"1"), None], [sized(b"2")])
    assert [page.body for page in ask(script, "/a", "/b") if isinstance(page, Page)] == [b"1", b"2"]
    assert script.opened == 2


def test_a_question_cut_off_on_a_new_connection_is_not_asked_again() -> None:
    script = Scripted([None])
    (error,) = ask(script)
    assert "without an answer" in str(error)
    assert script.opened == 1


def test_a_server_that_says_close_gets_a_new_connection() -> None:
    script = Scripted([sized(b"1", OK + b"Connection: close\r\n")])
    assert len([page for page in ask(script, "/a", "/b") if isinstance(page, Page)]) == 2
    assert script.opened == 2


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (CHUNKED + b"3\r\na 1\r\n1;x=y\r\n\n\r\n0\r\n\r\n", b"a 1\n"),
        (b"HTTP/1.0 200 OK\r\n\r\na 1\n", b"a 1\n"),
        (OK + b"\r\na 1\n", b"a 1\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + sized(b"a 1\n"), b"a 1\n"),
        (sized(b""), b""),
        (sized(gzip.compress(b"a 1\n"), OK + b"Content-Encoding: gzip\r\n"), b"a 1\n"),
        (sized(gzip.compress(b"a 1\n") + gzip.compress(b"b 1\n"), OK + b"content-encoding: GZIP\r\n"), b"a 1\nb 1\n"),
    ],
)
def test_every_way_of_sending_a_body_is_read(answer: bytes, body: bytes) -> None:
    (page,) = ask(Scripted([answer, None]))
    assert isinstance(page, Page)
    assert page.body == body


PACKED = gzip.compress(b"a 1\n" * 5000)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (sized(b"a 1\n")[:-1], "cut short"),
        (CHUNKED + b"3\r\na 1\r\n", "cut short"),
        (sized(gzip.compress(b"a 1\n" * 100)[:-9], OK + b"Content-Encoding: gzip\r\n"), "cut short"),
        (sized(b"nonsense", OK + b"Content-Encoding: gzip\r\n"), "damaged"),
        (sized(b"a", OK + b"Content-Encoding: zstd\r\n"), "zstd"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "HTTP 204"),
        (b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", "HTTP 500 Internal Server Error"),
        (b"HTTP/1.1 302 Found\r\nLocation: ftp://x/\r\nContent-Length: 0\r\n\r\n", "ftp://x/"),
        (sized(PACKED, OK + b"Content-Encoding: gzip\r\n"), "body_size_limit (10000 bytes)"),
        (sized(b"a" * 10_001), "body_size_limit (10000 bytes)"),
    ],
)
def test_every_fault_is_an_error_that_says_what_it_is(answer: bytes, words: str) -> None:
    (error,) = ask(Scripted([answer, None]), size_limit_bytes=10_000)
    assert isinstance(error, SourceError)
    assert words in str(error)


def test_a_redirect_is_followed_unless_the_job_says_no() -> None:
    moved = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /there?x=1\r\nContent-Length: 0\r\n\r\n"
    script = Scripted([moved, sized(b"a 1\n")])
    (page,) = ask(script)
    assert isinstance(page, Page)
    assert [head.split()[1] for _, head in script.asked] == ["/m", "/there?x=1"]
    (error,) = ask(Scripted([moved]), http=HttpClient(follow_redirects=False))
    assert str(error) == "HTTP 307 Temporary Redirect"


def test_a_secret_stays_with_its_server_when_a_redirect_leads_elsewhere() -> None:
    async def go() -> list[str]:
        other = Scripted([sized(b"a 1\n")])
        second = await asyncio.start_server(other, "127.0.0.1", 0)
        place = f"http://127.0.0.1:{second.sockets[0].getsockname()[1]}/"
        moved = f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode()
        script = Scripted([moved])
        first = await asyncio.start_server(script, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{first.sockets[0].getsockname()[1]}/"
        fetcher = Fetcher()
        await fetcher.get(Request(url, HttpClient(bearer_token="s3cret"), 2.0))
        await fetcher.close()
        first.close()
        second.close()
        return [script.asked[0][1], other.asked[0][1]]

    first, second = asyncio.run(go())
    assert "Authorization: Bearer s3cret" in first
    assert "s3cret" not in second


def test_a_token_with_a_line_break_adds_no_header() -> None:
    (error,) = ask(Scripted([sized(b"")]), http=HttpClient(bearer_token="a\r\nX: y"))
    assert "line break" in str(error)


def test_a_timed_out_connection_is_not_used_again() -> None:
    script = Scripted([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", b""], [sized(b"whole")])
    slow, page = ask(script, "/a", "/b", timeout_s=0.2)
    assert "0.2 s" in str(slow) or "cut short" in str(slow)
    assert isinstance(page, Page)
    assert page.body == b"whole"


@pytest.mark.parametrize(
    ("url", "words"),
    [("http://127.0.0.1:1/", "cannot connect to 127.0.0.1:1: Connection refused"), ("http://h:99999/", "no address")],
)
def test_an_address_that_cannot_be_reached_is_named_with_the_cause(url: str, words: str) -> None:
    with pytest.raises(SourceError) as caught:
        asyncio.run(Fetcher().get(Request(url, HttpClient(), 2.0)))
    assert words in str(caught.value)
    assert caught.value.hint


def test_forgetting_a_server_closes_its_idle_connections_only() -> None:
    async def go() -> int:
        scripts = [Scripted([sized(b"1"), sized(b"2")]) for _ in range(2)]
        servers = [await asyncio.start_server(script, "127.0.0.1", 0) for script in scripts]
        urls = [f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/" for server in servers]
        fetcher = Fetcher()
        for url in urls:
            await fetcher.get(Request(url, HttpClient(), 2.0))
        fetcher.forget(urls[0])
        for url in urls:
            await fetcher.get(Request(url, HttpClient(), 2.0))
        await fetcher.close()
        for server in servers:
            server.close()
        return scripts[0].opened * 10 + scripts[1].opened

    assert asyncio.run(go()) == 21
