"""Ranks and parts: what is counted once."""

from hypothesis import given
from hypothesis import strategies as st

from collector.presets.preset import Preset
from collector.prometheus.exposition import Series
from collector.prometheus.siblings import repeated

PRESET = Preset("s", "c", "level", "sum", ranks=("tp", "pp"), parts=("priority",))
LABELS = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(["", "0", "1", "10", "x"]) for name in ("tp", "pp", "priority", "dp")}
)


def series(*labels: dict[str, str]) -> list[Series]:
    return [Series("n", one, "gauge") for one in labels]


def counted(found: list[Series]) -> list[Series]:
    copies = repeated(dict.fromkeys(found, PRESET))
    return [one for one in found if one not in copies]


def test_ranks_compare_as_numbers() -> None:
    found = series({"tp": "10"}, {"tp": "9"})
    assert counted(found) == [found[1]]


def test_engines_of_other_labels_are_each_counted() -> None:
    found = series({"dp": "0", "tp": "0"}, {"dp": "1", "tp": "1"})
    assert counted(found) == found


@given(st.lists(LABELS, min_size=1, max_size=8))
def test_every_entity_is_counted_by_exactly_one_rank(labels: list[dict[str, str]]) -> None:
    found = series(*labels)
    ranks: dict[object, set[tuple[str, str]]] = {}
    for one in counted(found):
        rest = frozenset((k, v) for k, v in one.labels.items() if v and k not in ("tp", "pp"))
        ranks.setdefault(rest, set()).add((one.labels.get("tp", ""), one.labels.get("pp", "")))
    assert all(len(found) == 1 for found in ranks.values())
    assert ranks


@given(st.lists(LABELS, min_size=1, max_size=8))
def test_no_part_counts_beside_its_total(labels: list[dict[str, str]]) -> None:
    kept = counted(series(*labels))
    rests = [frozenset((k, v) for k, v in one.labels.items() if v and k == "dp") for one in kept]
    totals = {rest for one, rest in zip(kept, rests, strict=True) if not one.labels.get("priority")}
    assert not [one for one, rest in zip(kept, rests, strict=True) if one.labels.get("priority") and rest in totals]
