"""Which expressions and functions cannot charge anything, whatever they compute.

Of such a part the value may be given up (`PUBLIC`) where computing it would take long: training data made by a
program, tables of numbers. Only names are looked at, and where one could stand for something else, the answer is no.
"""

from __future__ import annotations

from jostle.check.abstract.values import MISSING, Builtin, Closure, External, Module, Part, Scope, cannot_charge
from jostle.syntax import nodes as n
from jostle.syntax.walk import every

# The forms that charge nothing of their own; any other may.
_FREE = (
    n.Name, n.Number, n.String, n.Constant, n.ListOf, n.SetOf, n.RecordOf, n.Comprehension, n.Range, n.Unary,
    n.Binary, n.Logic, n.Conditional, n.Over, n.Lambda, n.Star, n.Distinct, n.Call, n.Keyword, n.Attribute, n.Index,
    n.Described, n.Assign, n.Bare, n.Return, n.ParamDecl, n.Release, n.Assert, n.Def, n.Param, n.If, n.For, n.Block,
)  # fmt: skip


class Purity:
    """Remembers what it found out about functions."""

    def __init__(self) -> None:
        self._known: dict[Closure, bool] = {}

    def value(self, value: object) -> bool:
        return cannot_charge(value, self.function)

    def function(self, function: object) -> bool:
        if isinstance(function, External):
            return True
        if isinstance(function, Builtin):
            return function.row.cannot_charge
        if isinstance(function, Part):
            return self.function(function.run)
        if not isinstance(function, Closure):
            return False
        if function not in self._known:
            self._known[function] = True  # of itself, a function may suppose it
            own = {name for name, _ in function.params}
            self._known[function] = all(
                default is MISSING or self.value(default) for _, default in function.params
            ) and self.node(function.body, function.scope, own)
        return self._known[function]

    def node(self, node: n.Node, scope: Scope, own: set[str] | None = None) -> bool:
        """Whether an expression or a body is inert in a scope; `own` names hold inert values."""
        names = set(own or ())
        used: list[str] = []
        for part in every(node):
            if not isinstance(part, _FREE):
                return False
            if isinstance(part, n.Index) and (part.keywords or part.trailing_comma):
                return False
            if isinstance(part, n.Name):
                used.append(part.id)
            names |= _bound(part)
        if "epsilon" in used or "rho" in used:
            return False
        return all(self._name(name, scope, name in names) for name in used)

    def _name(self, name: str, scope: Scope, bound: bool) -> bool:
        """A name that is bound inside may still mean, elsewhere inside, what it means around."""
        value = scope.look_up(name)
        if value is MISSING:
            return bound
        return not isinstance(value, Module) and self.value(value)


def _bound(node: n.Node) -> set[str]:
    match node:
        case n.Comprehension(names=names) | n.For(names=names):
            return set(names)
        case n.Over(name=name) | n.Assign(name=name) | n.Release(name=name) | n.Def(name=name):
            return {name} | ({p.name for p in node.params} if isinstance(node, n.Def) else set())
        case n.Lambda(params=params):
            return set(params)
    return set()
