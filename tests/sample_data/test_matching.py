"""Findings and incidents meet by service, time and nature; what meets nothing is named."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.result import Finding, Severity
from sample_data.incidents import Incident, from_json, to_json
from sample_data.matching import describe, match, overlaps, report, unmatched

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def minutes(n: float) -> timedelta:
    return timedelta(minutes=n)


def incident(kind: str = "burst", service: str = "chat", start: float = 0, end: float = 10, **more: object) -> Incident:
    fields = {"id": "i", "kind": kind, "service": service, "driver": None, "text": f"{service} was slow"}
    times = {"start": NOON + minutes(start), "end": NOON + minutes(end), "settled": NOON + minutes(end + 2)}
    return Incident(**{**fields, **times, **more})  # type: ignore[arg-type]


def finding(
    since: float,
    until: float | None,
    service: str | None = "chat",
    trigger: str = "TtftHigh",
    summary: str = "P99 is high",
) -> Finding:
    labels = {} if service is None else {"service": service}
    return Finding(
        trigger=trigger,
        severity=Severity.WARNING,
        labels=labels,
        value=1.0,
        expected=(None, None),
        since=NOON + minutes(since),
        summary=summary,
        until=None if until is None else NOON + minutes(until),
    )


def test_a_finding_within_the_incident_finds_it() -> None:
    assert overlaps(finding(2, 5), incident())


def test_a_finding_while_the_queue_drains_still_finds_it() -> None:
    assert overlaps(finding(11, 13), incident())


def test_a_finding_after_all_has_settled_does_not() -> None:
    assert not overlaps(finding(12, 14), incident())


def test_a_finding_that_ends_as_the_incident_starts_does_not() -> None:
    assert not overlaps(finding(-5, 0), incident())


def test_a_finding_that_lasts_overlaps_all_that_follows() -> None:
    assert overlaps(finding(-5, None), incident())


def test_another_service_does_not_match_but_a_client_of_it_does() -> None:
    assert not overlaps(finding(2, 5, "search"), incident())
    assert overlaps(finding(2, 5, "web"), incident(seen_by=("web",)))


def test_a_finding_without_a_service_is_held_against_the_time_alone() -> None:
    assert overlaps(finding(2, 5, None), incident())
    assert not overlaps(finding(20, 25, None), incident())


def test_slowness_does_not_find_an_error_storm_nor_errors_a_slow_tail() -> None:
    storm = incident("error_storm")
    assert not overlaps(finding(2, 5), storm)
    assert overlaps(finding(2, 5, trigger="ErrorRateHigh"), storm)
    assert not overlaps(finding(2, 5, trigger="ErrorRateHigh"), incident())


def test_one_long_finding_may_find_two_incidents() -> None:
    both = [incident(id="a"), incident(id="b", start=20, end=30)]
    assert [m.found for m in match([finding(0, 40)], both)] == [True, True]


def test_missed_incidents_and_extra_findings_are_named() -> None:
    lines = report([finding(60, 65, summary="P99 is 3 s")], [incident()])
    assert lines == [
        "missed  i burst, 30 Nov 12:00:00Z to 30 Nov 12:10:00Z: chat was slow",
        "extra   TtftHigh chat since 2026-11-30T13:00:00Z: P99 is 3 s",
        "0 of 1 incidents found; 1 findings match no incident",
    ]


def test_a_found_incident_says_since_when_and_by_what() -> None:
    lines = report([finding(3, 5), finding(1, 2)], [incident()])
    assert (
        lines[0]
        == "found   i burst, 30 Nov 12:00:00Z to 30 Nov 12:10:00Z: chat was slow (TtftHigh since 30 Nov 12:01:00Z)"
    )
    assert lines[-1] == "1 of 1 incidents found; 0 findings match no incident"


spans = st.tuples(st.integers(-60, 60), st.integers(1, 30))


@given(st.lists(spans, max_size=5), st.lists(spans, max_size=5))
def test_every_finding_is_in_a_match_or_unmatched_never_both(
    found: list[tuple[int, int]], truth: list[tuple[int, int]]
) -> None:
    findings = [finding(a, a + n, summary=str(i)) for i, (a, n) in enumerate(found)]
    known = [incident(start=a, end=a + n) for a, n in truth]
    matched = {f.summary for m in match(findings, known) for f in m.findings}
    others = {f.summary for f in unmatched(findings, known)}
    assert matched | others == {f.summary for f in findings}
    assert not matched & others


def test_a_truth_file_comes_back_as_written() -> None:
    given_ = [incident(driver="requests_waiting", seen_by=("web",)), incident("error_storm")]
    assert from_json(to_json(given_)) == given_


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("requests_waiting", ", driver requests_waiting"),
        ("requests_running + requests_waiting", ", driver requests_waiting"),
        ("input_tokens", ", driver input_tokens where the truth is requests_waiting"),
    ],
)
def test_the_driver_that_a_finding_names_is_held_against_the_truth(named: str, said: str) -> None:
    given_ = replace(finding(1, 2), evidence={"moved_most": {"driver": named}})
    (line,) = describe(match([given_], [incident(driver="requests_waiting")]))
    assert line.endswith(f"(TtftHigh since 30 Nov 12:01:00Z{said})")
