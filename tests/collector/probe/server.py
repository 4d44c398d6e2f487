"""A small OpenAI-compatible server whose delays, pieces and faults a test chooses; it keeps what it was asked."""

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

FIRST_S, NEXT_S = 0.05, 0.02


@dataclass
class Script:
    """How to answer. `pieces` are the texts of the events; `usages` the count each states, where it does."""

    pieces: Sequence[str] = ("one ", "two ", "three ")
    first_s: float = FIRST_S
    next_s: float = NEXT_S
    usages: Sequence[int] | None = None
    total: int | None = 3
    status: int = 200
    fault: str = ""  # hang, hang_mid, hang_done, cut, close, close_reused, error_event, no_done, html, bad_json
    models: Sequence[str] = ("tiny",)
    owner: str = "somebody"
    finish: str = "length"
    idle_close: bool = False


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: Any
    connection: int


@dataclass
class Engine:
    script: Script = field(default_factory=Script)
    asked: list[Asked] = field(default_factory=list)
    address: str = ""
    opened: int = 0

    @property
    def requests(self) -> list[Asked]:
        return [one for one in self.asked if not one.path.endswith("/models")]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number, self.opened = self.opened, self.opened + 1
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
                raw = await reader.readexactly(int(headers.get("content-length", 0)))
                asked = Asked(head[0].split()[1], headers, json.loads(raw) if raw else None, number)
                self.asked.append(asked)
                if not await self.answer(asked, writer):
                    break
                if self.script.idle_close:
                    break
        writer.close()

    async def answer(self, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False where the connection is to be closed."""
        script = self.script
        if asked.path.endswith("/models"):
            listed = {"data": [{"id": name, "owned_by": script.owner} for name in script.models]}
            _whole(writer, 200, json.dumps(listed))
        elif script.fault == "close" or (script.fault == "close_reused" and self._reused(asked)):
            return False
        elif script.fault == "hang":
            await asyncio.sleep(60)
        elif script.status != 200:
            _whole(writer, script.status, '{"error": {"message": "secret of the server"}}')
        elif script.fault == "html":
            _whole(writer, 200, "<html></html>", "text/html")
        elif script.fault == "bad_json":
            _whole(writer, 200, "[1]")
        elif asked.body is None:
            _whole(writer, 200, "a page", "text/plain")
        elif not asked.body.get("stream"):
            await asyncio.sleep(script.first_s)
            choice = {"message": {"content": "".join(script.pieces)}, "finish_reason": script.finish}
            _whole(writer, 200, json.dumps(self._message([choice], script.total)))
        else:
            return await self._stream(asked, writer)
        return True

    async def _stream(self, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        script, chat = self.script, "messages" in asked.body
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        if chat:
            await _event(writer, self._message([{"delta": {"role": "assistant", "content": ""}}]))
        for index, piece in enumerate(script.pieces):
            await asyncio.sleep(script.next_s if index else script.first_s)
            choice = {"delta": {"content": piece}} if chat else {"text": piece}
            usage = script.usages[index] if script.usages else None
            await _event(writer, self._message([choice], usage))
            if index == 0 and script.fault == "hang_mid":
                await asyncio.sleep(60)
            if index == 0 and script.fault == "cut":
                return False
            if index == 0 and script.fault == "error_event":
                await _event(writer, {"error": {"code": 503, "message": "secret of the server"}})
        if script.fault != "no_done":
            await _event(writer, self._message([{"delta": {}, "finish_reason": script.finish}]))
            if script.total is not None:
                await _event(writer, self._message([], script.total))
            await _event(writer, None)
        if script.fault == "hang_done":
            await asyncio.sleep(60)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def _reused(self, asked: Asked) -> bool:
        return any(one is not asked and one.connection == asked.connection for one in self.asked)

    def _message(self, choices: list[Any], generated: int | None = None) -> dict[str, Any]:
        made: dict[str, Any] = {"id": "r-1", "model": "tiny-2", "choices": choices}
        if generated is not None:
            made["usage"] = {"prompt_tokens": 7, "completion_tokens": generated}
        return made


async def _event(writer: asyncio.StreamWriter, message: Any) -> None:
    data = f"data: {'[DONE]' if message is None else json.dumps(message)}\n\n".encode()
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
    await writer.drain()


def _whole(writer: asyncio.StreamWriter, status: int, body: str, kind: str = "application/json") -> None:
    head = f"HTTP/1.1 {status} Words\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + body).encode())


@contextmanager
def engine(script: Script | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Engine]:
    """Run an engine in a thread of its own, so that it answers whatever the test's loop does."""
    made = Engine(script or Script())
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    started = asyncio.run_coroutine_threadsafe(asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=tls), loop)
    server = started.result(10)
    made.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        asyncio.run_coroutine_threadsafe(_stop(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _stop(server: asyncio.Server) -> None:
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
