"""Section `global` of a Prometheus file: what holds for every job that does not say otherwise."""

from typing import Any

import msgspec


class GlobalConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Defaults of all jobs. Names and meaning are Prometheus', its interval is 1 m and its pages are unlimited.

    Every key that Prometheus has is taken; those of `NO_EFFECT` change nothing here. `time_zone` is infractl's own: the
    zone of printed times and of days.
    """

    scrape_interval: str = "15s"
    scrape_timeout: str = "10s"
    body_size_limit: str | int = "256MB"
    sample_limit: int = 0
    target_limit: int = 0
    label_limit: int = 0
    label_name_length_limit: int = 0
    label_value_length_limit: int = 0
    time_zone: str = "UTC"
    evaluation_interval: Any = None
    rule_query_offset: Any = None
    external_labels: Any = None
    query_log_file: Any = None
    scrape_failure_log_file: Any = None
    keep_dropped_targets: Any = None
    scrape_protocols: Any = None
    scrape_native_histograms: Any = None
    always_scrape_classic_histograms: Any = None
    convert_classic_histograms_to_nhcb: Any = None
    metric_name_validation_scheme: Any = None
    metric_name_escaping_scheme: Any = None
    extra_scrape_metrics: Any = None


DEFAULTS = GlobalConfig()
"""What holds where a file has no section `global`."""
LIMITS = ("sample_limit", "target_limit", "label_limit", "label_name_length_limit", "label_value_length_limit")
_USED = ("time_zone", "scrape_interval", "scrape_timeout", "body_size_limit", *LIMITS)
NO_EFFECT = tuple(name for name in GlobalConfig.__struct_fields__ if name not in _USED)
"""Keys about rules, labels for other systems, formats and log files, none of which infractl has."""
