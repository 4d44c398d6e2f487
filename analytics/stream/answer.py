"""Put the answer of `stream` together."""

from dataclasses import asdict

import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.given_up import given_up
from analytics.result import Result, Status
from analytics.stream import FRAMES, GAP, GAPS, GOODPUT, STALLS, USUAL, StreamParams
from analytics.stream import timeline as over_time
from analytics.stream.chunks import replay
from analytics.stream.findings import findings, slower_since
from analytics.stream.gaps import KEY, events, paints, streams
from analytics.stream.groups import group_row, with_comparable
from store.window import Window

MEASURED = 100_000
"""Streams whose gaps are measured, some seconds of work; of more, those of a random share of the traces."""
LISTED = 200
"""Streams listed, those with the longest gap first: more are for SQL."""


def answer(inputs: Inputs, params: StreamParams, window: Window) -> Result:
    """Run the whole analysis on what was read."""
    by = list(params.by)
    arrivals, requests = inputs["arrivals"], inputs["requests"]
    known = frames.label_columns(requests.drop_nulls("ts"), by).unique(KEY, keep="first", maintain_order=True)
    kept = arrivals.unique(KEY, keep="first", maintain_order=True).join(known.select(KEY), on=KEY, how="semi")
    found = kept.height
    kept = _measured(kept)
    rows = events(kept)
    if rows.is_empty():
        return _nothing(arrivals, known, params, window)
    keyed = kept.with_row_index("stream").select("stream", *KEY)
    whole = (
        keyed.join(streams(rows), on="stream").join(known, on=KEY, how="left").join(paints(kept), on=KEY, how="left")
    )
    whole = whole.with_columns(_cancelled(), pl.coalesce("request_id", "trace_id").alias("request_id"))
    whole = whole.with_columns(
        pl.col("first_s").alias("ttft_s"), pl.coalesce("arrival_tpot_s", "tpot_s").alias("tpot_s")
    )
    judged = known.with_columns(_cancelled()).join(
        whole.select(*KEY, "first_s", "arrival_tpot_s", "last_s"), on=KEY, how="left"
    )
    groups = [
        labels
        | group_row(
            _of(whole, labels),
            rows,
            _of(judged, labels),
            params,
            window,
        )
        for labels, _ in frames.groups(whole, by)
    ]
    timeline, size = over_time.timeline(whole.filter(~pl.col("cancelled")), rows, by, window)
    latest = timeline.filter(pl.col("bucket") == 0).to_dicts()
    worst = whole.sort("itl_max_s", descending=True, nulls_last=True)
    usual = over_time.excess(timeline, by)
    made = {
        "requests": worst.head(LISTED).select(*by, *(pl.col(c.name).cast(c.kind.polars()) for c in FRAMES["requests"])),
        "groups": frames.build(by, FRAMES["groups"], with_comparable(groups)),
        "timeline": timeline.select(*by, *(pl.col(c.name).cast(c.kind.polars()) for c in FRAMES["timeline"])),
        "worst_gaps": _worst_gaps(rows, worst, params),
        "chunk_advice": frames.build((), FRAMES["chunk_advice"], replay(_round_trips(inputs))),
    }
    return Result(
        analysis="stream",
        status=Status.OK,
        window=window,
        params=asdict(params),
        frames={name: frames.finite(frame) for name, frame in made.items()},
        samples={
            STALLS.name: frames.samples(by, [row["labels"] | {"value": row["low"]} for row in usual]),
            USUAL.name: frames.samples(by, [row["labels"] | {"value": row["excess"]} for row in usual]),
            GAP.name: frames.samples(by, [row | {"value": row["gap_p99_s"]} for row in latest]),
            GAPS.name: frames.samples(by, [row | {"value": row["gap_ratio"]} for row in latest]),
            GOODPUT.name: frames.samples(by, [row | {"value": row["goodput_ratio"]} for row in groups]),
        },
        findings=(*findings(usual, whole), *slower_since(timeline, whole, by, size)),
        notes=_notes(whole, known, requests, found),
    )


def _measured(arrivals: pl.DataFrame) -> pl.DataFrame:
    """Keep the streams of a share of the traces (by the hash of the id) where there are very many."""
    if arrivals.height <= MEASURED:
        return arrivals
    parts = 1_000_000
    return arrivals.filter(pl.col("trace_id").hash(7) % parts < parts * MEASURED // arrivals.height)


def _of(frame: pl.DataFrame, labels: dict[str, str]) -> pl.DataFrame:
    return frame.filter(*(pl.col(name) == value for name, value in labels.items())) if labels else frame


def _cancelled() -> pl.Expr:
    return given_up().alias("cancelled")


def _round_trips(inputs: Inputs) -> list[float]:
    spans = inputs["round_trips"]
    return spans.filter(pl.col("duration_s") > 0)["duration_s"].to_list()


def _worst_gaps(rows: pl.DataFrame, worst: pl.DataFrame, params: StreamParams) -> pl.DataFrame:
    shown = worst.head(params.worst).select("stream", "trace_id")
    kept = shown.join(rows, on="stream", how="left", maintain_order="left_right")
    return kept.select(
        "trace_id", (pl.col("at_us") / 1e6).alias("at_s"), (pl.col("gap_us") / 1e6).alias("gap_s"), "tokens"
    )


def _nothing(arrivals: pl.DataFrame, known: pl.DataFrame, params: StreamParams, window: Window) -> Result:
    empty = not known.height and not arrivals.height
    note = f"no model requests in {window}" if empty else (
        f"{known.height} requests, {arrivals.height} with arrivals of tokens: jitter needs the times when tokens came "
        "(a client, probe or browser that reports them)"
    )  # fmt: skip
    status = Status.EMPTY if empty else Status.REFUSED
    return Result("stream", status, window, asdict(params), frames.empty(params.by, FRAMES), notes=(note,))


def _notes(whole: pl.DataFrame, known: pl.DataFrame, requests: pl.DataFrame, found: int) -> tuple[str, ...]:
    if found > MEASURED:
        notes = [f"measured {whole.height} of {found} streams, those of a random share of the traces"]
    else:
        notes = [f"{whole.height} of {known.height} requests have arrivals of tokens"]
    repeated, gone = int(whole["repeated"].sum()), int(whole["cancelled"].sum())
    notes += [f"{repeated} repeated events were left out"] if repeated else []
    notes += [f"{gone} streams given up by their clients are in no mean"] if gone else []
    share = requests["share_read"].max() if "share_read" in requests.columns else None
    if isinstance(share, float) and share < 1:
        notes.append(f"read from {share:.1%} of the traces: counts are of these, shares and quantiles of all")
    return tuple(notes)
