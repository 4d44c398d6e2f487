"""A configuration file is refused in one line that names file, line, key and the nearest known key."""

from pathlib import Path

import pytest

from infractl import settings
from infractl.configfile import ConfigFile, load
from infractl.sources import scrape_jobs
from store.errors import ConfigError


def written(tmp_path: Path, text: str) -> ConfigFile:
    file = tmp_path / "infractl.yaml"
    file.write_text(text)
    return load(file)


def test_values_and_lines_are_read(tmp_path: Path):
    config = written(tmp_path, "data: here\n\nserve:\n  port: 1\n")
    assert config.values["serve"]["port"] == 1
    assert config.where("serve", "port").endswith("infractl.yaml, line 4")


def test_an_empty_file_is_fine(tmp_path: Path):
    assert written(tmp_path, "# nothing\n").values == {}


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"cannot read .*nope\.yaml: No such file"):
        load(tmp_path / "nope.yaml")


def test_broken_yaml_names_the_line(tmp_path: Path):
    with pytest.raises(ConfigError, match="line 4"):
        written(tmp_path, "a: 1\nb:\n  - [1, 2\nc: 3\n")


def test_a_list_at_the_top_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="top level must be a mapping"):
        written(tmp_path, "- a\n")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path):
    (tmp_path / "x.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        load(tmp_path / "x.yaml")


def test_an_unknown_top_level_key_names_the_nearest(tmp_path: Path):
    with pytest.raises(ConfigError, match="line 2: unknown key 'scrape_config'") as caught:
        settings.check_top_level(written(tmp_path, "data: x\nscrape_config: []\n"))
    assert caught.value.hint == "did you mean scrape_configs?"


def test_an_unknown_key_deep_in_a_scrape_config_names_line_and_nearest(tmp_path: Path):
    text = "scrape_configs:\n- job_name: a\n  static_configs:\n  - target: [x]\n"
    words = r"line 4: unknown key 'scrape_configs\[0\]\.static_configs\[0\]\.target'"
    with pytest.raises(ConfigError, match=words) as caught:
        scrape_jobs(written(tmp_path, text))
    assert caught.value.hint == "did you mean targets?"


def test_a_value_of_the_wrong_type_names_its_key(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"line 2: content\.store: Expected bool, got str"):
        settings.content(written(tmp_path, "content:\n  store: perhaps\n"))


def test_an_unknown_analysis_names_the_nearest(tmp_path: Path):
    with pytest.raises(ConfigError, match="no analysis 'p90'") as caught:
        settings.schedules(written(tmp_path, "analyses:\n  p90: {every: 5s}\n"))
    assert caught.value.hint == "did you mean p99?"


def test_the_example_file_states_the_defaults():
    import yaml

    example = Path(settings.__file__).with_name("infractl.example.yaml")
    values = yaml.safe_load(example.read_text())
    assert settings.content(load(example)) == settings.Content()
    assert settings.telemetry(load(example)) == settings.Telemetry()
    assert values["data"] == str(settings.DEFAULT_DATA)


def test_targets_are_pasted_from_prometheus(tmp_path: Path):
    text = """
scrape_configs:
- job_name: vllm
  scrape_interval: 5s
  static_configs:
  - targets: [127.0.0.1:8000, 127.0.0.1:8001]
    labels: {service: chat}
"""
    (job,) = scrape_jobs(written(tmp_path, text))
    targets = job.targets().kept
    assert len(targets) == 2


def test_a_key_of_prometheus_that_is_not_read_names_its_line_and_what_to_do_instead(tmp_path: Path):
    text = "scrape_configs:\n- job_name: a\n- job_name: b\n  kubernetes_sd_configs: [{role: pod}]\n"
    with pytest.raises(ConfigError, match="line 4: scrape_configs: job b: kubernetes_sd_configs") as caught:
        scrape_jobs(written(tmp_path, text))
    assert "file_sd_configs" in caught.value.hint


def test_a_rule_that_cannot_be_used_names_its_line(tmp_path: Path):
    text = "scrape_configs:\n- job_name: a\n  relabel_configs:\n  - {action: keep}\n  - {action: hashmod}\n"
    with pytest.raises(ConfigError, match=r"line 5: scrape_configs: job a: relabel_configs\[1\]: hashmod"):
        scrape_jobs(written(tmp_path, text))
