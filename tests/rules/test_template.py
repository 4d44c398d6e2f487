"""Summaries become templates that Prometheus can print."""

import pytest

from rules.template import expand, to_prometheus
from store.errors import UsageError

KEPT = {"service": "service", "gen_ai.request.model": "gen_ai_request_model"}


def test_a_label_falls_back_to_words_when_the_sample_lacks_it() -> None:
    assert to_prometheus("P99 of {service}", KEPT) == "P99 of {{ with $labels.service }}{{ . }}{{ else }}n/a{{ end }}"
    assert expand("P99 of {service}", {}, 1.0) == "P99 of n/a"
    assert expand("P99 of {service}", {"service": ""}, 1.0) == "P99 of n/a"


def test_a_dotted_label_is_read_under_the_name_prometheus_knows() -> None:
    assert "$labels.gen_ai_request_model" in to_prometheus("{gen_ai.request.model}", KEPT)


@pytest.mark.parametrize(
    ("spec", "template", "text"),
    [
        ("{value}", '{{ $value | printf "%.4g" }}', "0.1235"),
        ("{value:.1f}", '{{ $value | printf "%.1f" }}', "0.1"),
        ("{value:,.2f}", '{{ $value | printf "%.2f" }}', "0.12"),
        ("{value:.0%}", "{{ $value | humanizePercentage }}", "12.35%"),
    ],
)
def test_a_value_is_printed_with_its_format(spec: str, template: str, text: str) -> None:
    assert to_prometheus(spec, {}) == template
    assert expand(spec, {}, 0.123456) == text


@pytest.mark.parametrize("summary", ["{pod} is slow", "{value:x}", "{service:>10}", "{value", "{}", "{value!r:>3}"])
def test_what_prometheus_could_not_print_is_refused(summary: str) -> None:
    with pytest.raises(UsageError):
        to_prometheus(summary, KEPT)
