"""The fault campaign of `benchmarks/faults.py`, in short: nothing lost, nothing twice, nothing unreadable."""

from benchmarks.faults import Tally, clock_jumps, damages, kills


class Rows(dict[str, Tally]):
    def __missing__(self, key: str) -> Tally:
        return self.setdefault(key, Tally())


def _clean(table: dict[str, Tally]) -> None:
    assert {name: (t.lost, t.twice, t.unreadable) for name, t in table.items()} == dict.fromkeys(table, (0, 0, 0))
    assert all(tally.times and tally.acknowledged for tally in table.values())


def test_ten_kills_at_random_moments():
    table = Rows()
    kills(10, table)
    _clean(table)


def test_damage_to_log_database_and_mirror():
    table = Rows()
    damages(table, shares=(0.6,))
    _clean(table)


def test_clocks_that_jump_by_a_year():
    table = Rows()
    clock_jumps(table)
    _clean(table)
