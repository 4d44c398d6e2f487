"""`analyze retries`: attempts that are one request, how much load they add, and whether they wait long enough."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.result import Result, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.query import Query, SpanQuery
from store.tables import SPANS
from store.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

F, N, T, TS = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME

ATTEMPT_COLUMNS = (
    "trace_id", "span_id", "parent_span_id", "ts", "duration_s", "e2e_s", "name", "kind", "service", "operation",
    "model", "request_model", "input_tokens", "output_tokens", "max_tokens", "status", "error_code", "request_id",
    "resend_count", "links",
)  # fmt: skip
CALL_COLUMNS = (
    "trace_id", "span_id", "parent_span_id", "ts", "duration_s", "name", "kind", "service", "status", "error_code",
)  # fmt: skip
MOST_ATTEMPTS = 2_000_000
"""Attempts read at most: of more, traces would be left out, and attempts in other traces with them."""
MOST_CALLS = 300_000


@dataclass(frozen=True, kw_only=True, slots=True)
class RetriesParams(Params):
    """Parameters of `analyze retries`."""

    content: tuple[str, ...] = param(
        ("request_model", "input_tokens", "max_tokens", "user.id"),
        "without ids, attempts alike in these are one request; none to use ids only",
    )
    within_s: float = param(
        120.0, "seconds after a failure in which the like counts as its retry", within=(0.1, 86_400)
    )
    bucket: str = param("auto", "width of the buckets of the timeline: auto, or a duration such as 1m")
    resamples: int = param(200, "bootstrap resamples for intervals", within=(2, 10_000))
    seed: int = param(0, "seed of the bootstrap", within=(0, 2**32 - 1))


def inputs(params: RetriesParams) -> "Mapping[str, Query]":
    """Ask for model requests, for other calls that say they were sent again, and for calls between services."""
    fields = (*params.by, *params.content)
    columns = tuple(name for name in fields if SPANS.column(name) is not None)
    attributes = tuple(dict.fromkeys(name for name in fields if SPANS.column(name) is None))
    asked = tuple(dict.fromkeys((*ATTEMPT_COLUMNS, *columns)))
    return {
        "attempts": SpanQuery(asked, attributes, where=params.where, requests_only=True, at_most=MOST_ATTEMPTS),
        "resends": SpanQuery(asked, attributes, where=params.where, not_null=("resend_count",), at_most=MOST_ATTEMPTS),
        "calls": SpanQuery(
            tuple(dict.fromkeys((*CALL_COLUMNS, *(n for n in params.by if SPANS.column(n) is not None)))),
            tuple(n for n in dict.fromkeys(params.by) if SPANS.column(n) is None),
            at_most=MOST_CALLS,
        ),
    }


LABELS = ("service",)
AMPLIFICATION = Signal("retry_amplification", "", "attempts per logical request", LABELS)
STORM_LOW = Signal(
    "retry_storm_amplification", "", "lower 95 % limit of attempts per first attempt in the latest bucket", LABELS
)
DUPLICATES = Signal("retry_duplicate_successes", "", "requests that succeeded more than once", LABELS)
EARLY_LOW = Signal(
    "retry_gave_up_early_ratio", "", "lower 95 % limit of the share that gave up before the error was over", LABELS
)
DIVERGENT = Signal("retry_divergent_calls", "", "calls that succeeded above and failed or are missing below", LABELS)

STORM = Trigger(
    "RetryStorm",
    STORM_LOW,
    1.5,
    Severity.WARNING,
    "Requests to {service} arrive at least {value} times each",
    "retry-storm",
)
TWICE = Trigger(
    "DuplicateSuccess",
    DUPLICATES,
    0.0,
    Severity.WARNING,
    "{value} requests to {service} succeeded more than once",
    "duplicate-success",
    hold=timedelta(0),
)
EARLY = Trigger(
    "RetriesGiveUpEarly",
    EARLY_LOW,
    0.2,
    Severity.WARNING,
    "At least {value} of the retried requests to {service} gave up before the error was over",
    "retries-give-up-early",
)

FRAMES = {
    "summary": (
        Column("error_code", T, "error of the first attempt; (all): all requests, failed or not"),
        Column("sequences", N, "logical requests", "requests"),
        Column("retried", N, "those with more than one attempt", "requests"),
        Column("attempts", N, "attempts they made", "attempts"),
        Column("amplification", F, "attempts over logical requests"),
        Column("amplification_low", F, "lower 95 % limit"),
        Column("amplification_high", F, "upper 95 % limit"),
        Column("recovered", N, "retried requests that succeeded in the end", "requests"),
        Column("gave_up", N, "retried requests whose last attempt failed", "requests"),
        Column("gave_up_early", N, "of these: the error was over later on", "requests"),
        Column("gave_up_early_ratio", F, "of the retried requests", "ratio"),
        Column("gave_up_early_low", F, "lower 95 % Wilson limit", "ratio"),
        Column("told_by", T, "how attempts were recognised as one request"),
        Column("sure", F, "probability that attempts told by content belong together; null: told by ids", "ratio"),
    ),
    "backoff": (
        Column("error_code", T, "error that was retried"),
        Column("base_s", F, "mean wait before the first retry", "s"),
        Column("base_low_s", F, "lower 95 % limit", "s"),
        Column("base_high_s", F, "upper 95 % limit", "s"),
        Column("factor", F, "growth from wait to wait"),
        Column("factor_low", F, "lower 95 % limit"),
        Column("factor_high", F, "upper 95 % limit"),
        Column("cap_s", F, "mean wait where it stops growing; null: it did not", "s"),
        Column("cap_low_s", F, "lower 95 % limit", "s"),
        Column("cap_high_s", F, "upper 95 % limit", "s"),
        Column("jitter", F, "half-width of the waits around their mean: 0 none, 1 full jitter", "ratio"),
        Column("gaps", N, "waits seen", "waits"),
        Column("gives_up_after", F, "median attempts of the requests that gave up", "attempts"),
        Column("recovery_p50_s", F, "median time until the error was over (Kaplan-Meier)", "s"),
        Column("recovery_p99_s", F, "P99 of that; null where not so many were seen to the end", "s"),
        Column("recoveries", N, "times that an end was seen"),
        Column("verdict", T, "ok, cap below recovery time, or why there is no fit"),
    ),
    "duplicates": (
        Column("request_id", T, "id, else trace, of the request"),
        Column("successes", N, "attempts that succeeded", "attempts"),
        Column("attempts", N, "attempts", "attempts"),
        Column("first_ts", TS, "start of the first success"),
        Column("last_ts", TS, "start of the last one"),
        Column("extra_output_tokens", N, "tokens generated beyond the first success; null where not stated", "tokens"),
        Column("trace_ids", Kind.JSON, "traces of the successes"),
    ),
    "divergent": (
        Column("downstream", T, "service that was called"),
        Column("span", T, "name of the call above"),
        Column("kind", T, "failed: the span below has an error; missing: there is none"),
        Column("calls", N, "calls that diverge", "calls"),
        Column("of", N, "calls that succeeded above", "calls"),
        Column("share", F, "share of them", "ratio"),
        Column("share_low", F, "lower 95 % Wilson limit", "ratio"),
        Column("trace_ids", Kind.JSON, "examples"),
    ),
    "timeline": (
        Column("ts", TS, "start of the bucket"),
        Column("attempts", N, "attempts", "attempts"),
        Column("retries", N, "of these: not the first of their request", "attempts"),
        Column("failed", N, "attempts that failed", "attempts"),
        Column("amplification", F, "attempts over first attempts; null without a first one"),
        Column("amplification_low", F, "lower 95 % limit, retries of one request counted together"),
    ),
    "episodes": (
        Column("since", TS, "start of the first bucket above the bound"),
        Column("until", TS, "end of the last one; null while it lasts"),
        Column("attempts", N, "attempts", "attempts"),
        Column("retries", N, "of these: retries", "attempts"),
        Column("amplification", F, "attempts over first attempts; null without a first one"),
        Column("error_code", T, "most frequent error"),
    ),
}


def run(inputs: Inputs, params: RetriesParams, window: Window) -> Result:
    """Answer from frames alone; see `analytics.retries.answer`."""
    from analytics.retries.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="retries",
    title="Retries",
    doc=(
        "Groups attempts into logical requests; amplification, retry storms, requests that succeeded twice, calls that "
        "failed below a success, and the back-off of clients against the time an error lasts."
    ),
    params=RetriesParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(AMPLIFICATION, STORM_LOW, DUPLICATES, EARLY_LOW, DIVERGENT),
    triggers=(STORM, TWICE, EARLY),
    lookback=timedelta(hours=1),
    every=timedelta(minutes=2),
)
