"""What sections of the file and the report zone give the analyses that take them, on the command line and in serve."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from infractl.configfile import load
from infractl.settings import configured, schedules
from store.errors import ConfigError

TEXT = """global: {time_zone: Europe/Berlin}
slos:
  - {name: chat, sli: errors, objective: 99%}
budgets:
  - {name: all, amount: 5, currency: USD}
planned_changes:
  - {start: 2026-12-01, end: 2026-12-02}
analyses:
  cost: {params: {zone: Asia/Tokyo}}
"""
CHANGES = ("2026-11-30T23:00:00Z..2026-12-01T23:00:00Z",)


def test_an_analysis_gets_the_sections_and_the_zone_that_it_has_parameters_for(tmp_path: Path) -> None:
    path = tmp_path / "infractl.yaml"
    path.write_text(TEXT)
    config, berlin = load(path), ZoneInfo("Europe/Berlin")
    found = configured(config, "cost", berlin)
    assert found == {"zone": "Europe/Berlin", "budgets": ("all: 5 USD per month",), "changes": CHANGES}
    assert configured(config, "slo", berlin) == {"slos": ("chat: errors @0.99 over 30d",)}
    assert configured(config, "overview", berlin) == {}


def test_serve_gets_them_too_and_params_of_the_schedule_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INFRACTL_TIME_ZONE", raising=False)
    path = tmp_path / "infractl.yaml"
    path.write_text(TEXT)
    made = schedules(load(path))
    assert made["cost"].params["zone"] == "Asia/Tokyo"
    assert made["cost"].params["changes"] == CHANGES
    assert made["slo"].params["slos"] == ("chat: errors @0.99 over 30d",)
    path.write_text(TEXT.replace("Asia/Tokyo}", "Asia/Tokyo, budgets: []}"))
    assert schedules(load(path))["cost"].params["budgets"] == []
    path.write_text(TEXT.replace("amount: 5", "amount: five"))
    with pytest.raises(ConfigError, match="line 5: budgets"):
        schedules(load(path))
    assert configured(load(path), "slo", ZoneInfo("UTC")), "a budget that is wrong is none of its business"
