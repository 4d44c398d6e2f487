"""The rule groups of the pack and their promtool unit tests."""

import math
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from collector.presets.catalog import catalog
from rules.alert import RuleOptions
from rules.pack import pack
from rules.pack.packed import Packed
from store.window import format_duration

STEP_S, EVERY = 15, "1m"
"""Scrape and evaluation interval of the tests: Prometheus evaluates once a minute unless told otherwise."""
PREFIX = "pack-"
"""Of the names of the pack's groups: what they watch need not be there."""


def pack_groups(options: RuleOptions) -> list[dict[str, Any]]:
    """Return the recorded series as one group, in order of who reads whom, then a group of alerts per module."""
    return _groups(pack(), options)


def pack_tests(options: RuleOptions) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield, per module, a name, its rules, and promtool's test file for them stored as NAME.yml beside it.

    Three tests per alert: it fires, is quiet, and a missed scrape in between changes nothing.
    """
    for name, alerts in pack():
        rules = {"groups": _groups([(name, alerts)], options)}
        tests = [test for packed in alerts for test in _tests(packed, options)]
        file = f"{PREFIX}{name}"
        order = {"group_eval_order": [group["name"] for group in rules["groups"]]}
        yield file, rules, {"rule_files": [f"{file}.yml"], "evaluation_interval": EVERY, **order, "tests": tests}


def _groups(parts: Sequence[tuple[str, Sequence[Packed]]], options: RuleOptions) -> list[dict[str, Any]]:
    known = catalog()
    records = {record.name: record for _, alerts in parts for packed in alerts for record in packed.reads}
    return [
        {"name": f"{PREFIX}series", "rules": [record.rule(known) for record in records.values()]},
        *(
            {"name": PREFIX + name, "rules": [packed.alert().rule(options) for packed in alerts]}
            for name, alerts in parts
        ),
    ]


def _tests(packed: Packed, options: RuleOptions) -> Iterator[dict[str, Any]]:
    expected = [_expected(packed, options)]
    yield _test(packed, "fires", dict(packed.fires), expected)
    yield _test(packed, "survives a missed scrape", {s: _missed(v, packed) for s, v in packed.fires.items()}, expected)
    yield _test(packed, "is quiet", dict(packed.quiet), [])


def _test(packed: Packed, case: str, series: dict[str, str], expected: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": f"{packed.name} {case}",
        "interval": f"{STEP_S}s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {"eval_time": format_duration(packed.at), "alertname": packed.name, "exp_alerts": expected}
        ],
    }


def _expected(packed: Packed, options: RuleOptions) -> dict[str, Any]:
    alert = packed.alert()
    return {
        "exp_labels": {**dict(packed.labels), **alert.rule_labels(options)},
        "exp_annotations": alert.shown(options, packed.labels, packed.value),
    }


def _missed(values: str, packed: Packed) -> str:
    """Leave out the scrape one minute before the test looks: the sample of that step is `_`."""
    at = math.floor((packed.at - timedelta(minutes=1)).total_seconds() / STEP_S)
    expanded = _expand(values)
    return " ".join("_" if i == at else value for i, value in enumerate(expanded))


def _expand(values: str) -> list[str]:
    """Write promtool's a+bxN, axN out."""
    out: list[str] = []
    for word in values.split():
        start, times, count = word.partition("x")
        if not times:
            out.append(word)
            continue
        first, _, step = start.partition("+")
        n = int(count)
        out += [f"{float(first) + i * float(step or 0):.15g}" for i in range(n + 1)]
    return out
