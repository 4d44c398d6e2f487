"""/api/v1, /metrics and /healthz as starlette routes."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from analytics.catalog import ANALYSES
from analytics.codec import to_json
from collector.browser import script as browser
from infractl import wire
from infractl.exposition import Exposition
from infractl.maintenance import maintain
from infractl.runner import Reader, run_named
from store.batch import Batch, Receipt
from store.database import Database
from store.errors import BusyError, ExitCode, InfractlError, UsageError
from store.window import parse_duration

Handler = Callable[[Request], Awaitable[Response]]
Body = TypeVar("Body", bound=msgspec.Struct)
_HTTP_STATUS = {ExitCode.USAGE: 400, ExitCode.STORE: 503, ExitCode.SOURCE: 502}


class SqlRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /api/v1/sql."""

    sql: str
    limit: int | None = None
    all_rows: bool = False


class MaintainRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /api/v1/maintain."""

    tasks: list[str] = []
    verify: bool = False
    backup: str | None = None


class Api:
    """The routes over one store."""

    def __init__(
        self,
        database: Database,
        reader: Reader,
        submit: Callable[[Batch], "Future[Receipt]"],
        exposition: Exposition,
        status: Callable[[], Mapping[str, Any]],
        doctor: Callable[[timedelta, Mapping[str, float]], Mapping[str, Any]],
    ) -> None:
        self._database, self._reader = database, reader
        self._submit, self._exposition = submit, exposition
        self._status, self._doctor = status, doctor

    def routes(self) -> list[Route]:
        """All routes."""
        return [
            Route("/healthz", self.health),
            Route("/metrics", self.metrics),
            Route("/runbooks/{slug}", self.runbook),
            Route(f"/{browser.NAME}", self.browser_script),
            Route("/api/v1/status", _told(self.status)),
            Route("/api/v1/doctor", _told(self.doctor)),
            Route("/api/v1/analyses", _told(self.analyses)),
            Route("/api/v1/analyses/{name}", _told(self.analysis)),
            Route("/api/v1/sql", _told(self.sql), methods=["POST"]),
            Route("/api/v1/maintain", _told(self.maintain), methods=["POST"]),
            Route("/api/v1/append", _told(self.append), methods=["POST"]),
        ]

    async def health(self, request: Request) -> Response:
        """Answer while the process lives."""
        del request
        return PlainTextResponse("ok\n")

    async def metrics(self, request: Request) -> Response:
        """Render the published signals; nothing is computed here."""
        del request
        return Response(self._exposition.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def runbook(self, request: Request) -> Response:
        """Show the page that an alert links to, as Markdown text."""
        name = request.path_params["slug"].removesuffix(".md") + ".md"
        pages = {page.name: page for page in files("rules").joinpath("runbooks").iterdir()}
        if name not in pages:
            return PlainTextResponse(f"there is no runbook {name}\n", 404)
        return PlainTextResponse(pages[name].read_text(encoding="utf-8"))

    async def browser_script(self, request: Request) -> Response:
        """Serve the script that reports streams from a page."""
        del request
        return Response(browser.script(), media_type=browser.MEDIA_TYPE)

    async def status(self, request: Request) -> Response:
        """Report sources, rows, drops, targets."""
        del request
        return Response(orjson.dumps(await run_in_threadpool(self._status)), media_type="application/json")

    async def doctor(self, request: Request) -> Response:
        """Look for what is missing, stale, renamed or mistyped: ?since=1h&limit=ttft_seconds=0.5."""
        since = parse_duration(request.query_params.get("since", "1h"))
        limits = dict(_limit(text) for text in request.query_params.getlist("limit"))
        found = await run_in_threadpool(self._doctor, since, limits)
        return Response(orjson.dumps(found), media_type="application/json")

    async def analyses(self, request: Request) -> Response:
        """Names of the analyses."""
        del request
        return JSONResponse(list(ANALYSES))

    async def analysis(self, request: Request) -> Response:
        """Run one analysis: ?window=24h|A..B&params={JSON}."""
        params = _json_object(request.query_params.get("params", "{}"))
        window = request.query_params.get("window")
        result = await run_in_threadpool(run_named, self._reader, request.path_params["name"], params, window)
        return Response(to_json(result), media_type="application/json")

    async def sql(self, request: Request) -> Response:
        """Run one SELECT; the rows come as an Arrow stream."""
        asked = await _body(request, SqlRequest, '{"sql": "SELECT …", "limit": 1000}')
        gone = threading.Event()
        watching = asyncio.create_task(_watch(request, gone))
        try:
            rows = await run_in_threadpool(self._rows, asked, gone)
        finally:
            watching.cancel()
        return Response(rows, media_type="application/vnd.apache.arrow.stream")

    async def maintain(self, request: Request) -> Response:
        """Do the store's own work now: {"tasks": ["seal", …], "verify": true, "backup": "DIR"}."""
        asked = await _body(request, MaintainRequest, '{"tasks": ["seal"], "verify": true}')
        backup = None if asked.backup is None else Path(asked.backup)
        told = await run_in_threadpool(maintain, self._database, asked.tasks, asked.verify, backup)
        return Response(orjson.dumps(told), media_type="application/json")

    async def append(self, request: Request) -> Response:
        """Store batches that a command decoded; answered after COMMIT."""
        _require(request, wire.MEDIA_TYPE)
        batches = wire.unpack(await request.body())
        receipts = await run_in_threadpool(self._database.append, batches)
        return Response(wire.pack_receipts(receipts), media_type="application/json")

    def _rows(self, asked: SqlRequest, gone: threading.Event) -> bytes:
        import pyarrow as pa

        limits = self._database.query_limits
        if asked.all_rows:
            limits = replace(limits, rows=None)
        table = self._database.sql(asked.sql, asked.limit, limits, gone)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return bytes(sink.getvalue())


async def _body(request: Request, kind: type[Body], example: str) -> Body:
    """Read a JSON body. Raises UsageError."""
    _require(request, "application/json")
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except msgspec.DecodeError as error:
        raise UsageError(f"the body cannot be read: {error}", f"send {example}") from error


async def _watch(request: Request, gone: threading.Event) -> None:
    """Set `gone` when the client hangs up: its query is called off."""
    while not await request.is_disconnected():
        await asyncio.sleep(0.2)
    gone.set()


def _require(request: Request, media_type: str) -> None:
    """Refuse another content type: a web page may send a plain form to 127.0.0.1, but not this without our consent."""
    if request.headers.get("content-type", "").partition(";")[0] != media_type:
        raise UsageError(f"{request.url.path} takes {media_type}", "set the header Content-Type")


def _told(handler: Handler) -> Handler:
    """Answer an InfractlError as JSON: error, hint, exit code."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except InfractlError as error:
            told = {"error": str(error), "hint": error.hint, "code": int(error.code)}
            headers = {"Retry-After": str(max(1, round(error.retry_after_s)))} if isinstance(error, BusyError) else None
            return JSONResponse(told, _HTTP_STATUS.get(error.code, 500), headers)

    return answer


def _limit(text: str) -> tuple[str, float]:
    name, _, seconds = text.partition("=")
    try:
        return name, float(seconds)
    except ValueError as error:
        raise UsageError(f"limit {text!r} is no METRIC=SECONDS", "write it like limit=ttft_seconds=0.5") from error


def _json_object(text: str) -> dict[str, Any]:
    try:
        made = orjson.loads(text)
    except ValueError as error:
        raise UsageError(f"params is no JSON: {error}", 'write it like params={"tau":0.95}') from error
    if not isinstance(made, dict):
        raise UsageError("params must be a JSON object", 'write it like params={"tau":0.95}')
    return made
