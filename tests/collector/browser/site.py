"""A site of one page with a model behind it that streams with known delays, and a receiver on another origin."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page
from playwright.sync_api import Request as Sent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from collector.browser.script import MEDIA_TYPE, NAME, script
from store.batch import Batch, Receipt
from store.errors import BusyError

PAGE = f"""<!doctype html><link rel="icon" href="data:,"><title>chat</title><p id="answer"></p>
<script src="/{NAME}"></script>
<script>
  async function show(response) {{
    const reader = response.body.getReader(), decoder = new TextDecoder();
    for (;;) {{
      const {{ done, value }} = await reader.read();
      if (done) return;
      answer.textContent += decoder.decode(value, {{ stream: true }});
    }}
  }}
</script>"""
MODULE = (
    f'<!doctype html><link rel="icon" href="data:,"><script type="module">import "/{NAME}"; window.done = 1;</script>'
)
DELAYS_S = (0.2, *[0.05] * 5, 0.4, *[0.05] * 5)
"""Before each of the twelve tokens: a slow first one, and a stall in the middle."""


def chat_event(text: str | None = None, **more: Any) -> bytes:
    """One event as OpenAI-compatible servers write it; a chunk without text opens or closes the answer."""
    delta = {"role": "assistant", "content": ""} if text is None else {"content": text}
    body = {"id": "chatcmpl-7", "model": "m-2026", "choices": [{"index": 0, "delta": delta}], **more}
    return f"data: {json.dumps(body)}\n\n".encode()


@dataclass
class Model:
    """Streams answers, remembers when each token went out (s) and with which headers it was asked."""

    sent_s: list[float] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    async def answer(self) -> AsyncIterator[bytes]:
        yield chat_event()
        for number, delay_s in enumerate(DELAYS_S):
            await asyncio.sleep(delay_s)
            self.sent_s.append(time.monotonic())
            yield chat_event(f"word{number} ")
        finish = [{"index": 0, "delta": {}, "finish_reason": "stop"}]
        yield chat_event(choices=finish)
        usage = {"prompt_tokens": 9, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 4}}
        yield chat_event(choices=[], usage=usage) + b"data: [DONE]\n\n"

    async def endless(self) -> AsyncIterator[bytes]:
        for number in range(500):
            yield chat_event(f"word{number} ")
            await asyncio.sleep(0.05)

    async def breaking(self) -> AsyncIterator[bytes]:
        yield chat_event("word ")
        await asyncio.sleep(0.1)
        raise ConnectionAbortedError

    async def refusing(self) -> AsyncIterator[bytes]:
        yield chat_event("word ")
        yield b'data: {"error": {"type": "overloaded_error", "message": "the prompt was: secret"}}\n\n'

    async def raw(self) -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"some words "
            await asyncio.sleep(0.1)

    async def _stream(self, request: Request) -> Response:
        self.headers.append(dict(request.headers))
        name = request.path_params["name"]
        if name == "full":
            return PlainTextResponse("no room for: secret", 503)
        form = "text/plain" if name == "raw" else "text/event-stream"
        return StreamingResponse(getattr(self, name)(), media_type=form)

    def app(self) -> Starlette:
        async def page(request: Request) -> Response:
            return HTMLResponse(MODULE if request.url.path == "/module" else PAGE)

        async def code(_: Request) -> Response:
            return Response(script(), media_type=MEDIA_TYPE)

        stream = Route("/model/{name}", self._stream, methods=["GET", "POST"])
        return Starlette(routes=[stream, Route(f"/{NAME}", code), Route("/{any:path}", page)])


class Stored:
    """What the receiver was given to store; the first `busy` requests find the queue full."""

    def __init__(self, busy: int = 0) -> None:
        self.batches: list[Batch] = []
        self.tries = 0
        self._busy = busy

    def submit(self, batch: Batch) -> "Future[Receipt]":
        self.tries += 1
        if self.tries <= self._busy:
            raise BusyError("the queue is full", retry_after_s=2)
        future: Future[Receipt] = Future()
        self.batches.append(batch)
        future.set_result(Receipt("1", {}, {}))
        return future

    def rows(self, table: str) -> list[dict[str, Any]]:
        return [row for batch in self.batches if table in batch.frames for row in batch.frames[table].to_dicts()]


@dataclass
class Site:
    """A page in Chromium, the model it asks, and what came in at a receiver that allows the page's origin."""

    page: Page
    wrong: list[str]
    url: str
    model: Model
    endpoint: str
    stored: Stored
    reports: list[str] = field(default_factory=list)

    def notice(self, request: Sent) -> None:
        """Remember the bodies sent to the receiver."""
        if request.url.startswith(self.endpoint):
            self.reports.append(request.post_data or "")

    def run(self, code: str, **defaults: Any) -> Any:
        """Run JavaScript in the page, with the receiver as default endpoint."""
        options = {"endpoint": self.endpoint, "service": "chat-page", "model": "m", "batchMs": 50, **defaults}
        return self.page.evaluate(f"async (options) => {{ infractl.defaults = options; {code} }}", options)

    def spans(self, count: int = 1) -> list[dict[str, Any]]:
        """Wait for so many spans."""
        for _ in range(400):
            if len(self.stored.rows("spans")) >= count:
                break
            self.page.wait_for_timeout(25)  # lets the browser's events in, too
        for _ in range(40):  # the browser may tell of its request after the receiver has stored it
            if self.reports:
                break
            self.page.wait_for_timeout(25)
        assert len(self.stored.rows("spans")) == count, "no report came"
        return self.stored.rows("spans")

    def span(self) -> dict[str, Any]:
        """Wait for the one span, with its attributes read."""
        (span,) = self.spans()
        return {**span, "attributes": json.loads(span["attributes"] or "{}")}
