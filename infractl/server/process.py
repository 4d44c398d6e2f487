"""Puts the one process together, runs it until told to stop, and takes it apart in order."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
import orjson
import uvicorn
from a2wsgi import WSGIMiddleware
from opentelemetry.sdk.trace import TracerProvider
from starlette.applications import Starlette
from starlette.routing import Mount

from analytics.catalog import load_all
from analytics.result import Result
from collector.kv_events.settings import KvEvents
from collector.kv_events.subscriber import KvEventSubscriber
from collector.otlp import grpc as otlp_grpc
from collector.otlp import http as otlp_http
from collector.otlp.content import ContentOptions
from collector.otlp.metrics import MetricsDecoder
from collector.otlp.receiver import ReceiverCounts
from collector.prices.override import Entry
from collector.probe.config import Probe
from collector.probe.prober import Prober
from collector.prometheus.job import Job as ScrapeJob
from collector.prometheus.scrape import Scraper
from collector.prometheus.targets import Target
from collector.push.gate import Gate
from collector.remote_write import receiver as remote_write
from infractl.access import SERVER_FILE
from infractl.configfile import AnalysisSchedule, Content, Telemetry
from infractl.doctor.facts import gather
from infractl.doctor.report import report
from infractl.exposition import Exposition
from infractl.fleet import fleet
from infractl.priced import PricedReader
from infractl.pricing import recent_models
from infractl.server import selftrace
from infractl.server.api import Api
from infractl.server.schedule import Clock, Job, Scheduler, utc_now
from infractl.server.source import StoreSource
from infractl.server.upkeep import Upkeep
from infractl.status import store_status
from store.database import Database
from store.errors import SourceError, UsageError
from store.settings import StoreSettings
from store.window import format_time, parse_duration
from store.writer import Writer
from store.zone import DEFAULT

log = logging.getLogger(__name__)
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHUTDOWN_S = 5


@dataclass(frozen=True, slots=True)
class Options:
    """What `serve` was asked to do. A port of 0 takes a free one; None switches that receiver off.

    `initial` results, if any, are published at the start instead of a first run of their analyses.
    """

    data: Path
    host: str = "127.0.0.1"
    port: int = 8050
    otlp_http_port: int | None = 4318
    otlp_grpc_port: int | None = 4317
    otlp_allowed_origins: tuple[str, ...] = ()
    base_path: str = "/"
    time_zone: ZoneInfo = DEFAULT
    targets: tuple[Target, ...] = ()
    jobs: tuple[ScrapeJob, ...] = ()
    kv_events: tuple[KvEvents, ...] = ()
    probes: tuple[Probe, ...] = ()
    prices: tuple[Entry, ...] = ()
    content: Content = field(default_factory=Content)
    telemetry: Telemetry = field(default_factory=Telemetry)
    store: StoreSettings = field(default_factory=StoreSettings)
    schedules: dict[str, AnalysisSchedule] = field(default_factory=dict)
    clock: Clock = utc_now
    initial: tuple[Result, ...] = ()


@dataclass(frozen=True, slots=True)
class Address:
    """Where the process listens, once it does: `root` is that of the API, `url` that of the dashboard."""

    root: str
    url: str
    otlp_http_port: int | None
    otlp_grpc_port: int | None


def serve(options: Options, ready: Callable[[Address], None]) -> None:
    """Run until SIGINT or SIGTERM. `ready` is called once every port is open.

    Raises StoreLockedError, SourceError (port in use), UsageError.
    """
    if options.host not in LOOPBACK:
        click.echo(
            f"warning: listening on {options.host} without authentication: anyone who reaches it can read everything "
            "stored and send telemetry. Put it behind a proxy that authenticates, or use --host 127.0.0.1.",
            err=True,
        )
    database = Database(options.data, options.store)
    try:
        asyncio.run(_Process(options, database).run(ready))
    finally:
        (options.data / SERVER_FILE).unlink(missing_ok=True)
        database.close()


class _Process:
    """The pieces of one process."""

    def __init__(self, options: Options, database: Database) -> None:
        self.options, self.database = options, database
        self.exposition = Exposition(load_all())
        database.on_commit = self.exposition.stored
        self.writer = Writer(database)
        self.exposition.watch_queue(lambda: self.writer.queued_rows)
        self.receivers = ReceiverCounts()
        self.pushed = MetricsDecoder()
        self.exposition.watch_receivers(lambda: self.receivers.requests)
        self.submit = self.writer.submit
        self.gate = Gate()
        self.traces: TracerProvider = selftrace.provider(options.telemetry, self.submit)
        tracer = self.traces.get_tracer("infractl")
        self.scraper = Scraper(options.targets, self.submit, jobs=options.jobs)
        self.kv_events = KvEventSubscriber(options.kv_events, self.submit)
        self.prober = Prober(options.probes, self.submit)
        self.upkeep = Upkeep(database)
        self.exposition.watch_store(self.upkeep.gauges)
        reader = PricedReader(database, options.prices)
        self.scheduler = Scheduler(reader, _jobs(options), self.exposition, tracer, options.clock)
        configured = {name: schedule.params for name, schedule in options.schedules.items()}
        self.source = StoreSource(database, reader, tracer, self.status, lambda: self.scheduler.latest, configured)
        self.api = Api(database, reader, self.submit, self.exposition, self.fleet_status, self.doctor)
        self.stop = asyncio.Event()
        self._url = ""

    def status(self) -> dict[str, Any]:
        """Store, targets, queue, lock holder."""
        return store_status(self.database) | {
            "lock": {"pid": os.getpid(), "server": self._url},
            "queued_rows": self.writer.queued_rows,
            "upkeep": [
                {"task": name, "at": format_time(at), "did": done.error or done.what, "seconds": round(done.seconds, 2)}
                for name, (at, done) in self.upkeep.done.items()
            ],
            "receivers": [
                {"protocol": protocol, "signal": received, "outcome": outcome, "requests": count}
                for (protocol, received, outcome), count in sorted(self.receivers.requests.items())
            ],
            "targets": [_plain(health) for health in self.scraper.health()],
            "kv_events": [_plain(health) for health in self.kv_events.health()],
            "probes": [_plain(health) for health in self.prober.health()],
            "discovery": [_plain(state) for state in self.scraper.discovery()],
            "absences": self.scraper.absences(),
        }

    def fleet_status(self) -> dict[str, Any]:
        """Status, and devices, engines and hosts as they are now."""
        now = self.options.clock()
        return (
            self.status()
            | fleet(self.database, now)
            | {
                "prices": recent_models(self.database, now, self.options.prices),
                "at": format_time(now),
            }
        )

    def doctor(self, since: timedelta, limits_s: Mapping[str, float]) -> dict[str, Any]:
        """Look for what keeps this process from telling the truth."""
        status = self.status()
        facts = gather(
            self.database,
            self.options.clock(),
            since,
            self.options.prices,
            targets=status["targets"],
            discovery=status["discovery"],
            absences=status["absences"],
            receivers=status["receivers"],
            kv_events=status["kv_events"],
            probes=status["probes"],
            limits_s=limits_s,
            serving=True,
        )
        return report(facts)

    async def run(self, ready: Callable[[Address], None]) -> None:
        """Open the ports, start the loops, wait, stop."""
        options = self.options
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, self.stop.set)
        content = ContentOptions(options.content.store, options.content.max_value_bytes, options.content.hash)
        main = _bind(options.host, options.port, "--port")
        port = main.getsockname()[1]
        shown = "127.0.0.1" if options.host in ("0.0.0.0", "::") else options.host  # noqa: S104 - shown, not bound
        self._url = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self._close_store)
            (options.data / SERVER_FILE).write_bytes(orjson.dumps({"pid": os.getpid(), "url": self._url}))
            stack.enter_context(main)
            await stack.enter_async_context(_listening(self._main_app(), main))
            http_port = None
            if options.otlp_http_port is not None:
                otlp = stack.enter_context(_bind(options.host, options.otlp_http_port, "--otlp-http-port"))
                http_port = otlp.getsockname()[1]
                app = otlp_http.create_app(
                    self.submit,
                    content,
                    counts=self.receivers,
                    decoder=self.pushed,
                    origins=options.otlp_allowed_origins,
                    gate=self.gate,
                )
                await stack.enter_async_context(_listening(app, otlp))
            grpc_port = None
            if options.otlp_grpc_port is not None:
                receiver = otlp_grpc.start(
                    options.host, options.otlp_grpc_port, self.submit, content, self.receivers, self.pushed, self.gate
                )
                stack.callback(receiver.stop)
                grpc_port = receiver.port
            scraping = asyncio.create_task(self.scraper.run())
            stack.push_async_callback(_cancel, scraping)
            for running in (self.kv_events.run(), self.prober.run()):
                stack.push_async_callback(_cancel, asyncio.create_task(running))
            self.upkeep.start()
            stack.push_async_callback(asyncio.to_thread, self.upkeep.stop)
            self.scheduler.start()
            stack.push_async_callback(asyncio.to_thread, self.scheduler.stop)
            ready(Address(self._url, self._url + options.base_path, http_port, grpc_port))
            await self.stop.wait()

    def _main_app(self) -> Starlette:
        """Serve API and metrics at the root, the dashboard behind them."""
        from dashboards.app import create_app

        dash = create_app(self.source, self.options.base_path, self.options.time_zone)
        pages: Any = WSGIMiddleware(dash.server, workers=8)
        written = remote_write.create_routes(self.submit, self.receivers, gate=self.gate)
        return Starlette(routes=[*self.api.routes(), *written, Mount("/", pages)])

    def _close_store(self) -> None:
        """Finish the traces, then commit what is queued."""
        self.traces.shutdown()
        self.writer.close()


def _jobs(options: Options) -> list[Job]:
    jobs = []
    known = {result.analysis: result for result in options.initial}
    for analysis in load_all():
        schedule = options.schedules.get(analysis.name, AnalysisSchedule())
        since: timedelta = parse_duration(schedule.since) if schedule.since else analysis.lookback
        every = parse_duration(schedule.every) if schedule.every else analysis.every
        jobs.append(Job(analysis, analysis.make_params(schedule.params), every, since, known.get(analysis.name)))
    return jobs


def _bind(host: str, port: int, option: str) -> socket.socket:
    """Open a listening socket. Raises SourceError when the port is taken, UsageError when the host is not ours."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise UsageError(f"cannot listen on {host}: {error}", "use --host 127.0.0.1") from error
    sock = socket.socket(family, kind, proto)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(address)
        sock.listen(1024)
    except OSError as error:
        sock.close()
        fact = f"cannot listen on {host}:{port}: {error.strerror}"
        raise SourceError(fact, f"choose another with {option}") from error
    return sock


@contextlib.asynccontextmanager
async def _listening(app: Any, sock: socket.socket) -> AsyncIterator[None]:
    """Serve an ASGI app on a socket while the context lasts."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=SHUTDOWN_S, ws="none"
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(_quiet_serve(server, sock))
    while not server.started:
        if task.done():
            task.result()
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        await task


async def _quiet_serve(server: uvicorn.Server, sock: socket.socket) -> None:
    """Run a server and leave the signals of the process alone."""
    await server._serve([sock])  # noqa: SLF001 - serve() takes the signals; ours stop both servers


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _plain(health: Any) -> dict[str, Any]:
    import dataclasses

    from analytics.codec import plain

    made: dict[str, Any] = plain(dataclasses.asdict(health))
    return made
