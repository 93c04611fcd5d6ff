"""The settings of a run, held against the parameters that a program declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jostle.diagnostics import did_you_mean, refuse
from jostle.syntax import nodes as n


def need_settings(tree: n.Program, settings: Mapping[str, Any]) -> None:
    """Refuses a setting of a parameter that a program does not have, and one of another kind than its default."""
    from jostle.run.declare import setting

    declared = {s.name: s.default for s in tree.body if isinstance(s, n.ParamDecl)}
    for name, value in settings.items():
        default = declared.get(name)
        if isinstance(default, n.Number | n.String | n.Constant):
            setting(value, default.value, name)
        if name not in declared:
            raise refuse(
                "NameError", f"the program has no `param {name}`",
                help=did_you_mean(name, declared) or (f"it has {', '.join(declared)}" if declared else ""),
            )  # fmt: skip
