"""What it is for: the findings on the sample data are the labelled incidents, each with the driver that caused it."""

import pytest

from analytics.result import Finding
from infractl.runner import run_named
from sample_data import fleet
from sample_data.load import describe, incidents, match, simulated, unmatched
from store.database import Database


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finding, ...]:
    """Findings of p99 over the simulated day; few resamples, since no interval of the fit is looked at."""
    with Database(tmp_path_factory.mktemp("store")) as database:
        database.append(list(simulated()))
        return run_named(database, "p99", {"resamples": "2"}, str(fleet.WINDOW)).findings


def test_p99_finds_every_simulated_latency_incident_and_nothing_else(findings: tuple[Finding, ...]) -> None:
    slow = [i for i in incidents() if i.id.startswith("sim") and i.nature == "latency"]
    assert [len(m.findings) for m in match(findings, slow)] == [1, 1, 1]
    assert unmatched(findings, slow) == []


def test_each_finding_names_the_driver_of_its_incident(findings: tuple[Finding, ...]) -> None:
    slow = [i for i in incidents() if i.id.startswith("sim") and i.nature == "latency"]
    lines = describe(match(findings, slow))
    assert all(f", driver {i.driver})" in line for i, line in zip(slow, lines, strict=True))
