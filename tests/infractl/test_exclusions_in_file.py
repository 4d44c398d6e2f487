"""What a person has said in infractl.yaml is no anomaly holds for the command as for the schedule."""

from pathlib import Path

from infractl.configfile import load
from infractl.settings import configured, schedules
from store.zone import zone

TEXT = """
analyses:
  anomalies:
    params:
      exclude: [requests_waiting service=chat-api sat 02:00..04:00 until 2027-01-01, gpu_power_watts]
"""


def test_exclusions_of_the_file_are_those_of_the_command_and_of_the_schedule(tmp_path: Path) -> None:
    path = tmp_path / "infractl.yaml"
    path.write_text(TEXT)
    config = load(path)
    said = ["requests_waiting service=chat-api sat 02:00..04:00 until 2027-01-01", "gpu_power_watts"]
    berlin = zone("Europe/Berlin")
    assert configured(config, "anomalies", berlin) == {"exclude": said, "zone": "Europe/Berlin"}
    assert list(schedules(config, berlin)["anomalies"].params["exclude"]) == said
    assert configured(config, "overview", berlin) == {}


def test_without_a_file_nothing_is_excluded(tmp_path: Path) -> None:
    path = tmp_path / "infractl.yaml"
    path.write_text("{}\n")
    assert configured(load(path), "anomalies", zone("UTC")) == {"exclude": (), "zone": "UTC"}
