"""Simulate six hours of the fleet and six weeks of its bill: `python -m sample_data.simulate [DIRECTORY]`.

Arrivals (sample_data.workload) pass through an engine each (sample_data.engine) while the PCIe links of the two nodes
carry their load (sample_data.pcie) and the scenario (sample_data.scenario) disturbs them. What comes out is what a
tracer and three exporters would have seen; the bill (sample_data.bill) is a model of its own. Same seed, same data: the
shipped files are `simulate()` written down.
"""

import gzip
import sys
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from pathlib import Path

import numpy as np
import orjson
import polars as pl

from sample_data import bill, fleet, gateway, incidents, metrics, pcie, scenario, workload
from sample_data.engine import Engine
from sample_data.incidents import Incident
from sample_data.scenario import Disturbance
from sample_data.sequence import Sequence

SEED = 20261130
DIRECTORY = Path(__file__).parent / "simulated"
_FAILURE_S = {"TIMEOUT": 30.0}  # the caller's time limit; everything else is refused at the door
_REFUSAL_S = 0.012
_REQUEST_SCHEMA = {
    "service": pl.String(),
    "number": pl.Int32(),
    "ts_us": pl.Int64(),
    "input_tokens": pl.Int32(),
    "output_tokens": pl.Int32(),
    "cached_tokens": pl.Int32(),
    "queue_us": pl.Int64(),
    "prefill_us": pl.Int64(),
    "decode_us": pl.Int64(),
    "duration_us": pl.Int64(),
    "error_code": pl.String(),
}
_START_US = int(fleet.WINDOW.start.timestamp()) * 1_000_000


@dataclass(frozen=True, slots=True)
class Simulation:
    """Requests, metrics, bill and truth of one run, in the compact form that is written.

    requests: one row per request (service, start, tokens, durations in microseconds, null where refused). series and
    samples: one row per exposed series and per sample. bill: charge lines, CSV.
    """

    requests: pl.DataFrame
    series: pl.DataFrame
    samples: pl.DataFrame
    bill: bytes
    incidents: tuple[Incident, ...]

    def write(self, directory: Path) -> None:
        """Write three Parquet files, bill.csv.gz and truth.json."""
        directory.mkdir(parents=True, exist_ok=True)
        for name in ("requests", "series", "samples"):
            frame: pl.DataFrame = getattr(self, name)
            frame.write_parquet(directory / f"{name}.parquet", compression="zstd", compression_level=19)
        (directory / "bill.csv.gz").write_bytes(gzip.compress(self.bill, compresslevel=9, mtime=0))
        (directory / "truth.json").write_bytes(incidents.to_json(self.incidents))


def simulate(seed: int = SEED) -> Simulation:
    """Run the whole model. Every part draws from its own stream, so one can change without moving the others."""
    engines = run_engines(seed)
    links = _links(seed)
    series = [one for engine in engines for one in metrics.of_engine(engine)]
    for i, node in enumerate(fleet.NODES):
        here = [engine for engine in engines if engine.service.node is node]
        series += metrics.of_node(node, here, links[node.name], np.random.default_rng([seed, 3, i]))
    truth = tuple(_truth(d, engine) for engine in engines for d in scenario.of_service(engine.service))
    return Simulation(
        requests=pl.concat([_requests(engine) for engine in engines]),
        series=_series_frame(series),
        samples=_samples_frame(series),
        bill=bill.write(seed),
        incidents=tuple(sorted((*truth, *bill.incidents(), *gateway.incidents()), key=lambda incident: incident.start)),
    )


def run_engines(seed: int) -> list[Engine]:
    """Serve each service's workload and return the engines with all they noted."""
    links = _links(seed)
    engines = []
    for i, service in enumerate(fleet.SERVICES):
        work = workload.draw(service, np.random.default_rng([seed, 1, i]))
        engine = Engine(service, work, links[service.node.name])
        engine.run()
        engines.append(engine)
    return engines


def _links(seed: int) -> dict[str, pcie.PcieLoad]:
    return {node.name: pcie.draw(node, np.random.default_rng([seed, 2, i])) for i, node in enumerate(fleet.NODES)}


def _requests(engine: Engine) -> pl.DataFrame:
    """One row per request, ordered by arrival."""
    work, served = engine.work, {s.row: s for s in engine.done}
    rows = [_row(engine, row, served.get(row)) for row in range(work.arrival_s.size)]
    return pl.DataFrame(rows, schema=_REQUEST_SCHEMA)


def _row(engine: Engine, row: int, served: Sequence | None) -> dict[str, object]:
    work = engine.work
    start = float(work.arrival_s[row])
    out: dict[str, object] = {
        "service": engine.service.name,
        "number": row,
        "ts_us": _START_US + _us(start),
        "input_tokens": int(work.input_tokens[row]),
    }
    if served is None or served.scheduled_s is None or served.first_token_s is None:
        code = work.codes[int(work.error[row])]
        failure_s = _FAILURE_S.get(code) or _REFUSAL_S * float(work.prefill_noise[row])
        absent = dict.fromkeys(("output_tokens", "cached_tokens", "queue_us", "prefill_us", "decode_us"))
        return out | absent | {"duration_us": _us(failure_s), "error_code": code}
    return out | {
        "output_tokens": served.output_tokens,
        "cached_tokens": served.cached_tokens,
        "queue_us": _us(served.scheduled_s - start),
        "prefill_us": _us(served.first_token_s - served.scheduled_s),
        "decode_us": _us(served.done_s - served.first_token_s),
        "duration_us": _us(served.done_s - start),
        "error_code": None,
    }


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


def _truth(disturbance: Disturbance, engine: Engine) -> Incident:
    """Label of a disturbance; it has settled when the queue is empty and all who came before its end have left."""
    end_s = disturbance.bounds_s[1]
    empty_s = next(s.at_s for s in engine.states if s.at_s >= end_s and s.waiting == 0)
    left_s = max(s.done_s for s in engine.done if s.arrival_s < end_s)
    return Incident(
        id=disturbance.id,
        kind=disturbance.kind,
        service=disturbance.service.name,
        start=disturbance.start,
        end=disturbance.end,
        settled=disturbance.end + timedelta(seconds=ceil(max(empty_s, left_s) - end_s)),
        driver=disturbance.driver,
        text=disturbance.text,
    )


def _series_frame(series: list[metrics.Series]) -> pl.DataFrame:
    """Series number, job, instance, name, kind, labels as JSON."""
    rows = [
        (i, s.job, s.instance, s.name, s.kind, orjson.dumps(s.labels, option=orjson.OPT_SORT_KEYS).decode())
        for i, s in enumerate(series)
    ]
    names = {"series": pl.UInt16, **dict.fromkeys(("job", "instance", "name", "kind", "labels"), pl.String)}
    return pl.DataFrame(rows, schema=names, orient="row")


def _samples_frame(series: list[metrics.Series]) -> pl.DataFrame:
    """Series number, time, value."""
    times = (metrics.scrape_times() * 1e6).astype(np.int64) + _START_US
    frame = pl.DataFrame(
        {
            "series": np.repeat(np.arange(len(series), dtype=np.uint16), times.size),
            "ts": np.tile(times, len(series)),
            "value": np.round(np.concatenate([s.values for s in series]), 6),
        }
    )
    return frame.with_columns(pl.col("ts").cast(pl.Datetime("us")))


if __name__ == "__main__":
    simulate().write(Path(sys.argv[1]) if len(sys.argv) > 1 else DIRECTORY)
