"""The kinds of row expressions: number, text, boolean.

A function of the expression and of the public schema alone, so its refusals may be shown. This module knows
nothing of bounds or of SQL.

`none` (a null constant) has no kind of its own and goes with any.
"""

from __future__ import annotations

from collections.abc import Mapping

from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.language.operations import COMPARISONS, LOGIC, OPERATIONS
from jostle.plan.domains import Categories, Domain, Open
from jostle.plan.plan import Apply, Column, Constant, RowExpr

Schema = Mapping[str, Domain]

DEPTH = 200  # nested operations, in an expression or a plan

ARITY = {
    **{name: operation.arity for name, operation in OPERATIONS.items()},
    **dict.fromkeys(COMPARISONS, 2), "not": 1, "if": 3, "missing": 1,
}  # fmt: skip
_WORDS = {"number": "a number", "text": "text", "boolean": "true or false"}


def kind_of(expr: RowExpr, schema: Schema) -> str:
    """`number`, `text` or `boolean`; `none` alone counts as a number.

    Refuses with `TypeError` what mixes kinds, with `NameError` a column that is not there, and with
    `RecursionLimit` what is nested deeper than `DEPTH`.
    """
    check_depth(expr)
    return _kind(expr, schema) or "number"


def check_depth(expr: RowExpr) -> None:
    """Refuses an expression of more than `DEPTH` nested operations, without recursion of its own."""
    level: list[RowExpr] = [expr]
    for _ in range(DEPTH + 1):
        level = [inner for outer in level if isinstance(outer, Apply) for inner in outer.args]
        if not level:
            return
    raise refuse("RecursionLimit", f"more than {DEPTH} nested operations on a row", help="compute it in several steps")


def domain_of(name: str, schema: Schema) -> Domain:
    """The domain of a column, or a `NameError`."""
    if name not in schema:
        hint = did_you_mean(name, schema)
        raise refuse("NameError", f"there is no column `{name}` here", help=hint or "columns: " + ", ".join(schema))
    return schema[name]


def _kind(expr: RowExpr, schema: Schema) -> str | None:
    if isinstance(expr, Column):
        return domain_kind(domain_of(expr.name, schema))
    if isinstance(expr, Constant):
        if expr.value is None:
            return None
        return "boolean" if isinstance(expr.value, bool) else "text" if isinstance(expr.value, str) else "number"
    op, kinds = expr.op, [_kind(arg, schema) for arg in expr.args]
    if op == "bucket":
        return "number"
    _check_arity(op, len(kinds))
    if op in LOGIC:
        return _all(op, kinds, "boolean")
    if op == "missing":
        return "boolean"
    if op in COMPARISONS or op == "in":
        return _comparison(op, kinds)
    if op == "if":
        _all("if", kinds[:1], "boolean")
        if None not in kinds[1:] and kinds[1] != kinds[2]:
            raise mixed("the two values of `if`", kinds[1], kinds[2])
        return kinds[1] or kinds[2]
    return _all(op, kinds, "number")


def _check_arity(op: str, count: int) -> None:
    arity = ARITY.get(op)
    if op in ("and", "or", "in"):
        if count < 1:
            raise refuse("TypeError", f"`{op}` needs at least one value")
    elif arity is None:
        raise refuse("TypeError", f"`{op}` cannot be used on the rows of a table")
    elif arity != count:
        raise refuse("TypeError", f"`{op}` takes {arity} value{'s' if arity > 1 else ''}, not {count}")


def _all(op: str, kinds: list[str | None], expected: str) -> str:
    for kind in kinds:
        if kind not in (None, expected):
            raise refuse("TypeError", f"`{op}` needs {_WORDS[expected]}, and this is {_WORDS[kind or expected]}")
    return expected


def _comparison(op: str, kinds: list[str | None]) -> str:
    certain = [kind for kind in kinds if kind is not None]
    for kind in certain[1:]:
        if kind != certain[0]:
            raise mixed(f"`{op}`", certain[0], kind)
    if op in ("<", "<=", ">", ">=") and "boolean" in certain:
        raise refuse("TypeError", f"`{op}` does not order true and false", help="compare them with `==`")
    return "boolean"


def mixed(what: str, left: str | None, right: str | None) -> Refusal:
    return refuse(
        "TypeError",
        f"{what} mixes {_WORDS[left or 'number']} with {_WORDS[right or 'number']}",
        help="the description of the source says which columns are text: `{…}` and `text` are, `a..b` is a number",
    )


def domain_kind(domain: Domain) -> str:
    """The kind of a column's values."""
    if isinstance(domain, Categories):
        return "text" if domain.values and isinstance(domain.values[0], str) else "number"
    if isinstance(domain, Open):
        return domain.kind if domain.kind in ("text", "boolean") else "number"
    return "number"
