"""The configured sources: `scrape_configs` of infractl.yaml as targets."""

from typing import TYPE_CHECKING

from infractl.configfile import ConfigFile

if TYPE_CHECKING:
    from collector.prometheus.targets import Target


def scrape_targets(config: ConfigFile) -> tuple["Target", ...]:
    """Targets of scrape_configs. Raises ConfigError naming file, line and key."""
    from collector.prometheus.targets import ScrapeConfig, expand

    found = config.section("scrape_configs", list[ScrapeConfig]) or []
    return tuple(expand(found))
