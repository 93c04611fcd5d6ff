"""Synthetic rows as a value of the language: columns of a model's own values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.arrays import Ints
from jostle.kernels.graphical.domain import Domain


class SyntheticRows:
    """Rows drawn from a model. `rows.column("age")`, `rows.size`; in Python `frame()` and `codes`."""

    jostle_kind = "synthetic rows"

    def __init__(self, domain: Domain, codes: Ints) -> None:
        self.domain, self.codes = domain, codes

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def size(self) -> int:
        return len(self.codes)

    @property
    def jostle_fields(self) -> dict[str, Any]:
        return {
            "size": float(len(self)), "columns": list(self.domain.names), "column": self.column, "table": self.table,
        }  # fmt: skip

    def column(self, name: str) -> list[Any]:
        """The values of one variable."""
        place = self.domain.place(name)
        values = self.domain.values[place]
        return [values[code] for code in self.codes[:, place]]

    def table(self, *names: Any) -> NDArray[np.float64]:
        """Counts over some variables, or a list of them, in their order."""
        members = names[0] if len(names) == 1 and not isinstance(names[0], str) else names
        clique = self.domain.clique(members)
        shape = tuple(self.domain.sizes[v] for v in clique)
        place = np.ravel_multi_index(tuple(self.codes[:, v] for v in clique), shape)
        return np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(float)

    def frame(self) -> Any:
        """A pandas frame: whole numbers as integers, texts as categories in the order of their domain."""
        import pandas

        columns: dict[str, Any] = {}
        for place, (name, values) in enumerate(zip(self.domain.names, self.domain.values, strict=True)):
            codes = self.codes[:, place]
            if all(isinstance(v, float) for v in values):
                whole = all(v.is_integer() for v in values)
                columns[name] = np.array(values)[codes].astype(np.int64 if whole else np.float64)
            else:
                columns[name] = pandas.Categorical.from_codes(codes, categories=list(values))
        return pandas.DataFrame(columns)

    def as_json(self) -> list[dict[str, Any]]:
        columns = [[_plain(v) for v in values] for values in self.domain.values]
        return [dict(zip(self.domain.names, map(_at, columns, row), strict=True)) for row in self.codes.tolist()]

    def __str__(self) -> str:
        return f"{len(self):,} synthetic rows of {', '.join(self.domain.names)}"


def _at(values: list[Any], code: int) -> Any:
    return values[code]


def _plain(value: object) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
