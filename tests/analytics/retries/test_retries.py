"""Attempts into requests, storms, duplicates, divergence and giving up early: known truth and a recording."""

import json
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics import codec
from analytics.catalog import load
from analytics.result import Result, Status
from analytics.retries import CALL_COLUMNS, EARLY, STORM, TWICE
from collector.files import ImportOptions
from collector.files import load as import_file
from collector.otlp.decode import decode_protobuf
from store.database import Database
from store.query import Choice
from store.tables import SPANS
from store.window import Window
from tests.analytics.frames_of import lines, times, window_of
from tests.analytics.retries.simulated import SCHEMA, Policy, attempts, outages

ANALYSIS = load("retries")


def calls_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = {name: SPANS.schema()[name] for name in CALL_COLUMNS if name != "ts"}
    columns = {name: pl.Series(name, [row.get(name) for row in rows], t) for name, t in schema.items()}
    made = pl.DataFrame(columns).with_columns(times([row["at"] for row in rows]).alias("ts"))
    return made.with_columns(pl.lit(1.0).alias("share_read"))


def run(spans: pl.DataFrame, calls: pl.DataFrame | None = None, window: Window | None = None, **given: Any) -> Result:
    inputs = {"attempts": spans, "resends": spans.clear(), "calls": calls_of([]) if calls is None else calls}
    result = ANALYSIS.run(inputs, ANALYSIS.make_params(given), window or window_of(spans))
    assert codec.to_dict(codec.from_json(codec.to_json(result), ANALYSIS.frames)) == codec.to_dict(result)
    for trigger in ANALYSIS.triggers:
        holding = sum(
            trigger.holds(v) for v in result.samples.get(trigger.signal.name, pl.DataFrame({"value": []}))["value"]
        )
        assert holding == sum(f.trigger == trigger.name and f.until is None for f in result.findings)
    return result


def table(*rows: tuple[float, str | None], **more: list[Any]) -> pl.DataFrame:
    """Attempts from (second, error); other columns by name."""
    given: dict[str, Any] = {"at": [float(at) for at, _ in rows], "error_code": [code for _, code in rows]}
    empty = {name: [None] * len(rows) for name in ("request_id", "input_tokens") if name not in more}
    columns = given | empty | more
    return attempts(pl.DataFrame({n: pl.Series(n, v, SCHEMA.get(n)) for n, v in columns.items()}))


def whole(result: Result) -> dict[str, Any]:
    return result.frames["summary"].row(0, named=True)


def words(result: Result) -> str:
    return "\n".join(result.notes)


def test_attempts_of_one_id_are_one_request() -> None:
    result = run(table((0, "HTTP_429"), (1, "HTTP_429"), (3, None), (4, None), request_id=["a", "a", "a", "b"]))
    row = whole(result)
    assert (row["sequences"], row["retried"], row["attempts"], row["amplification"]) == (2, 1, 4, 2.0)
    assert (row["recovered"], row["gave_up"], row["told_by"], row["sure"]) == (1, 0, "request id", None)
    by_code = result.frames["summary"].filter(pl.col("error_code") == "HTTP_429").row(0, named=True)
    assert by_code["attempts"] == 3


def test_an_id_of_a_session_is_no_request() -> None:
    result = run(table(*((i, None) for i in range(150)), request_id=["session"] * 150))
    assert whole(result)["retried"] == 0
    assert "1 ids have more than 100 attempts" in words(result)


def test_likeness_after_a_failure_is_a_retry_and_says_how_sure() -> None:
    at = [(10 * i, None) for i in range(60)]
    result = run(table(*at, (601, "HTTP_503"), (602, None), input_tokens=[*range(60), 999, 999]))
    row = whole(result)
    assert (row["sequences"], row["told_by"]) == (61, "content")
    assert row["sure"] == pytest.approx(1 - 2 / 62)  # one of the 61 prompts, were this one a first attempt too


def test_likenesses_that_may_be_chance_are_not_joined_and_counted() -> None:
    rng = np.random.default_rng(0)
    at = np.sort(rng.uniform(0, 3600, 3000))
    failed = rng.uniform(size=3000) < 0.05
    rows = [(float(t), "HTTP_500" if bad else None) for t, bad in zip(at, failed, strict=True)]
    result = run(table(*rows, input_tokens=rng.integers(0, 60, 3000).tolist()))
    assert whole(result)["retried"] <= 1  # of 150 failures: one in ten such runs joins any
    assert "may be so by chance" in words(result)


def test_failures_that_say_nothing_of_their_content_are_told_so() -> None:
    result = run(table((0, "HTTP_400"), (1, "HTTP_400")))
    assert whole(result)["retried"] == 0
    assert "2 of 2 failed attempts state neither an id nor prompt tokens" in words(result)


def test_children_of_one_request_are_its_attempts_where_one_failed() -> None:
    spans = table((0, None), (0.1, "TIMEOUT"), (1, None), parent_span_id=[None, f"{0:016x}", f"{0:016x}"])
    spans = spans.with_columns(pl.lit("t").alias("trace_id"))
    row = whole(run(spans))
    assert (row["sequences"], row["attempts"], row["told_by"]) == (1, 2, "parent span")


def test_an_engines_span_below_its_client_is_no_second_attempt() -> None:
    spans = table((0, None), (0.1, None), parent_span_id=[None, f"{0:016x}"], request_id=["a", "a"])
    row = whole(run(spans.with_columns(pl.lit("t").alias("trace_id"))))
    assert (row["sequences"], row["attempts"]) == (1, 1)


def test_steps_of_an_agent_are_requests_of_their_own() -> None:
    spans = table((0, None), (0.1, None), (1, None), parent_span_id=[None, f"{0:016x}", f"{0:016x}"])
    row = whole(run(spans.with_columns(pl.lit("t").alias("trace_id"))))
    assert (row["sequences"], row["attempts"]) == (2, 2)


def test_a_link_to_an_earlier_attempt_makes_them_one() -> None:
    link = json.dumps([{"trace_id": f"{0:032x}", "span_id": f"{0:016x}", "attributes": {}}])
    row = whole(run(table((0, "HTTP_500"), (5, None), links=[None, link])))
    assert (row["sequences"], row["attempts"], row["told_by"]) == (1, 2, "span link")


def test_resend_counts_tell_of_attempts_that_were_not_seen() -> None:
    row = whole(run(table((0, None), (5, None), resend_count=[3, None])))
    assert (row["sequences"], row["attempts"], row["retried"]) == (2, 5, 1)


def test_calls_resent_in_one_place_of_a_trace_are_one() -> None:
    spans = table((0, "HTTP_500"), (1, None), (2, None), parent_span_id=["p"] * 3, resend_count=[None, 1, None])
    row = whole(run(spans.with_columns(pl.lit("t").alias("trace_id"))))
    assert (row["sequences"], row["attempts"], row["told_by"]) == (2, 3, "resend count")


def test_a_request_that_succeeded_twice_is_a_finding() -> None:
    result = run(
        table(
            *((0, None), (3, None), (9, None)),
            request_id=["a", "a", "b"],
            input_tokens=[7, 7, 9],
            output_tokens=[5, 6, 1],
        )
    )
    (row,) = result.frames["duplicates"].rows(named=True)
    assert (row["request_id"], row["successes"], row["extra_output_tokens"]) == ("a", 2, 6)
    (finding,) = result.findings
    assert (finding.trigger, finding.value) == (TWICE.name, 1.0)
    assert len(finding.evidence["trace_ids"]) == 2


def test_an_id_with_two_prompts_is_no_duplicate() -> None:
    result = run(table((0, None), (3, None), request_id=["a", "a"], input_tokens=[7, 70]))
    assert result.findings == ()
    assert "1 ids came with different prompts" in words(result)


def test_a_success_above_a_failure_diverges_and_one_above_nothing_is_missing() -> None:
    rows = []
    for i in range(40):
        shared = {"trace_id": f"t{i}", "at": float(i)}
        rows.append(shared | {"span_id": f"c{i}", "name": "call", "kind": "client", "service": "a", "status": "ok"})
        status = "error" if i < 2 else "ok"
        if i != 5:
            below = {"span_id": f"s{i}", "parent_span_id": f"c{i}", "name": "serve", "kind": "server", "service": "b"}
            rows.append(shared | below | {"status": status})
    calls = calls_of(rows)
    window = Window(datetime(2026, 11, 30, 12, tzinfo=UTC), datetime(2026, 11, 30, 13, tzinfo=UTC))
    result = run(table((0, None)), calls, window)
    found = {r["kind"]: r for r in result.frames["divergent"].iter_rows(named=True)}
    assert (found["failed"]["calls"], found["failed"]["of"], found["failed"]["downstream"]) == (2, 40, "b")
    assert (found["missing"]["calls"], json.loads(found["missing"]["trace_ids"])) == (1, ["t5"])
    assert result.samples["retry_divergent_calls"].rows() == [("a", 3.0)]


@pytest.mark.parametrize("by_id", [True, False], ids=["by id", "by content"])
def test_a_cap_below_the_recovery_time_is_found(by_id: bool) -> None:
    policy = Policy(1.0, 2.0, 8.0, 0.2, 7)
    result = run(outages(policy, 120.0, 60, np.random.default_rng(1), many=3, by_id=by_id))
    row = result.frames["backoff"].row(0, named=True)
    assert row["base_s"] == pytest.approx(1.0, rel=0.1)
    assert row["factor"] == pytest.approx(2.0, rel=0.05)
    assert row["cap_s"] == pytest.approx(8.0, rel=0.05)
    assert row["jitter"] == pytest.approx(0.2, abs=0.03)
    assert row["verdict"] == "cap below recovery time"
    assert row["gives_up_after"] == 7
    assert 80 <= row["recovery_p50_s"] <= 125
    (finding,) = [f for f in result.findings if f.trigger == EARLY.name]
    assert "gave up before HTTP_503 was over: after 7 attempts" in finding.summary
    assert {f.trigger for f in result.findings if f.until is not None} == {STORM.name}


def test_clients_that_wait_long_enough_give_no_finding() -> None:
    policy = Policy(1.0, 2.0, 60.0, 0.2, 9)
    result = run(outages(policy, 30.0, 60, np.random.default_rng(1), many=3))
    assert EARLY.name not in {f.trigger for f in result.findings}
    assert whole(result)["gave_up"] == 0
    row = result.frames["backoff"].row(0, named=True)
    assert row["recoveries"] == whole(result)["recovered"]
    assert row["verdict"] != "cap below recovery time"


def test_a_storm_that_lasts_is_open_and_one_that_is_over_has_an_end() -> None:
    spans = outages(Policy(0.5, 2.0, 2.0, 0.2, 30), 120.0, 40, np.random.default_rng(2), rate=0.5)
    middle = spans["ts"][0] + timedelta(seconds=200)
    during = run(spans.filter(pl.col("ts") < middle))
    assert [f.until for f in during.findings if f.trigger == STORM.name] == [None]
    after = run(spans)
    (storm,) = [f for f in after.findings if f.trigger == STORM.name]
    assert storm.until is not None
    assert after.frames["episodes"]["amplification"][0] > 5


def test_calm_traffic_with_a_few_retries_is_no_storm() -> None:
    rng = np.random.default_rng(3)
    result = run(outages(Policy(0.2, 2.0, 1.0, 0.1, 4), 1.0, 20, rng, many=10, rate=2.0, every_s=120))
    assert result.findings == ()


def test_a_share_of_the_traces_is_refused() -> None:
    result = run(table((0, None)).with_columns(pl.lit(0.5).alias("share_read")))
    assert result.status is Status.REFUSED
    assert "50.0% of the traces" in words(result)


def test_a_real_error_storm_has_no_retries_and_says_so(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "vllm_real"
    window = Window(datetime(2026, 11, 30, 16, 18, tzinfo=UTC), datetime(2026, 11, 30, 16, 40, tzinfo=UTC))
    with Database(tmp_path) as database:
        database.append(list(import_file(folder / "client.jsonl.gz", ImportOptions()).batches))
        bodies = lines(folder / "otlp_traces.jsonl.gz")
        database.append([decode_protobuf(b64decode(body["body_b64"])) for body in bodies])
        params = ANALYSIS.make_params({})
        asked = ANALYSIS.inputs(params).items()
        inputs = {name: database.read(query, window) for name, query in asked if not isinstance(query, Choice)}
    result = ANALYSIS.run(inputs, params, window)
    row = whole(result)
    assert (row["sequences"], row["attempts"], row["retried"]) == (1575, 1575, 0)  # the engine's spans are no attempts
    assert "client: no request was tried again; 70 of 1575 failed" in words(result)
    (aborted,) = result.frames["divergent"].rows(named=True)
    assert (aborted["kind"], aborted["calls"]) == ("missing", 47)  # the calls that the clients broke off
    assert result.findings == ()
