"""Reference pages on metrics and their sources, derived from the presets: docs/metrics.md and docs/sources/."""

from collector.presets.catalog import Catalog
from collector.presets.meanings import family
from collector.presets.preset import Expect, Metric, PresetFile
from collector.presets.reference import Entry, entries

_INTRODUCTION = """\
Written from `collector/presets/`. A series keeps its name on the wire; beside it stands the canonical name, the same
for every engine and exporter, in base units. A canonical name that no source sends under another one is what infractl's
own collectors ([GPUs](sources/gpu.md), [host](sources/host.md)) read. How series of one entity add up is in the column
*combine*; a histogram has the parts `_bucket`, `_sum` and `_count`."""
_MOST = 3  # wire names shown per source in the table of all metrics; the source's page has them all


def metrics_page(catalog: Catalog) -> str:
    """List every canonical metric with its unit, its meaning and the names it comes under, as Markdown."""
    parts = [
        "# Metrics",
        "",
        _INTRODUCTION,
        "",
        "| canonical metric | unit | semantic | combine | meaning | comes as |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*parts, *(_metric_row(entry, catalog) for entry in entries(catalog)), ""])


def source_page(source: str, catalog: Catalog) -> str:
    """Describe one source: what it needs, what it gives, how to check it, what the doctor looks for."""
    file = catalog.files[source]
    parts = [f"# {file.title}", "", f"Written from `collector/presets/{source}.toml`.", ""]
    parts += ["## What it needs", "", file.needs.strip(), "", "## What it gives", ""]
    parts += ["| metric on the wire | canonical metric | unit | meaning |", "|---|---|---|---|"]
    parts += [_wire_row(name, metric, catalog) for name, metrics in file.metrics.items() for metric in metrics]
    parts += ["", *_left_out(file), "## How to check it", "", file.check.strip(), ""]
    if file.expect:
        parts += ["## What `infractl doctor` looks for", "", *(_expected(expect) for expect in file.expect), ""]
    if file.removed:
        parts += ["## Names that are gone", "", "| name | instead |", "|---|---|"]
        parts += [f"| `{name}` | {_cell(instead)} |" for name, instead in file.removed.items()] + [""]
    return "\n".join(parts)


def sources_index(catalog: Catalog) -> list[str]:
    """Links to the pages of all presets, as Markdown list items."""
    return [f"- [{file.title}]({source}.md)" for source, file in catalog.files.items()]


def _metric_row(entry: Entry, catalog: Catalog) -> str:
    metric = entry.metric
    name = f"`{entry.name}`" + (" (histogram)" if metric.histogram else "")
    comes = "; ".join(
        f"[{catalog.files[source].title}](sources/{source}.md) "
        + ", ".join(f"`{_cell(n)}`" for n in names[:_MOST])
        + (" …" if len(names) > _MOST else "")
        for source, names in entry.wire.items()
    )
    return f"| {name} | {metric.unit} | {metric.semantic} | {metric.combine} | {_cell(metric.help)} | {comes} |"


def _wire_row(name: str, metric: Metric, catalog: Catalog) -> str:
    known = catalog.canonical[family(metric.to, catalog.canonical)]
    when = "{" + ",".join(f"{label}={'|'.join(values)}" for label, values in metric.when.items()) + "}"
    labels = "{" + ",".join(f"{label}={value}" for label, value in metric.labels.items()) + "}"
    wire = f"`{name}{_cell(when) if metric.when else ''}`"
    older = f" (older: {', '.join(f'`{alias}`' for alias in metric.aliases)})" if metric.aliases else ""
    scaled = f", x {metric.scale:g}" if metric.scale != 1.0 else ""
    canonical = f"`{metric.to}{_cell(labels) if metric.labels else ''}`"
    return f"| {wire}{older} | {canonical} | {known.unit}{scaled} | {_cell(known.help)} |"


def _left_out(file: PresetFile) -> list[str]:
    """Say which series are kept raw only, because they would count twice."""
    others = {name: " or ".join(f"`{v}`" for v in values if v) or "an empty one" for name, values in file.only.items()}
    told = [f"with a label `{name}` other than {allowed}" for name, allowed in others.items()]
    if file.ranks:
        told.append(f"of a higher rank ({', '.join(f'`{name}`' for name in file.ranks)}) than the lowest of an engine")
    if file.parts:
        told.append(f"with a label {', '.join(f'`{name}`' for name in file.parts)} beside a total without it")
    if not told:
        return []
    return [f"Series {'; or '.join(told)} are kept under their wire name only: added up they would count twice.", ""]


def _expected(expect: Expect) -> str:
    names = ", ".join(f"`{name}`" for name in expect.metrics)
    lines = "".join(f"\n  {line}" for line in expect.lines)
    block = f"\n\n  ```text{lines}\n  ```\n" if expect.lines else ""
    return f"- {names}: without, {expect.lost}. Remedy: {expect.remedy}{block}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
