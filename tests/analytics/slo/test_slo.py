"""Analysis `slo`: budgets and burn rates counted by hand, alerts that a handful of requests cannot raise."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from analytics.result import Result, Status
from analytics.slo import ANALYSIS, inputs
from analytics.slo.objective import parse
from infractl.configfile import load
from infractl.slos import slo_texts
from store.database import Database
from store.errors import ConfigError, UsageError
from store.query import RollupQuery, SpanQuery
from store.window import Window

END = datetime(2026, 11, 30, 12, tzinfo=UTC)
LINE = "chat-ttft: ttft_s<=2 @0.99 over 30d where service=chat"


def rolled(counts: list[tuple[int, int, int]]) -> pl.DataFrame:
    """Rows of a rollup from (minutes before the end, requests, within the limit)."""
    at = [(END - timedelta(minutes=m)).replace(tzinfo=None) for m, _, _ in counts]
    return pl.DataFrame({"bucket": at, "measure": ["ttft_s"] * len(at), "n": [n for _, n, _ in counts],
                         "within_2": [k for _, _, k in counts]}).sort("bucket")  # fmt: skip


def answer(counts: list[tuple[int, int, int]], line: str = LINE) -> Result:
    params = ANALYSIS.make_params({"slos": (line,)})
    return ANALYSIS.run({"chat-ttft": rolled(counts)}, params, Window(END - timedelta(days=30), END))


def test_budget_and_burn_are_counted() -> None:
    row = answer([(m, 100, 99 if m % 10 else 98) for m in range(5, 1445, 5)]).frames["slos"].row(0, named=True)
    assert row["n"] == 28_800
    assert row["bad"] == 432
    assert row["budget_left"] == pytest.approx(1 - 432 / 288)
    assert row["burn_3d"] == pytest.approx(1.5)
    assert row["state"] == "burning"


def test_a_fast_burn_is_found_with_its_begin() -> None:
    calm = [(m, 100, 100) for m in range(65, 4000, 5)]
    result = answer(calm + [(m, 100, 60) for m in range(5, 65, 5)])
    found = {f.trigger: f for f in result.findings}
    assert "SloBurnsFast" in found
    assert END - timedelta(minutes=65) <= found["SloBurnsFast"].since <= END - timedelta(minutes=30)


def test_a_burn_that_is_over_does_not_alert_fast() -> None:
    result = answer([(m, 100, 100) for m in (5, 10, 15)] + [(m, 100, 0) for m in range(20, 60, 5)])
    assert "SloBurnsFast" not in {f.trigger for f in result.findings}


def test_six_requests_alert_nobody_and_200_of_the_same_do() -> None:
    assert answer([(5, 6, 5)]).findings == ()
    assert answer([(5, 6, 0)]).findings == ()
    assert answer([(5, 200, 167)]).findings != ()


def test_without_slos_it_says_how_to_add_one_and_suggests_one_that_is_kept() -> None:
    frame = pl.DataFrame({"service": ["chat"], "measure": ["ttft_s"], "n": [500], "p95": [1.4], "p99": [3.0]})
    result = ANALYSIS.run({"suggest": frame}, ANALYSIS.make_params({}), Window(END - timedelta(days=1), END))
    assert result.status is Status.EMPTY
    assert "ttft_s<=1.5 @0.95" in result.notes[1]


def test_several_limits_are_judged_row_by_row() -> None:
    line = "good: ttft_s<=2 & tpot_s<=0.1 @0.5"
    params = ANALYSIS.make_params({"slos": (line,)})
    assert isinstance(inputs(params)["good"], SpanQuery)
    assert isinstance(inputs(ANALYSIS.make_params({"slos": (LINE,)}))["chat-ttft"], RollupQuery)
    rows = pl.DataFrame({
        "ts": [(END - timedelta(minutes=1)).replace(tzinfo=None)] * 5, "status": ["ok", "ok", "ok", "error", "ok"],
        "error_code": pl.Series([None] * 5, dtype=pl.String), "ttft_s": [1.0, 3.0, 1.0, None, None],
        "tpot_s": [0.05, 0.05, 0.2, None, 0.05],
    })  # fmt: skip
    row = ANALYSIS.run({"good": rows}, params, Window(END - timedelta(days=1), END)).frames["slos"].row(0, named=True)
    assert (row["n"], row["bad"]) == (4, 3)


@pytest.mark.parametrize(
    "text", ["x", "a: ttft_s<=2 @1.5", "a: speed<=2 @0.9", "a: errors @0.9 over 1m", "a: ttft_s<=-1 @0.9"]
)
def test_a_line_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


def test_a_line_is_read_back_as_it_was_written() -> None:
    for text in (LINE, "e: errors @99.5% over 7d", "g: ttft_s<=500ms & tpot_s<=0.1 @0.9 where model=a and service=b"):
        assert parse(parse(text).text()) == parse(text)


OPENSLO = """apiVersion: openslo/v1
kind: SLO
metadata: {name: chat}
spec:
  service: chat
  indicator:
    metadata: {name: quick}
    spec: {infractl: "ttft_s<=2"}
  timeWindow:
    - duration: 4w
      isRolling: true
  budgetingMethod: Occurrences
  objectives:
    - target: 0.99
"""


def test_the_configuration_and_openslo_files_give_lines(tmp_path: Path) -> None:
    (tmp_path / "chat.yaml").write_text(OPENSLO)
    config = tmp_path / "infractl.yaml"
    config.write_text("slos:\n  - {name: a, sli: errors, objective: 99%, where: {service: x}}\nopenslo: [chat.yaml]\n")
    first, second = (parse(text) for text in slo_texts(load(config)))
    assert (first.name, first.objective, first.where) == ("a", 0.99, (("service", "x"),))
    assert (second.name, second.over, second.where) == ("chat", timedelta(days=28), (("service", "chat"),))


def test_what_openslo_has_and_infractl_has_not_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "chat.yaml").write_text(OPENSLO.replace("Occurrences", "Guesses"))
    config = tmp_path / "infractl.yaml"
    config.write_text("openslo: [chat.yaml]\n")
    with pytest.raises(ConfigError, match=r"chat.yaml, line 12: budgetingMethod"):
        slo_texts(load(config))


def test_the_command_line_reads_the_configuration(tmp_path: Path) -> None:
    from infractl.commands.analyze import command

    Database(tmp_path / "d").close()
    config = tmp_path / "infractl.yaml"
    config.write_text("slos:\n  - {name: mine, sli: errors, objective: 0.99}\n")
    done = CliRunner().invoke(command, ["slo", "--config", str(config), "--data", str(tmp_path / "d"), "--since", "1h"])
    assert "mine" in done.output
