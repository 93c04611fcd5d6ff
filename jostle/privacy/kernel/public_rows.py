"""The rows of public tables, for what is evaluated on them; a private one gives nothing but a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.diagnostics import refuse
from jostle.privacy.kernel.handles import Cube, Handle, Table, Vectors
from jostle.privacy.kernel.kernel import Kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


def public_rows(
    kernel: Kernel, table: Table, code: Callable[[list[Any]], T]
) -> tuple[dict[str, T], NDArray[np.float64]]:
    """The distinct rows, a column each as `code` makes it, and how often each occurs.

    Kept, as training looks often at few tables: give one `code` always.
    """
    _need_public(table, "rows", "measure them")
    rows = kernel.vault.public.get(table.plan)
    if rows is None:
        import numpy as np

        names = list(table.domains)
        columns, counts = kernel.engine.different(table.plan, names)
        coded = {n: code(column) for n, column in zip(names, columns, strict=True)}
        size = 8 * len(counts) * (len(names) + 1)
        rows = kernel.vault.public.put(table.plan, (coded, np.array(counts, dtype=float)), size)
    return rows


def public_cells(kernel: Kernel, cube: Cube) -> NDArray[np.int64]:
    """The exact counts of a public cube, in its shape; of a private one nothing but a refusal."""
    _need_public(cube, "counts", "measure them")
    return kernel.vault.cells(cube)


def public_vectors(kernel: Kernel, rows: Vectors) -> NDArray[np.float64]:
    """The rows of public vectors (n, d), as the columns have them; of private ones nothing but a refusal."""
    import numpy as np

    _need_public(rows, "rows", "sum them with noise")
    read = list(kernel.engine.vectors(rows.plan, rows.exprs, 2**16))
    points = np.concatenate(read) if read else np.zeros((0, len(rows.names)))
    return np.asarray(points * np.array(rows.scales) + np.array(rows.centres))


def _need_public(handle: Handle, what: str, help: str) -> None:
    if handle.private:
        name = handle.exposures[0].source.name
        raise refuse("PrivateValue", f"{what} of `{name}` are private and cannot be read", help=help)
