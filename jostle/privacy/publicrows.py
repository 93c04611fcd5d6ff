"""The rows of public tables, for what is evaluated on them; a private one gives nothing but a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.diagnostics import refuse
from jostle.plan.plan import Column, Exact
from jostle.privacy.handles import Table
from jostle.privacy.kernel import Kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.kernels.classifiers.codes import Coded


def public_rows(kernel: Kernel, table: Table) -> tuple[dict[str, Coded], NDArray[np.float64]]:
    """The distinct rows, a coded column each, and how often each occurs. Kept: training looks often at few tables."""
    if table.private:
        name = table.exposures[0].source.name
        raise refuse("PrivateValue", f"rows of `{name}` are private and cannot be read", help="measure them")
    found = kernel.vault.public.get(table.plan)
    if found is None:
        import numpy as np

        from jostle.kernels.classifiers.codes import coded

        names = list(table.domains)
        columns, (counts,) = kernel.engine.exact(table.plan, tuple(Column(n) for n in names), (Exact("count"),))
        made = {n: coded(column) for n, column in zip(names, columns, strict=True)}
        size = 8 * len(counts) * (len(names) + 1)
        found = kernel.vault.public.put(table.plan, (made, np.array(counts, dtype=float)), size)
    return found
