"""`analyze tokens`: what tokens cost by model, request, tenant and conversation, against what was billed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.result import Result, Severity, Signal, Trigger
from analytics.tokens.columns import FRAMES as FRAMES
from store.errors import UsageError
from store.query import Choice, CostQuery, PriceQuery, Query, RollupQuery, SpanQuery, in_rollups
from store.tables import SPANS
from store.window import Window

AT_MOST = 4_000_000
"""Requests read one by one where rollups cannot answer; of more, a share of the traces (about 1.5 GB of memory)."""
RAW_UP_TO = 1_000_000
"""Spans that are read one by one however long the window: only so are batches, long prompts and swaps known."""
COLUMNS = (
    "ts", "trace_id", "span_id", "parent_span_id", "provider", "model", "request_model", "response_model",
    "input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens", "cost_usd",
    "e2e_s", "ttft_s", "quality",
)  # fmt: skip
KEYS = ("provider", "model")
"""Every answer is by these, so labels need not name them."""
DAY_S = 86_400
BILL_BY = ("provider", "source", "cost_service", "model")


@dataclass(frozen=True, kw_only=True, slots=True)
class TokensParams(Params):
    """Parameters of `analyze tokens`."""

    by: tuple[str, ...] = param((), "labels to split every model by, such as service or tenant")
    batch: tuple[str, ...] = param(
        ("batch=true", "mode=batch", "service_tier=batch", "openai.response.service_tier=batch",
         "gen_ai.request.service_tier=batch"),
        "ATTRIBUTE=VALUE that marks a request as one of a batch",
    )  # fmt: skip
    tenant: tuple[str, ...] = param(
        ("tenant", "tenant.id", "team", "team_id", "customer"), "attributes that name a tenant; the first stated counts"
    )
    conversation: tuple[str, ...] = param(
        ("gen_ai.conversation.id", "session.id", "session_id"),
        "attributes that name a conversation; the first stated counts",
    )
    compression: str = param("", "attribute that says how a prompt was compressed: its values are compared")
    uncompressed: str = param("none", "value of it that means not compressed; so does a request without it")
    top: int = param(20, "rows of the dearest requests, tenants and conversations", within=(1, 1000))

    @property
    def labels(self) -> list[str]:
        """Labels beyond provider and model."""
        return [name for name in self.by if name not in KEYS]


def attributes(params: TokensParams) -> tuple[str, ...]:
    """Names, beyond the columns of every request, that the parameters speak of."""
    marks = (text.partition("=")[0] for text in params.batch)
    named = (*params.labels, *params.tenant, *params.conversation, *marks, params.compression)
    return tuple(name for name in dict.fromkeys(named) if name and name not in COLUMNS)


def inputs(params: TokensParams) -> Mapping[str, Query | Choice]:
    """Ask for the requests or their rollups, the prices in force, and what was billed by day."""
    wrong = next((text for text in params.batch if not all(text.partition("="))), None)
    if wrong is not None:
        raise UsageError(f"batch cannot be {wrong!r}", "write ATTRIBUTE=VALUE, such as service_tier=batch")
    named = attributes(params)
    stored = tuple(name for name in named if SPANS.column(name) is not None)
    others = tuple(name for name in named if SPANS.column(name) is None)
    raw = SpanQuery((*COLUMNS, *stored), others, where=params.where, requests_only=True, at_most=AT_MOST)
    rolled = in_rollups(params.by, params.where) and not params.compression
    return {
        "requests": Choice(raw, lambda window: {"rolled": rollup(params, window)}, RAW_UP_TO) if rolled else raw,
        "prices": PriceQuery(),
        "bills": CostQuery(BILL_BY, step_s=DAY_S),
    }


def rollup(params: TokensParams, window: Window) -> RollupQuery:
    """Ask for sums by model in steps as short as a price may hold: five minutes, of long windows an hour."""
    step_s = 300 if window.span <= timedelta(days=4) else 3600
    return RollupQuery("requests", (*params.labels, *KEYS), params.where, step_s)


_MODEL = ("provider", "model", "currency")
HOURLY = Signal("token_cost_per_hour", "", "cost of the tokens of the window, per hour, in the currency", _MODEL)
PER_1K = Signal("cost_per_1k_tokens", "", "cost of a thousand tokens, prompt and answer together", _MODEL)
UNPRICED = Signal("unpriced_token_ratio", "", "share of the window's tokens of which no price is known")
SWAP = Signal(
    "model_swap_ratio",
    "",
    "lower 95 % limit of the share of the latest requests that another model answers, since that began within the "
    "window",
    ("provider", "request_model", "response_model"),
)
CAPTURE = Signal(
    "bill_capture_ratio",
    "",
    "computed over billed, on the day of the bill on which that is highest; null: fewer than three whole days",
    ("provider", "source", "currency"),
)
SWAPPED = Trigger(
    "ModelSwapped", SWAP, 0.05, Severity.WARNING,
    "Requests for {request_model} are answered by {response_model}: at least {value} of the latest", "model-swapped",
    hold=timedelta(0),
)  # fmt: skip
NOT_TRACED = Trigger(
    "BillNotTraced", CAPTURE, 0.5, Severity.INFO,
    "The bill of {provider} is for more than what is traced: at most {value} of it on any day", "bill-not-traced",
    above=False,
)  # fmt: skip


def run(inputs: Inputs, params: TokensParams, window: Window) -> Result:
    """Price the tokens; empty without requests. See `analytics.tokens.answer`."""
    from analytics.tokens.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="tokens",
    title="Cost of tokens",
    doc="What the tokens of each model cost, exactly, by kind of token, request, tenant and conversation; what no "
    "price is known of; how that compares with the bill; requests that another model answers than was asked for.",
    params=TokensParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(HOURLY, PER_1K, UNPRICED, SWAP, CAPTURE),
    triggers=(SWAPPED, NOT_TRACED),
    every=timedelta(minutes=5),
)
