"""The figures of every analysis, in the order of a page. An analysis without an entry has its tables alone."""

from dashboards.charts.banded import Banded
from dashboards.charts.bars import Bars
from dashboards.charts.budgets import BurnRates
from dashboards.charts.cachecurve import CacheCurve
from dashboards.charts.costs import CostBands
from dashboards.charts.curve import QuantileDifference
from dashboards.charts.decomposition import Decomposition
from dashboards.charts.episodes import Episodes
from dashboards.charts.errormap import ErrorMap
from dashboards.charts.front import ParetoFront
from dashboards.charts.lines import Lines
from dashboards.charts.plate import Chart
from dashboards.charts.streams import Jitter, WorstGaps
from dashboards.charts.tiers import CostByQuantity
from dashboards.charts.tornado import Tornado
from dashboards.charts.unitcost import UnitCost

CHARTS: dict[str, tuple[Chart, ...]] = {
    "latency": (
        Decomposition(),
        Bars(
            frame="critical_path", label=("service", "span"), value="share_of_p99", unit="ratio",
            axis="share of the slowest traces' time", title="{label} accounts for {value} of the slowest traces",
        ),
        Lines(
            frame="waits", columns=(("queue_p99_s", "queue P99"), ("work_s", "usual work")), unit="s",
            axis="time", title="Waiting peaked at {peak}, {at}",
        ),
    ),
    "retries": (
        Lines(
            frame="timeline", columns=(("amplification", "attempts each"), ("amplification_low", "at least")),
            axis="attempts per request", title="Attempts per request peaked at {peak}, {at}", mark=(1.5, "storm: 1.5"),
        ),
        Bars(
            frame="summary", label=("error_code",), value="gave_up_early_ratio", low="gave_up_early_low",
            unit="ratio", axis="retried requests that gave up before the error was over",
            title="{value} of the retries after {label} gave up too early", drop=("error_code", "(all)"),
        ),
        Bars(
            frame="backoff", label=("error_code",), value="recovery_p50_s", unit="s", axis="median time until over",
            title="An error {label} is over after {value} (median)",
        ),
    ),
    "errors": (
        ErrorMap(),
        Bars(
            frame="top", label=("code", "cloud"), value="share", low="share_low", high="share_high", unit="ratio",
            axis="share of the errors of its cloud", title="{label} is {value} of the errors there",
        ),
    ),
    "anomalies": (
        Episodes(
            frame="anomalies", lane=("series", "labels"), loud=("level", "page"),
            title="{count} in {lanes} series; red ones rest on more than one look",
        ),
        Banded(
            frame="values", key=("series", "labels"), marks="anomalies", loud=("level", "page"),
            title="Values of the {count} foremost, with what is usual as a band and episodes shaded",
        ),
    ),
    "stream": (
        Lines(
            frame="timeline", columns=(("stalled_ratio", "stalled"),), unit="ratio", axis="streams with a stall",
            title="Streams with a stall peaked at {peak}, {at}",
        ),
        Lines(
            frame="timeline", columns=(("gap_p99_s", "P99 of the gaps"), ("baseline_s", "calm before")), unit="s",
            axis="gap between parts", title="P99 of the gaps peaked at {peak}, {at}",
        ),
        WorstGaps(),
        Jitter(),
    ),
    "slo": (
        Bars(
            frame="slos", label=("slo",), value="budget_left", unit="ratio", axis="error budget left", centre=0.0,
            title="{label} has the least budget left, {value}", largest=False,
        ),
        BurnRates(),
        Lines(
            frame="timeline", by="slo", columns=(("budget_left", "budget left"),), unit="ratio", axis="budget left",
            title="The budget stood at {peak} at best, {at}", mark=(0.0, "used up"),
        ),
    ),
    "engines": (
        Bars(
            frame="engines", label=("service",), value="ttft_p99_s", low="ttft_p99_low_s", high="ttft_p99_high_s",
            unit="s", axis="P99 TTFT", title="{label} has the highest P99 TTFT, {value}", whole=True,
        ),
        Bars(
            frame="engines", label=("service",), value="tpot_p99_s", low="tpot_p99_low_s", high="tpot_p99_high_s",
            unit="s", axis="P99 time per token", title="{label} has the highest P99 per token, {value}", whole=True,
        ),
    ),
    "cache": (
        Lines(
            frame="windows", ts="bucket", columns=(("hit_ratio", "hit ratio"), ("ceiling", "ceiling")), unit="ratio",
            axis="blocks found", title="The hit ratio peaked at {peak}, {at}",
        ),
        CacheCurve(),
        Bars(
            frame="tiers", label=("medium", "source"), value="hit_ratio", low="hits_low", high="hits_high",
            unit="ratio", axis="lookups found", title="{label} finds {value} of what is looked up there",
        ),
        Bars(
            frame="shards", label=("shard",), value="share", unit="ratio", axis="share of the load",
            title="{label} has the largest share of the load, {value}",
        ),
    ),
    "tokens": (
        Bars(
            frame="models", label=("model", "currency"), value="cost", axis="cost of the tokens", whole=True,
            title="{label} costs most, {value} in this window",
        ),
        Bars(
            frame="kinds", label=("model", "kind"), value="cost", axis="cost by kind of token", whole=True,
            title="{label} tokens cost most, {value}",
        ),
        Bars(
            frame="tenants", label=("tenant", "currency"), value="cost", axis="cost of the tokens", whole=True,
            title="{label} is the dearest tenant, {value}",
        ),
        Bars(
            frame="bills", label=("provider", "source", "day"), value="capture", unit="ratio", whole=True,
            axis="computed over billed", title="Of {label}, {value} is traced at most", only=("model", ""),
        ),
    ),
    "cost": (
        CostBands(),
        Bars(
            frame="explained", label=("item",), value="total", centre=0.0, axis="change of cost",
            title="{label} changed most, by {value}",
        ),
        Lines(
            frame="days", ts="day", by="service", columns=(("cost", "cost"),), axis="cost of a day",
            title="The cost of a day peaked at {peak}, {at}",
        ),
    ),
    "ab": (
        QuantileDifference(frame="quantiles", q="tau", value="difference_s"),
        Bars(
            frame="variants", label=("variant",), value="p99_s", low="p99_low", high="p99_high", unit="s",
            axis="P99", title="{label} has the highest P99, {value}",
        ),
        Bars(
            frame="variants", label=("variant",), value="sla", low="sla_low", high="sla_high", unit="ratio",
            axis="requests within the limit", title="Within the limit: {label} {value}, with the intervals of all",
        ),
    ),
    "factorial": (
        Bars(
            frame="effects", label=("effect", "contrast"), value="estimate", low="ci_low", high="ci_high", centre=0.0,
            axis="effect on the mean", title="{label} has the largest effect on the mean, {value}", only=("on", "mean"),
        ),
        Bars(
            frame="effects", label=("effect", "contrast"), value="estimate", low="ci_low", high="ci_high", centre=0.0,
            axis="effect on the spread", title="{label} has the largest effect on the spread, {value}",
            only=("on", "spread"),
        ),
    ),
    "connections": (
        UnitCost(),
        Lines(
            frame="buckets", by="side", columns=(("reuse", "reuse"),), axis="requests per connection opened",
            title="Connections carried {peak} requests each at best, {at}",
        ),
        Lines(
            frame="buckets", by="side", columns=(("handshake_share", "handshakes"),), unit="ratio",
            axis="time in handshakes", title="Handshakes took at most {peak} of the time, {at}",
        ),
    ),
    "whatif": (
        Tornado(),
        Bars(
            frame="yearly", label=("part", "currency"), value="scenario", low="scenario_low", high="scenario_high",
            axis="cost of a year in the scenario", title="A year costs {value} ({label}) in the scenario",
        ),
    ),
    "tiers": (CostByQuantity(),),
    "pareto": (ParetoFront(),),
}  # fmt: skip
