"""The simulated series as pages of metrics, as each exporter would have shown them, scrape by scrape."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from sample_data.scrapes import Scrape

if TYPE_CHECKING:
    import polars as pl


class Target(NamedTuple):
    """A scraped exporter."""

    job: str
    instance: str


def pages(series: "pl.DataFrame", samples: "pl.DataFrame") -> Iterator[tuple[Target, list[Scrape]]]:
    """Yield each target with its pages in order of time, from the frames of `sample_data.simulate`."""
    for key, own in series.group_by("job", "instance", maintain_order=True):
        yield Target(*map(str, key)), _pages(own, samples)


def _pages(own: "pl.DataFrame", samples: "pl.DataFrame") -> list[Scrape]:
    import polars as pl

    ordered = own.sort("name", maintain_order=True)
    wide = (
        samples.filter(pl.col("series").is_in(own["series"].to_list()))
        .with_columns(pl.col("ts").dt.epoch("ms"))
        .pivot(on="series", index="ts", values="value")
        .sort("ts")
        .select("ts", *map(str, ordered["series"]))
    )
    heads = _heads(ordered)
    return [(row[0], "".join(map(_line, heads, row[1:]))) for row in wide.iter_rows()]


def _heads(series: "pl.DataFrame") -> list[str]:
    """All of a series' line before its value; the first of a family carries its TYPE."""
    import orjson

    heads, declared = [], ""
    for name, kind, labels in series.select("name", "kind", "labels").iter_rows():
        pairs = ",".join(f'{key}="{value}"' for key, value in orjson.loads(labels).items())
        family = "" if name == declared else f"# TYPE {name} {kind}\n"
        heads.append(f"{family}{name}{{{pairs}}} ")
        declared = name
    return heads


def _line(head: str, value: float) -> str:
    return f"{head}{value!r}\n"
