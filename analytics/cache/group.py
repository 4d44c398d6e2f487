"""Everything of one group of labels: its frames, and notes on what they rest on."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from analytics.cache import (
    PREFIX,
    CacheParams,
    balance,
    counters,
    doubling,
    events,
    quality,
    ring,
    sources,
    spans,
    survival,
    tiers,
    traces,
)  # fmt: skip
from analytics.cache.columns import FRAMES
from analytics.cache.curve import curve
from analytics.cache.findings import dominant, unused
from store.window import Window

Rows = dict[str, list[dict[str, Any]]]
Part = Mapping[str, pl.DataFrame]
EVENTS = "KV events: expired is exact, redundant an estimate, since events do not show that a block was used"
NO_HITS = "KV events without counters of the same service: hits are not known, accesses are stores"
OTHERS = "windows are of the services that publish KV events; those with counters alone are left out (--by service)"
PROXY = "proxy: accesses and hits are tokens, cpi is the share not found, an upper limit of expired"
SPANS = "spans: accesses and hits are prompt tokens as requests state them, cpi is the share not found"
SINCE = "counters have one sample: they count since their engine started"


class Group:
    """Frames (`rows`) and `notes` of one group, made source by source; windows are of the most exact one."""

    def __init__(
        self, part: Part, params: CacheParams, window: Window, prices: pl.DataFrame | None, who: str = ""
    ) -> None:
        self.part, self.params, self.window, self.prices, self.who = part, params, window, prices, who
        self.rows: Rows = {name: [] for name in FRAMES}
        self.notes: dict[str, None] = {}
        self.points, self.from_zero = counters.two_points(part["series"])

    def answer(self) -> Rows:
        """Fill all frames."""
        counted, since_start = counters.read(self.part["counters"], self.params)
        if since_start:
            self._note(SINCE)
        self.rows["sources"] += sources.of_counters(self.points, self.from_zero)
        self._spans()
        if counted.height:
            self.rows["windows"] = counters.windows(counted)
        trace = traces.read(self.part["blocks"])
        if trace is not None:
            self._trace(trace)
        stored, removed = events.replay(self.part["events"], self.params.idle)
        if stored.height:
            self._events(stored)
        if counted.height and trace is None and not stored.height:
            self._note(PROXY)
        self._tiers(stored, removed)
        self._shards()
        self._quality()
        self._close()
        return self.rows

    def _note(self, text: str | None) -> None:
        if text:
            self.notes[text] = None

    def _note_own(self, text: str | None) -> None:
        """Note what is true of this group alone, with its name."""
        self._note(f"{self.who}: {text}" if text and self.who else text)

    def _spans(self) -> None:
        found, rolled = spans.windows(self.part["requests"], self.part.get("rolled"), self.params.bucket)
        if not found:
            return
        looked_up, hits = (sum(row[name] for row in found) for name in ("accesses", "hits"))
        self.rows["sources"].append(sources.row("spans", looked_up, hits))
        self.rows["windows"] = found
        if rolled:
            self._note(spans.ROLLED)

    def _trace(self, trace: traces.Trace) -> None:
        params, rows = self.params, self.rows
        judged = traces.judged(trace, params)
        rows["windows"], rows["rounds"] = traces.windows(judged, params), list(map(dict, traces.rounds(judged)))
        rows["curve"] = curve(trace, self.part["requests"], params)
        at_size = next(row for row in rows["curve"] if row["blocks"] == min(params.blocks, trace.unique))
        end = self.window.end.replace(tzinfo=None)
        rows["doubling"] = doubling.rows(at_size, self.part["requests"], self.prices, params, end)
        if params.gpu_hour > 0 and at_size["ttft_saved_s"] is None:
            self._note_own("GPU time saved is not known: it needs blocks in tokens and 30 requests with a prefill time")
        self._aged(survival.of_trace(trace, params.blocks))
        if trace.unit == "tokens" and trace.block_size:
            size, total = trace.block_size, judged.height
            label = f"{sources.MODEL}, {params.blocks} blocks"
            rows["sources"].append(sources.row(label, total * size, int(judged["hit"].sum()) * size))
        self._note(f"traced requests: LRU model with {params.blocks} blocks (--blocks); an engine also keeps what runs")

    def _events(self, stored: pl.DataFrame) -> None:
        services = self.part["events"]["service"].unique()
        own = pl.col("service").is_in(services.implode(), nulls_equal=True)
        counted, _ = counters.read(self.part["counters"].filter(own), self.params)
        if self.part["counters"].filter(~own).height:
            self._note_own(OTHERS)
        sizes = self.part["events"]["block_size"].drop_nulls().unique()
        size = int(sizes[0]) if len(sizes) == 1 else None
        self.rows["windows"] = counters.with_events(stored, counted, self.params, size)
        computed = stored.height * size if size else None
        self.rows["sources"].append(sources.row("KV events", None, None, computed))
        self._aged(survival.of_events(stored))
        self._note(EVENTS)
        if counted.is_empty() or not size:
            self._note(NO_HITS)

    def _aged(self, found: tuple[survival.Rows, survival.Rows, survival.Rows]) -> None:
        for name, rows in zip(("retention", "decay", "reuse"), found, strict=True):
            self.rows[name] += rows

    def _tiers(self, stored: pl.DataFrame, removed: Mapping[str, int]) -> None:
        self.rows["tiers"] += tiers.of_events(stored, removed)
        self.rows["tiers"] += tiers.of_counters(self.points, self.from_zero)
        self.rows["tiers"] += tiers.of_answers(self.part["requests"], self.params.cache_hit, self.params.cache_tier)
        self.rows["reuse"] += survival.of_histograms(self.points, self.from_zero)

    def _shards(self) -> None:
        params, requests, stored = self.params, self.part["requests"], self.part["events"]
        self.rows["shards"] = balance.shards(requests, stored, params.bytes_per_token, params.versions)
        if sum(bool(row["requests"]) for row in self.rows["shards"]) < 2:
            return
        key = PREFIX if params.key == (PREFIX,) else "key"
        served = balance.keyed(requests, self.part["blocks"], key)
        self.rows["ring"], self.rows["nodes"], said = ring.check(served, params.nodes, params.ring_hash)
        for text in said:
            self._note(text) if text == ring.NO_KEY else self._note_own(text)

    def _quality(self) -> None:
        params, requests = self.params, self.part["requests"]
        if not params.score or not requests[params.score].is_not_null().any():
            return
        if params.level:
            found = quality.compression(requests, params.level, params.score, params.turns, params.gamma)
            self.rows["compression"] = found
        if not requests["share_read"].drop_nulls().eq(1).all():
            self._note(
                "a share of the requests was read: turns of conversations cannot be counted, see a shorter window"
            )
            return
        self.rows["decay"] += quality.by_turn(requests, "key", params.score)

    def _close(self) -> None:
        windows = self.rows["windows"]
        if windows and windows[-1]["basis"] == "spans":
            self._note(SPANS)
        self._note_own(sources.apart(self.rows["sources"]))
        for row in windows:
            row["dominant"] = dominant(row)
        self._note_own(unused(windows))
