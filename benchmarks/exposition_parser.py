"""Parse pages of vLLM and DCGM metrics: `PageMemo`, first and steady, beside prometheus_client's parsers in one run.

Run `python benchmarks/exposition_parser.py [SERVERS…]`; it prints a markdown table. CPU time, medians of the rounds;
two pages alternate so that every value (time, exemplar) changes from one page to the next.
"""

import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version

from prometheus_client import parser
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families

from collector.prometheus.text import OPENMETRICS, TEXT, PageMemo

ROUNDS = 5
_GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
_HISTOGRAMS = ("time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds")
_FIELDS = ("GPU_UTIL", "FB_USED", "FB_FREE", "POWER_USAGE", "GPU_TEMP", "SM_CLOCK", "XID_ERRORS")


def page(servers: int, turn: int) -> bytes:
    """Metrics of that many servers of one engine and one GPU each."""
    lines = []
    for metric in _GAUGES:
        lines += [f"# HELP vllm:{metric} Help text of usual length for a gauge.", f"# TYPE vllm:{metric} gauge"]
        lines += [f'vllm:{metric}{{engine="0",model_name="org/model-{i}"}} {turn + i}.5' for i in range(servers)]
    for metric in _HISTOGRAMS:
        lines += [f"# HELP vllm:{metric} Histogram of a latency in seconds.", f"# TYPE vllm:{metric} histogram"]
        for i in range(servers):
            labels = f'engine="0",model_name="org/model-{i}"'
            bounds = [*(f"{2.0**k}" for k in range(-10, 11)), "+Inf"]
            lines += [f'vllm:{metric}_bucket{{{labels},le="{le}"}} {turn + k}.0' for k, le in enumerate(bounds)]
            lines += [f"vllm:{metric}_sum{{{labels}}} {turn}.25", f"vllm:{metric}_count{{{labels}}} {turn + 21}.0"]
    for metric in _FIELDS:
        lines += [f"# HELP DCGM_FI_DEV_{metric} Help.", f"# TYPE DCGM_FI_DEV_{metric} gauge"]
        for i in range(servers):
            labels = f'gpu="{i % 8}",UUID="GPU-{i:032x}",device="nvidia{i % 8}",modelName="NVIDIA H100 80GB HBM3"'
            lines.append(f'DCGM_FI_DEV_{metric}{{{labels},Hostname="node-{i // 8}",pod="llm-{i}"}} {turn * 3 + i}')
    return "\n".join([*lines, ""]).encode()


def timed(body: bytes, turn: int) -> bytes:
    """Return the page with a time at every sample, as cAdvisor writes it."""
    lines = body.splitlines()
    return b"".join(
        b"%s%s\n" % (n, b"" if n[:1] == b"#" else b" %d" % (1_796_000_000_000 + turn + i)) for i, n in enumerate(lines)
    )


def with_exemplars(body: bytes, turn: int) -> bytes:
    """Return the page as OpenMetrics with an exemplar at every third bucket."""
    lines = body.splitlines()
    mark = b' # {trace_id="%032x"} 0.25 1796000000.5' % turn
    return (
        b"".join(b"%s%s\n" % (n, mark if b"_bucket" in n and i % 3 == 0 else b"") for i, n in enumerate(lines))
        + b"# EOF\n"
    )


def cpu_ms(call: Callable[[bytes], object], pages: tuple[bytes, bytes]) -> float:
    """Return the median CPU time of a call over alternating pages, in milliseconds."""
    taken = []
    for i in range(ROUNDS):
        start = time.process_time()
        call(pages[i % 2])
        taken.append(time.process_time() - start)
    return statistics.median(taken) * 1000


FORMS: dict[str, tuple[str, Callable[[bytes, int], bytes], Callable[[str], Iterable[object]]]] = {
    "text": (TEXT, lambda body, _: body, parser.text_string_to_metric_families),
    "text with times": (TEXT, timed, parser.text_string_to_metric_families),
    "OpenMetrics, exemplars": (OPENMETRICS, with_exemplars, openmetrics_families),
}
"""Content type, what is made of the page, and prometheus_client's parser."""


def main() -> None:
    """Print the table."""
    print(f"prometheus_client {version('prometheus-client')}, Python {platform.python_version()}\n")
    print("| page | samples | MB | prometheus_client ms | first ms | ratio | steady ms | ratio | steady samples/s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for servers in [int(text) for text in sys.argv[1:]] or [60, 600]:
        for form, (kind, make, peer_parser) in FORMS.items():
            pages = make(page(servers, 1), 1), make(page(servers, 2), 2)
            peer = cpu_ms(lambda body, read=peer_parser: list(read(body.decode())), pages)
            first = cpu_ms(lambda body, kind=kind: PageMemo().parse(body, kind), pages)
            memo = PageMemo()
            samples = len(memo.parse(pages[1], kind).values)
            steady = cpu_ms(lambda body, memo=memo, kind=kind: memo.parse(body, kind), pages)
            print(
                f"| {form} | {samples:,} | {len(pages[0]) / 1e6:.2f} | {peer:.1f} | {first:.1f} | {peer / first:.1f}x "
                f"| {steady:.2f} | {peer / steady:.0f}x | {samples / steady * 1000:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
