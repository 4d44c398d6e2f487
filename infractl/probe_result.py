"""What rounds of probes amount to, as a Result."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from analytics.result import Finding, Result
    from collector.probe.attempt import Attempt
    from collector.probe.config import Probe
    from store.columns import Column

ENOUGH_FOR_P99 = 100
"""Fewer values have no hundredth largest: their P99 would be their maximum under another name."""
EXAMPLES = 5


class Round(NamedTuple):
    """A probe and the attempts of one round of it."""

    probe: "Probe"
    attempts: "Sequence[Attempt]"

    @property
    def answered(self) -> bool:
        """Whether anything came back, an error of the server included."""
        return any(attempt.answered for attempt in self.attempts)


def result_of(rounds: "Sequence[Round]") -> "Result":
    """Return one round of every probe as a Result: frames `urls` and `times`, a finding per URL and error code."""
    from analytics.frames import build
    from analytics.result import Result, Status
    from store.window import Window

    attempts = [attempt for made in rounds for attempt in made.attempts]
    start = min(attempt.at for attempt in attempts)
    end = max(attempt.at + timedelta(seconds=attempt.e2e_s) for attempt in attempts)
    urls, times = _columns()
    rows = [row for made in rounds for row in _time_rows(made)]
    frames = {"urls": build((), urls, [_url_row(made) for made in rounds]), "times": build((), times, rows)}
    findings = tuple(finding for made in rounds for finding in _findings(made))
    window = Window(start, end + timedelta(microseconds=1))
    return Result("probe", Status.OK, window, {}, frames, findings=findings, notes=_notes(rows))


def _columns() -> "tuple[tuple[Column, ...], tuple[Column, ...]]":
    from store.columns import Column, Kind

    urls = (
        Column("url", Kind.TEXT, "what was probed"),
        Column("model", Kind.TEXT, "model that answered, else model asked for"),
        Column("attempts", Kind.INT, "requests made"),
        Column("ok", Kind.INT, "of them without an error"),
        Column("errors", Kind.TEXT, "errors by code"),
        Column("new_connections", Kind.INT, "attempts that opened a connection"),
        Column("output_tokens", Kind.INT, "generated tokens", "tokens"),
        Column("tokens_per_s", Kind.FLOAT, "generated tokens over the time from the first start to the last end"),
    )
    times = (
        Column("url", Kind.TEXT, "what was probed"),
        Column("time", Kind.TEXT, "dns, tcp, tls, ttfb, ttft, itl or e2e"),
        Column("n", Kind.INT, "values"),
        Column("p50_s", Kind.FLOAT, "median", "s"),
        Column("p99_s", Kind.FLOAT, f"P99, from {ENOUGH_FOR_P99} values on", "s"),
        Column("max_s", Kind.FLOAT, "largest", "s"),
    )
    return urls, times


def _url_row(made: Round) -> dict[str, Any]:
    good = [attempt for attempt in made.attempts if not attempt.fault]
    codes = Counter(attempt.fault.code for attempt in made.attempts if attempt.fault)
    counts = [attempt.answer.output_tokens for attempt in good if attempt.answer.output_tokens is not None]
    return {
        "url": made.probe.target.shown_url,
        "model": next((a.answer.model or a.model for a in (*good, *made.attempts)), None),
        "attempts": len(made.attempts),
        "ok": len(good),
        "errors": ", ".join(f"{code} {n}" for code, n in codes.most_common()),
        "new_connections": sum(attempt.timeline.connected for attempt in made.attempts),
        "output_tokens": sum(counts) if counts else None,
        "tokens_per_s": sum(counts) / _lasted_s(made.attempts) if counts else None,
    }


def _lasted_s(attempts: "Sequence[Attempt]") -> float:
    start = min(attempt.timeline.zero_ns for attempt in attempts)
    return (max(attempt.timeline.zero_ns + attempt.end_ns for attempt in attempts) - start) / 1e9


def _time_rows(made: Round) -> list[dict[str, Any]]:
    """One row per kind of time that was measured; times of answers are those of attempts without an error."""
    good = [attempt for attempt in made.attempts if not attempt.fault]
    measured: dict[str, list[float | None]] = {
        "dns": [attempt.dns_s for attempt in made.attempts],
        "tcp": [attempt.tcp_s for attempt in made.attempts],
        "tls": [attempt.tls_s for attempt in made.attempts],
        "ttfb": [attempt.ttfb_s for attempt in good],
        "ttft": [attempt.ttft_s for attempt in good],
        "itl": [gap for attempt in good if attempt.streamed for gap in attempt.gaps_s],
        "e2e": [attempt.e2e_s for attempt in good],
    }
    rows = ((name, [value for value in values if value is not None]) for name, values in measured.items())
    return [{"url": made.probe.target.shown_url, "time": name, **_figures(known)} for name, known in rows if known]


def _figures(values: list[float]) -> dict[str, Any]:
    import numpy as np

    p99 = float(np.quantile(values, 0.99)) if len(values) >= ENOUGH_FOR_P99 else None
    return {"n": len(values), "p50_s": float(np.median(values)), "p99_s": p99, "max_s": max(values)}


def _notes(rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    few = sorted({str(row["time"]) for row in rows if row["n"] < ENOUGH_FOR_P99})
    if not few:
        return ()
    return (f"no P99 of {', '.join(few)}: fewer than {ENOUGH_FOR_P99} values, raise --count",)


def _findings(made: Round) -> "list[Finding]":
    from analytics.result import Finding, Severity

    url, total = made.probe.target.shown_url, len(made.attempts)
    failed: dict[str, list[Attempt]] = {}
    for attempt in made.attempts:
        if attempt.fault:
            failed.setdefault(attempt.fault.code, []).append(attempt)
    all_failed = sum(len(some) for some in failed.values()) == total
    return [
        Finding(
            trigger="ProbeFails",
            severity=Severity.CRITICAL if all_failed else Severity.WARNING,
            labels={"url": url, "error_code": code},
            value=len(some) / total,
            expected=(0.0, 0.0),
            since=some[0].at,
            summary=_summary(url, some, total),
            evidence={"trace_ids": [attempt.trace_id for attempt in some[:EXAMPLES]]},
        )
        for code, some in failed.items()
    ]


def _summary(url: str, failed: "Sequence[Attempt]", total: int) -> str:
    fault = failed[-1].fault
    assert fault is not None
    remedy = f" ({fault.remedy})" if fault.remedy else ""
    return f"{url}: {len(failed)} of {total} attempts: {fault.code}, {fault.text}{remedy}"
