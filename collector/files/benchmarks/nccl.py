"""Tables of nccl-tests and rccl-tests: a stage for each message size."""

import re

from collector.files.benchmarks.documents import run_name
from collector.files.benchmarks.report import Report, Run, finite
from collector.files.content import Content

TOOL = "nccl_tests"
IS_TABLE = re.compile(r"^#?[ \t]*size[ \t]+count[ \t]+type[ \t].*algbw[ \t]+busbw", re.MULTILINE)
_COLLECTIVE = re.compile(
    r"(all_?reduce|all_?gather|reduce_?scatter|broadcast|all_?to_?all|send_?recv|gather|scatter|hypercube|reduce)(?:_perf)?",
    re.IGNORECASE,
)
_TOOL_NAME = re.compile(r"\b(\w+)_perf\b")
_RANK = re.compile(r"^#?\s*Rank\s+\d+\s.*?\bon\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s+(.+?)\s*$")
_AVERAGE = re.compile(r"^#\s*Avg bus bandwidth\s*:\s*(\S+)")
_ROW = re.compile(r"^\s*\d{1,18}\s+\d{1,18}\s+\S+\s+\S+\s+-?\d+\s", re.ASCII)
_PLACES = ("out_of_place", "in_place")
_GB_PER_S = 1e9


def read_nccl(content: Content) -> Report:
    """Read a table. The printed average is over all sizes, small ones too: it is kept, under a name that says so."""
    report = Report()
    lines = content.text().split("\n")
    labels = _labels(content, lines)
    for number, line in enumerate(lines, 1):
        if found := _AVERAGE.match(line):
            run = Run(run_name(content), TOOL, "all sizes", labels=labels)
            run.add("bus_bandwidth_mean_of_sizes_bytes_per_second", "mean", found[1], "bytes/s", _GB_PER_S)
            report.runs.append(run)
        elif _ROW.match(line):
            run = _row(content, line.split(), labels)
            if run.figures:
                report.runs.append(run)
            else:
                report.refuse("row with no measurement", f"{content.path}:{number}")
    return report


def _labels(content: Content, lines: list[str]) -> dict[str, object]:
    ranks = [found.groups() for line in lines if (found := _RANK.match(line))]
    named = next((found[1] for line in lines if (found := _TOOL_NAME.search(line))), None)
    stated = _COLLECTIVE.search(named or content.stem)
    labels: dict[str, object] = {"collective": stated[1].lower()} if stated else {}
    if ranks:
        devices = sorted({device for _, device in ranks})
        labels |= {"ranks": len(ranks), "hosts": len({host for host, _ in ranks}), "devices": devices}
    return labels


def _row(content: Content, cells: list[str], labels: dict[str, object]) -> Run:
    """Read size, count, type, operation and root, then time, two bandwidths and wrong values for each place."""
    size, count, kind, operation, root = cells[:5]
    run = Run(run_name(content), TOOL, f"{size} {kind} {operation}", labels=dict(labels))
    run.labels |= {"size_bytes": int(size), "elements": int(count), "type": kind, "operation": operation, "root": root}
    for place, start in zip(_PLACES, (5, 9), strict=True):
        part = cells[start : start + 4]
        if len(part) < 3 or finite(part[0]) is None:
            continue
        run.add("collective_s", place, part[0], "s", 1e-6)
        run.add("algorithm_bandwidth_bytes_per_second", place, part[1], "bytes/s", _GB_PER_S)
        run.add("bus_bandwidth_bytes_per_second", place, part[2], "bytes/s", _GB_PER_S)
        run.add("wrong_values", place, part[3] if len(part) > 3 else None, "")
    return run
