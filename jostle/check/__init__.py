"""What can be said of a program before anything runs: every error at once, in source order.

Names are resolved everywhere; labels, amounts, bounds and keys as far as they are certain. The checker is first-order
and modest: what it cannot follow it lets through, and the privacy kernel decides at run time. It opens no file and
reads no data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from jostle.check.modules import LoadModule, Modules, check_sources
from jostle.check.names import Names
from jostle.check.warnings import Report, of_epsilon, of_texts, of_utilities
from jostle.diagnostics import Diagnostic
from jostle.language.row_functions import FOLDS
from jostle.syntax import nodes as n
from jostle.syntax.walk import every_of

__all__ = ["check"]


def check(
    program: n.Program,
    *,
    builtins: Collection[str],
    load_module: LoadModule,
    predefined: Collection[str] = (),
    modules: Collection[str] = (),
    library: bool = False,
    warn: Callable[[list[Diagnostic]], None] = lambda warnings: None,
) -> list[Diagnostic]:
    """All that is evidently wrong with `program`, in source order; an empty list where nothing is.

    `builtins` are the names that every program knows, `predefined` those of an interactive session; `load_module`
    gives the tree of a module by its path, or None (its Refusal is reported); `modules` are the paths to suggest.
    `library` allows `external`, which only modules of the standard library may use. `warn` is
    called with what is said of the program and stops nothing.
    """
    report = Report()
    used = Modules(load_module, modules, report)
    with _deep_enough():
        Names(report, used, builtins, predefined).program(program)
        check_sources(program, report)
    of_epsilon(program, report)
    of_utilities(program, report)
    of_texts(program, report)
    for over in every_of(program, n.Over):
        if over.fold not in FOLDS:
            help = "there are " + ", ".join(f"`{fold} over`" for fold in FOLDS)
            report.add("TypeError", f"there is no `{over.fold} over`", over.span, help=help)
    if not library:
        for node in every_of(program, n.External):
            message, help = "`external` stands in modules of the standard library only", "write a function with `def`"
            report.add("SyntaxError", message, node.span, help=help)
    findings = report.in_order()
    warn([one for one in findings if one.is_warning])
    return [one for one in findings if not one.is_warning]


@contextmanager
def _deep_enough() -> Iterator[None]:
    """Room for the walk: a tree has at most 500 levels."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 20_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
