"""What an analysis may ask of the store, as values: no SQL outside `store`."""

from dataclasses import dataclass

Where = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SpanQuery:
    """Rows of `spans`, ordered by ts.

    `columns` are stored columns; each of `attributes` is read from the attributes (else the resource) as text into a
    column of that name, null where a row lacks it. `where` holds (column or attribute, value): equal values of one
    field are or-ed, fields are and-ed. Rows with a null in any of `not_null` are left out.
    """

    columns: tuple[str, ...]
    attributes: tuple[str, ...] = ()
    where: Where = ()
    not_null: tuple[str, ...] = ()
    requests_only: bool = False


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """Samples of series whose canonical or raw name is in `names`, ordered by ts.

    Gives ts, name (as asked for), series_id, value (in the canonical unit where asked by canonical name), unit (of that
    value; null where not known), combine, kind (type that was declared: counter, gauge, …), raw (name on the wire),
    service, instance, job, labels (JSON). Samples that are not available (null) are kept: they end a series. `where`
    compares with a label, service, instance or job.
    """

    names: tuple[str, ...]
    where: Where = ()


Query = SpanQuery | MetricQuery
