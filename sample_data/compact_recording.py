"""Make sample_data/real from a recording of a vLLM server: `python -m sample_data.compact_recording RECORDING`.

The recording folder is what a driver, an OTLP sink and a scraper left: client.jsonl.gz, otlp_traces.jsonl.gz,
vllm_metrics.jsonl.gz, node_metrics.jsonl.gz, host.jsonl.gz, kv.jsonl.gz and labels.jsonl. Requests, spans, host samples
and KV-cache events are copied as they are; the scrapes keep every value of the families that matter; the labelled
phases become truth.json.
"""

import gzip
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from sample_data import incidents, scrapes
from sample_data.incidents import Incident
from sample_data.scrapes import Scrape

DIRECTORY = Path(__file__).parent / "real"
SERVICE, CLIENT = "vllm-tiny", "vllm-client"
_COPIED = ("client.jsonl.gz", "otlp_traces.jsonl.gz", "host.jsonl.gz", "kv.jsonl.gz", "labels.jsonl")
_CAUSES = {
    "burst": (
        "requests_waiting",
        "vllm-tiny: arrivals rose from 2 to 8 a second; the 16 batch slots were taken and requests queued",
    ),
    "unique_long_prompts": (
        "kv_cache_usage_ratio",
        "vllm-tiny: long prompts that share no prefix filled the KV cache; the prefix hit ratio fell to zero",
    ),
    "cpu_contention": (
        "cpu_pressure_ratio",
        "vllm-tiny: four other processes took the two CPU cores that serve the model",
    ),
    "error_storm": (
        None,
        "vllm-tiny refused half of its requests with 400 and 404; latency of the others did not change",
    ),
}
"""Incident phase -> (driver, what a person should be told). Baseline, warm-up and client aborts are no incidents."""


def compact(recording: Path, directory: Path) -> None:
    """Write the compact form; raises OSError where a file of the recording is missing."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        shutil.copyfile(recording / name, directory / name)
    _repack(recording, directory, "vllm_metrics.jsonl.gz", _of_engine)
    _repack(recording, directory, "node_metrics.jsonl.gz", lambda name: name.startswith("node_"))
    engine = read_recorded(recording / "vllm_metrics.jsonl.gz")
    truth = _truth((recording / "labels.jsonl").read_bytes(), [(at, _waiting(text)) for at, text in engine])
    (directory / "truth.json").write_bytes(incidents.to_json(truth))


def read_recorded(path: Path) -> Iterator[Scrape]:
    """Yield the scrapes of a recorded file that were answered."""
    with gzip.open(path) as lines:
        rows: Iterable[dict[str, Any]] = map(orjson.loads, lines)
        yield from ((row["ts_ms"], row["text"]) for row in rows if row.get("status") == 200)


def keep_families(text: str, wanted: Callable[[str], bool]) -> str:
    """Drop the lines of a scrape whose name is not wanted."""
    return "".join(f"{line}\n" for line in text.splitlines() if wanted(_name(line)))


def _of_engine(name: str) -> bool:
    """Keep the engine's own families and the count of HTTP answers; not the creation times beside every counter."""
    return name.startswith(("vllm:", "http_requests_total")) and not name.endswith("_created")


def _name(line: str) -> str:
    return line.split(" ")[2] if line.startswith("#") else line.partition("{")[0].partition(" ")[0]


def _repack(recording: Path, directory: Path, name: str, wanted: Callable[[str], bool]) -> None:
    kept = ((ts_ms, keep_families(text, wanted)) for ts_ms, text in read_recorded(recording / name))
    body = b"".join(scrapes.pack(kept))
    (directory / name).write_bytes(gzip.compress(body, compresslevel=9, mtime=0))


def _waiting(text: str) -> float:
    line = next(line for line in text.splitlines() if line.startswith("vllm:num_requests_waiting{"))
    return float(line.rpartition(" ")[2])


def _truth(labels: bytes, waiting: list[tuple[int, float]]) -> list[Incident]:
    """Incidents of the labelled phases; each has settled when a scrape finds the queue empty after its end."""
    phases = [orjson.loads(line) for line in labels.splitlines()]
    struck = [phase for phase in phases if phase["phase"] in _CAUSES]
    return [_incident(f"real-{i}", phase, waiting) for i, phase in enumerate(struck, 1)]


def _incident(name: str, phase: dict[str, Any], waiting: list[tuple[int, float]]) -> Incident:
    driver, text = _CAUSES[phase["phase"]]
    empty_s = next(ts_ms / 1000 for ts_ms, n in waiting if ts_ms / 1000 >= phase["end"] and n == 0)
    return Incident(
        id=name,
        kind=phase["phase"],
        service=SERVICE,
        start=datetime.fromtimestamp(phase["start"], UTC),
        end=datetime.fromtimestamp(phase["end"], UTC),
        settled=datetime.fromtimestamp(empty_s, UTC),
        driver=driver,
        text=text,
        seen_by=(CLIENT,),
    )


if __name__ == "__main__":
    compact(Path(sys.argv[1]), DIRECTORY)
