"""Amounts rounded so that they still add up: in a list to its rounded sum, in a table along rows and columns."""

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal

Row = Mapping[str, Decimal]
_ZERO = Decimal(0)


def adding_up(parts: Sequence[Decimal], place: Decimal, total: Decimal | None = None) -> list[Decimal]:
    """Round each part half to even; what is then missing of the (rounded) total goes to the largest, first of equals.

    Parts of zero stay zero, and with every sign flipped so is the result.
    """
    made = [part.quantize(place, ROUND_HALF_EVEN) for part in parts]
    whole = sum(parts, _ZERO).quantize(place, ROUND_HALF_EVEN) if total is None else total
    largest = max(range(len(parts)), key=lambda i: abs(parts[i]))
    made[largest] += whole - sum(made, _ZERO)
    return made


def table(rows: Sequence[Row], totals: Sequence[Decimal], place: Decimal) -> list[dict[str, Decimal]]:
    """Round cells so that rows add up to `totals` (rounded already) and columns to their own rounded sums.

    Cells of zero stay zero; where that leaves no way, a column may be off by what is left.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    sums = [sum((row[name] for row in rows if name in row), _ZERO) for name in names]
    wanted = dict(zip(names, adding_up(sums, place, sum(totals, _ZERO)), strict=True))
    made = [{name: cell.quantize(place, ROUND_HALF_EVEN) for name, cell in row.items()} for row in rows]
    for name in names:
        wanted[name] -= sum((row[name] for row in made if name in row), _ZERO)
    for exact, row, total in zip(rows, made, totals, strict=True):
        _mend(exact, row, total - sum(row.values(), _ZERO), wanted, place)
    _balance(rows, made, wanted, place)
    return made


def _mend(exact: Row, row: dict[str, Decimal], missing: Decimal, wanted: dict[str, Decimal], place: Decimal) -> None:
    """Add what a row misses, unit by unit, to cells whose column misses the same, else to the largest cell."""
    unit = place if missing > 0 else -place
    while missing:
        name = max(row, key=lambda n: (exact[n] != 0, wanted[n] * unit > 0, abs(exact[n])))
        row[name] += unit
        wanted[name] -= unit
        missing -= unit


def _balance(
    rows: Sequence[Row], made: Sequence[dict[str, Decimal]], wanted: dict[str, Decimal], place: Decimal
) -> None:
    """Move single units between two columns within a row, until each column has its sum."""
    while True:
        pairs = [(a, b) for a in wanted for b in wanted if wanted[a] > 0 > wanted[b]]
        moves = [
            (abs(exact[a]) + abs(exact[b]), -i, a, b)
            for a, b in pairs
            for i, exact in enumerate(rows)
            if exact.get(a) and exact.get(b)
        ]
        if not moves:
            return
        _, i, a, b = max(moves, key=lambda move: move[:2])
        made[-i][a] += place
        made[-i][b] -= place
        wanted[a] -= place
        wanted[b] += place
