"""A small analysis with triggers of every shape, and results of it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.analysis import Analysis, Params
from analytics.result import Finding, Result, Severity, Signal, Status, Trigger
from store.window import Window

WINDOW = Window(datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 11, 30, 1, tzinfo=UTC))

RATIO = Signal("p99_baseline_ratio", "", "P99 of TTFT over its baseline", ("service", "gen_ai.request.model"))
UP = Signal("target_up", "", "1 while the target answers", ("target",))
ALONE = Signal("debt", "ratio", "a number without labels")

TRIGGERS = (
    Trigger(
        "P99AboveBaseline",
        RATIO,
        2.0,
        Severity.WARNING,
        "P99 of {service} ({gen_ai.request.model}) is {value:.1f}x its baseline",
        "p99-above-baseline",
    ),
    Trigger(
        "TargetDown",
        UP,
        0.5,
        Severity.CRITICAL,
        "{target} is down",
        "target-down",
        above=False,
        hold=timedelta(minutes=1),
    ),
    Trigger(
        "DebtHigh",
        ALONE,
        1e-05,
        Severity.INFO,
        "debt is {value:.0%} {{really}} {value}",
        "debt-high",
        hold=timedelta(),
        keep_firing=timedelta(),
    ),
    Trigger(
        "DebtHuge",
        ALONE,
        0.1 + 0.2,
        Severity.CRITICAL,
        "debt is {value:.3g} of {value:,.2f}",
        "debt-high",
        hold=timedelta(seconds=20),
    ),
)


def make_analysis(name: str, triggers: tuple[Trigger, ...], signals: tuple[Signal, ...] = ()) -> Analysis[Params]:
    return Analysis(
        name=name,
        title=name,
        doc="An analysis made up for tests.",
        params=Params,
        inputs=lambda _: {},
        frames={},
        run=lambda _inputs, _params, window: make_result({}, analysis=name, window=window),
        signals=signals or tuple(dict.fromkeys(t.signal for t in triggers)),
        triggers=triggers,
    )


def make_result(
    samples: dict[str, list[dict[str, Any]]],
    findings: tuple[Finding, ...] = (),
    *,
    analysis: str = "p99",
    window: Window = WINDOW,
) -> Result:
    frames = {name: pl.DataFrame(rows, infer_schema_length=None) for name, rows in samples.items()}
    return Result(analysis, Status.OK, window, {}, {}, frames, findings)


@pytest.fixture
def analysis() -> Analysis[Params]:
    return make_analysis("p99", TRIGGERS)


@pytest.fixture
def result() -> Callable[..., Result]:
    return make_result
