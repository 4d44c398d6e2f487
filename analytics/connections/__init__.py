"""`analyze connections`: how often connections are reused, what handshakes cost, and which concurrency is cheapest."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.latency.names import STAGE_SEGMENTS
from analytics.result import Result, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.errors import UsageError
from store.query import CostQuery, Query, SpanQuery, Where
from store.tables import SPANS
from store.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

F, N, T, TS, M = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME, Kind.MONEY

COLUMNS = ("ts", "trace_id", "service", "host", "name", "kind", "duration_s")
ATTRIBUTES = (
    "connection.id", "connection.requests", "tls.handshake_s", "network.protocol.version",
    "infractl.probe.connection", "http.conn.reused", "network.peer.address", "network.peer.port", "client.network",
)  # fmt: skip
HANDSHAKES = tuple(name for name, segment in STAGE_SEGMENTS.items() if segment in ("tcp", "tls"))
"""Names of child spans that time a TCP connect or a TLS handshake."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionsParams(Params):
    """Parameters of `analyze connections`."""

    bucket: str = param("auto", "width of a bucket: auto, or a duration such as 5m")
    idle: float = param(
        60.0, "seconds of silence after which the same address and port are another connection", within=(1, 86_400)
    )
    costs: tuple[str, ...] = param(
        (), "k=v of the cost lines that belong to the service in view; default: lines of the same service"
    )
    at_most: int = param(
        1_000_000, "spans to read; of more, those of a random share of the traces", within=(1_000, 100_000_000)
    )
    resamples: int = param(200, "bootstrap resamples of the cheapest concurrency", within=(50, 5_000))
    seed: int = param(1, "seed of the resampling")


def inputs(params: ConnectionsParams) -> "Mapping[str, Query]":
    """Ask for spans of servers and clients, spans that time a handshake, and costs by hour."""
    fields = (*params.by, *(field for field, _ in params.where))
    columns = tuple(name for name in fields if SPANS.column(name) is not None)
    more = tuple(name for name in fields if SPANS.column(name) is None)
    named = tuple(dict.fromkeys((*COLUMNS, *columns)))
    ends = (("kind", "server"), ("kind", "client"))
    handshakes = tuple(("name", name) for name in HANDSHAKES)
    return {
        "requests": SpanQuery(
            named, tuple(dict.fromkeys((*ATTRIBUTES, *more))), where=(*params.where, *ends), at_most=params.at_most
        ),
        "handshakes": SpanQuery(
            named, tuple(dict.fromkeys(more)), where=(*params.where, *handshakes), at_most=params.at_most
        ),
        "costs": CostQuery(("service",) if not params.costs else (), where=cost_lines(params)),
    }


def cost_lines(params: ConnectionsParams) -> Where:
    """Read `--costs`. Raises UsageError for what is no k=v."""
    pairs = [text.partition("=") for text in params.costs]
    if not all(key and sign for key, sign, _ in pairs):
        raise UsageError(f"costs cannot be {','.join(params.costs)!r}", "write k=v, such as resource=app/edge/1")
    return tuple((key, value) for key, _, value in pairs)


LABELS = ("service", "side")
REUSE = Signal(
    "connection_reuse_ratio", "", "requests per connection opened, latest bucket; null below 20 opened", LABELS
)
KEPT = Signal(
    "connection_reuse_kept_ratio",
    "",
    "upper 95 % limit of the latest reuse over its own baseline; null below 20 opened or 6 buckets before",
    LABELS,
)
HANDSHAKE = Signal("connection_handshake_share_ratio", "", "share of time in handshakes, latest bucket", LABELS)
DROPPED = Trigger(
    "ConnectionReuseDropped",
    KEPT,
    0.5,
    Severity.WARNING,
    "Connections of {service} ({side}) carry at most {value} of the requests they used to carry",
    "connection-reuse-dropped",
    above=False,
    hold=timedelta(minutes=5),
    keep_firing=timedelta(minutes=15),
)

_SIDE = Column("side", T, "server: connections that clients open to it; client: those that it opens to others")
_SHARE = Column("handshake_share", F, "time in TCP and TLS handshakes over that and the time of requests", "ratio")
_BASIS = Column(
    "handshake_basis",
    T,
    "measured; estimated: connections opened x mean of the handshakes measured; estimated elsewhere: of other services",
)
FRAMES = {
    "summary": (
        _SIDE,
        Column("requests", N, "requests", "requests"),
        Column("unknown", N, "of these, with nothing that says on which connection", "requests"),
        Column("connections", N, "distinct connections; null where not knowable"),
        Column("opened", N, "of these, not known to be older than the window"),
        Column("reuse", F, "requests whose connection is known, per distinct connection"),
        Column("basis", T, "how connections are told apart: id, address, stated (as new or reused); or several"),
        Column("multiplexed", F, "share of requests over HTTP/2 or HTTP/3, of those that state it", "ratio"),
        _SHARE,
        _BASIS,
        Column("handshakes", N, "handshakes measured"),
        Column("handshake_mean_s", F, "their mean", "s"),
        Column("concurrency", F, "mean number of requests in progress"),
        Column("concurrency_peak", N, "most requests in progress at once", "requests"),
    ),
    "cheapest": (
        Column("currency", T, "billing currency"),
        Column("concurrency", F, "concurrency at which 1,000 requests cost least; null where that is not known"),
        Column("low", F, "lower 95 % limit, from resampled blocks of hours"),
        Column("high", F, "upper 95 % limit"),
        Column("unit_cost", M, "cost of 1,000 requests there, in the currency"),
        Column("growth", F, "rise from there to the highest concurrency seen", "ratio"),
        Column("growth_low", F, "lower 95 % limit", "ratio"),
        Column("growth_high", F, "upper 95 % limit", "ratio"),
        Column("lowest", F, "mean concurrency of the lowest hours seen"),
        Column("highest", F, "mean concurrency of the highest hours seen"),
        Column("hours", N, "hours of cost and requests"),
        Column("verdict", T, "found, or why there is no answer"),
    ),
    "buckets": (
        _SIDE,
        Column("ts", TS, "start of the bucket"),
        Column("concurrency", F, "mean number of requests in progress: their time in the bucket over its length"),
        Column("concurrency_peak", N, "most requests in progress at once", "requests"),
        Column("requests", N, "requests", "requests"),
        Column("connections", N, "distinct connections with a request or handshake; null where not knowable"),
        Column("opened", N, "of these, begun in this bucket; null where not knowable"),
        Column("reuse", F, "requests whose connection is known, per connection opened; null without any"),
        Column("reuse_high", F, "its upper 95 % limit; null below 20 opened"),
        Column("usual", F, "its baseline: median of the calm buckets before; null before there are 6"),
        _SHARE,
        _BASIS,
        Column("unit_cost", M, "cost of 1,000 requests in the hour the bucket lies in; null without hourly costs"),
        Column("currency", T, "of unit_cost; null where costs are in several"),
    ),
    "unit_costs": (
        Column("hour", TS, "start of the hour"),
        Column("currency", T, "billing currency"),
        Column("concurrency", F, "mean number of requests in progress"),
        Column("requests", N, "requests", "requests"),
        Column("cost", M, "cost of the hour, in the currency"),
        Column("unit_cost", M, "cost of 1,000 requests, in the currency"),
        Column("fitted", F, "the convex fit at this concurrency"),
    ),
}


def run(inputs: Inputs, params: ConnectionsParams, window: Window) -> Result:
    """Answer from frames alone; see `analytics.connections.answer`."""
    from analytics.connections.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="connections",
    title="Connections and concurrency",
    doc=(
        "Requests per connection, the share of time that goes into handshakes, requests in progress, and - where costs "
        "are known by the hour - at which concurrency a request is cheapest. From access logs and spans."
    ),
    params=ConnectionsParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(REUSE, KEPT, HANDSHAKE),
    triggers=(DROPPED,),
    lookback=timedelta(hours=24),
    every=timedelta(minutes=15),
)
