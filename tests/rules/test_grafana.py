"""The dashboard for Grafana shows every signal, by expressions that can be answered."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from analytics.catalog import load_all
from infractl.commands.rules import command
from rules.alert import RuleOptions
from rules.grafana import dashboard, to_json
from rules.lint import known_metrics
from rules.promql import read


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return dashboard(load_all(), RuleOptions(dashboard_url="https://obs.example/app"))


def panels(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in made["panels"]:
        yield panel
        yield from panel.get("panels", ())


def test_ids_are_unique_and_panels_of_one_level_do_not_overlap(made: dict[str, Any]) -> None:
    ids = [panel["id"] for panel in panels(made)]
    assert len(ids) == len(set(ids))
    for level in (made["panels"], *(row["panels"] for row in made["panels"] if row["type"] == "row")):
        cells = [
            (x, y)
            for at in (panel["gridPos"] for panel in level)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        ]
        assert len(cells) == len(set(cells))
        assert all(x < 24 for x, _ in cells)


def test_every_expression_names_a_metric_that_is_published_and_labels_it_has(made: dict[str, Any]) -> None:
    known = known_metrics(load_all()) | {"ALERTS": frozenset(("alertname", "severity", "alertstate"))}
    for panel in panels(made):
        for target in panel.get("targets", ()):
            expression = read(target["expr"], known)
            assert expression.metrics <= known.keys(), panel["title"]
            assert expression.labels is not None
            used = {part.partition("}}")[0] for part in target["legendFormat"].split("{{")[1:]}
            assert used <= expression.labels, panel["title"]


def test_every_signal_is_shown_and_every_trigger_leads_to_its_runbook(made: dict[str, Any]) -> None:
    shown = [panel for row in made["panels"] for panel in row.get("panels", ())]
    assert len(shown) == sum(len(one.signals) for one in load_all())
    told = {link["title"] for panel in shown for link in panel["links"]}
    assert {f"Runbook: {trigger.name}" for one in load_all() for trigger in one.triggers} <= told
    assert all(
        link["url"].startswith(("https://obs.example/app/", "http://127.0.0.1")) for p in shown for link in p["links"]
    )


def test_panels_ask_the_source_that_is_chosen_and_there_is_an_alert_list(made: dict[str, Any]) -> None:
    assert made["templating"]["list"][0]["type"] == "datasource"
    assert {p["datasource"]["uid"] for p in panels(made) if p["type"] != "row"} == {"${datasource}"}
    assert "alertlist" in {panel["type"] for panel in made["panels"]}
    assert made["schemaVersion"] >= 39


def test_steps_of_bounds_rise_and_begin_without_one(made: dict[str, Any]) -> None:
    for panel in panels(made):
        steps = panel.get("fieldConfig", {}).get("defaults", {}).get("thresholds", {}).get("steps", ())
        bounds = [step["value"] for step in steps]
        assert bounds[:1] in ([], [None])
        assert bounds[1:] == sorted(bounds[1:])


def test_build_writes_it(tmp_path: Path) -> None:
    words = ["build", "--output", str(tmp_path / "r.yml"), "--grafana", str(tmp_path / "g.json")]
    assert CliRunner().invoke(command, words, catch_exceptions=False).exit_code == 0
    assert json.loads((tmp_path / "g.json").read_text()) == json.loads(to_json(load_all()))
