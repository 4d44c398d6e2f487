"""A real HTTP server that answers with the pages it is given and keeps what it was asked."""

import gzip
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = "text/plain; version=0.0.4; charset=utf-8"


@dataclass
class Answer:
    body: bytes = b""
    content_type: str = TEXT
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: threading.Event | None = None
    cut: int = 0  # bytes of the body that are promised and not sent


@dataclass
class PageServer:
    address: str
    answer: Answer = field(default_factory=Answer)
    asked: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


def _handler(server: PageServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append({name.lower(): value for name, value in self.headers.items()})
            server.paths.append(self.path)
            answer = server.answer
            if answer.delay:
                answer.delay.wait(5)
            body = answer.body
            self.send_response(answer.status)
            if answer.content_type:
                self.send_header("Content-Type", answer.content_type)
            if "gzip" in self.headers.get("Accept-Encoding", "") and not answer.cut:
                body = gzip.compress(body)
                self.send_header("Content-Encoding", "gzip")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) - answer.cut])

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    return Handler


@contextmanager
def serve(tls: ssl.SSLContext | None = None) -> Iterator[PageServer]:
    pages = PageServer("")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(pages))
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    pages.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield pages
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
