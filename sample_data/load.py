"""Both parts of the sample data, ready for the store, and the truth to hold findings against."""

import base64
from collections.abc import Iterator

from sample_data import files
from sample_data import incidents as truth
from sample_data.client import ADDRESS
from sample_data.incidents import Incident
from sample_data.matching import Match, describe, match, report, unmatched
from store.batch import Batch
from store.tables import SPANS

__all__ = (
    "Incident",
    "Match",
    "batches",
    "describe",
    "incidents",
    "match",
    "real",
    "report",
    "simulated",
    "unmatched",
)

_ENGINE = {"job": "vllm", "instance": ADDRESS, "service": "vllm-tiny"}
_NODE = {"job": "node", "instance": "127.0.0.1:9100", "service": "vllm-tiny"}
_HOST = {"job": "host", "instance": "127.0.0.1", "service": "vllm-tiny"}
"""Labels of the recorded targets; the service is that of the engine's spans, so that requests and metrics join."""


def batches() -> Iterator[Batch]:
    """Yield the whole sample data, a batch per source, oldest part first."""
    yield from simulated()
    yield from real()


def simulated() -> Iterator[Batch]:
    """Yield the simulated requests, their blocks, the gateway's log, metrics of each exporter, bill, prices."""
    from sample_data import blocks, gateway, scraped
    from sample_data import simulated as requests
    from sample_data.pages import pages

    spans = requests.spans(files.parquet("simulated", "requests.parquet"))
    yield spans
    yield blocks.batch(spans.frames[SPANS.name])
    yield gateway.batch(spans.frames[SPANS.name])
    samples = files.parquet("simulated", "samples.parquet")
    for target, shown in pages(files.parquet("simulated", "series.parquet"), samples):
        labels = {"job": target.job, "instance": target.instance}
        yield scraped.batch(f"sample_data/simulated/{target.instance}", shown, labels)
    yield from _imported("simulated", "bill.csv.gz")
    yield from _imported("simulated", "prices.yaml")


def real() -> Iterator[Batch]:
    """Yield the recording: client requests, engine spans, metrics of engine, node and host, KV-cache events."""
    from sample_data import client, host, scraped
    from sample_data.scrapes import unpack

    yield client.decode(files.lines("real", "client.jsonl.gz"))
    yield _engine_spans()
    yield scraped.batch("sample_data/real/vllm", unpack(files.lines("real", "vllm_metrics.jsonl.gz")), _ENGINE)
    yield scraped.batch("sample_data/real/node", unpack(files.lines("real", "node_metrics.jsonl.gz")), _NODE)
    yield scraped.batch("sample_data/real/host", host.pages(files.lines("real", "host.jsonl.gz")), _HOST)
    yield from _imported("real", "kv.jsonl.gz", service="vllm-tiny", instance=ADDRESS)


def incidents() -> list[Incident]:
    """Return the labelled incidents of both parts, in order of time."""
    parts = ("simulated", "real")
    return [incident for part in parts for incident in truth.from_json(files.read(part, "truth.json"))]


def _imported(part: str, name: str, **labels: str) -> Iterator[Batch]:
    """Decode a shipped file as `infractl import --label ...` does."""
    from importlib.resources import as_file

    from collector.files.load import read
    from collector.files.options import ImportOptions

    with as_file(files.resource(part, name)) as path:
        for batch in read(path, ImportOptions(labels=labels)):
            yield Batch(f"sample_data/{part}/{name.partition('.')[0]}", batch.frames, batch.drops)


def _engine_spans() -> Batch:
    """Decode the OTLP bodies that the engine sent, as a receiver would, into one batch."""
    import orjson
    import polars as pl

    from collector.otlp.decode import decode_protobuf

    bodies = [base64.b64decode(orjson.loads(line)["body_b64"]) for line in files.lines("real", "otlp_traces.jsonl.gz")]
    decoded = [decode_protobuf(body) for body in bodies]
    drops: dict[str, int] = {}
    for one in decoded:
        for reason, n in one.drops.items():
            drops[reason] = drops.get(reason, 0) + n
    spans: list[pl.DataFrame] = [one.frames[SPANS.name] for one in decoded if SPANS.name in one.frames]
    return Batch("sample_data/real/otlp", {SPANS.name: pl.concat(spans)}, drops)
