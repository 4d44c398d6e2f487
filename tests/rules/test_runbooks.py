"""Every alert leads to a page that says what to do."""

from pathlib import Path

import pytest

from analytics.catalog import load_all
from rules.alert import Alert, RuleOptions
from rules.build import alert_groups
from rules.pack import pack
from rules.slo.groups import objectives, slo_alerts

RUNBOOKS = Path(__file__).parents[2] / "rules" / "runbooks"
SECTIONS = ("## What it means", "## How to see it", "## Likely causes", "## What to do")


def alerts() -> dict[str, Alert]:
    own = [alert for _, group in alert_groups(load_all(), RuleOptions()) for alert in group]
    slos = [alert for one in objectives(("s: errors @0.99",)) for alert in slo_alerts(one)]
    return {alert.name: alert for alert in (*own, *slos, *(packed.alert() for _, group in pack() for packed in group))}


def test_every_alert_has_a_page_that_names_it_and_says_what_to_do() -> None:
    for name, alert in alerts().items():
        text = (RUNBOOKS / f"{alert.runbook}.md").read_text()
        assert text.startswith("# ")
        assert name in text
        assert [s for s in SECTIONS if s not in text] == []
        assert "infractl " in text


def test_every_page_belongs_to_an_alert_and_is_in_the_list() -> None:
    slugs = {alert.runbook for alert in alerts().values()}
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == slugs
    listed = (RUNBOOKS / "README.md").read_text()
    assert [slug for slug in slugs if f"({slug}.md)" not in listed] == []


@pytest.mark.parametrize("name", ["InfractlDown", "InfractlAnalysisStale", "InfractlDeadMansSwitch"])
def test_the_alerts_on_infractl_itself_are_always_there(name: str) -> None:
    assert name in alerts()
