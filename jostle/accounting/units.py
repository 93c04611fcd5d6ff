"""The protected unit: what neighbouring data differ by."""

from __future__ import annotations

from msgspec import Struct

ANY_ROWS = "a person may have any number of rows {}, and one person must not decide an answer"
"""Why rows of persons are not measured where nothing bounds them; `{}` says where."""
BOUNDS = "say how many count: `… up to 3 rows`, `… up to 5 groups, 2 rows each`; or make one, `per person`"


class Unit(Struct, frozen=True):
    """What neighbours differ by: one row, one row replaced, or all (up to `rows`) rows of one value of `columns`.

    A value of `columns` is one person; of persons with several tables, in each. `rows` is None where a person may have
    any number of rows. `weighted`: the rows of one value have weights that add up to 1. `linked` names the column of
    another table, `people.id`, whose persons these are: those who have the value of `columns` there. With `groups` a
    row that is replaced and the one in its place have the same cells in these columns, as they stand in the data: how
    many rows each group has is public. The owner states with `at_most` that there are no more rows, with `columns` no
    more of a person: no privacy rests on it.
    """

    columns: tuple[str, ...] = ()
    rows: int | None = 1
    public_size: bool = False
    at_most: int | None = None
    weighted: bool = False
    linked: str = ""
    groups: tuple[str, ...] = ()

    @property
    def distance(self) -> int | None:
        """The distance of neighbours in added and removed rows: what every stability starts from."""
        return 2 if self.public_size else self.rows

    def __str__(self) -> str:
        if self.columns:
            bound = "" if self.rows is None else f" up to {self.rows} rows{' weighted' if self.weighted else ''}"
            bound = f", at most {self.at_most} rows" if self.at_most else bound
            return (f"{self.linked} on " if self.linked else "") + ", ".join(self.columns) + bound
        by = f" by {', '.join(self.groups)}" if self.groups else ""
        tail = f", public size{by}" if self.public_size else f", at most {self.at_most} rows" if self.at_most else ""
        return f"rows{tail}"
