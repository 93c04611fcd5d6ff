"""Whether the arguments of a call fit its parameters, and the parameter that is meant by another name."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jostle.diagnostics import did_you_mean
from jostle.language.facts import Parameter
from jostle.syntax import nodes as n

_CALLED = {
    "key": "by", "sep": "separator", "delimiter": "separator", "eps": "epsilon", "n": "count", "ndigits": "digits",
    "sheet_name": "part", "sheet": "part", "random_state": "seed", "max_depth": "depth",
}  # fmt: skip
"""What Python calls a parameter, and what it is called here."""


def other_name(keyword: n.Keyword, function: str, names: Collection[str], call: n.Call) -> str:
    """The way out of an argument under a name that no parameter has, or an empty text."""
    if function == "sorted" and keyword.name == "reverse" and call.args:
        return f"write `reversed(sorted({call.args[0].span.text}))`"
    right = _CALLED.get(keyword.name, "")
    if right in names:
        return f"write `{right} = {keyword.value.span.text}`"
    return did_you_mean(keyword.name, names)


_WITH_MORE = {"error": "band({0}, level = {1})", "log": "log({0}) / log({1})"}
"""Functions of one argument that other languages call with two, and what is meant."""


def other_call(function: str, call: n.Call) -> str:
    """The way out of a call that has an argument more, or its amount in brackets, or an empty text."""
    amounts = [keyword.value.span.text for keyword in call.keywords if keyword.name in ("epsilon", "eps")]
    if amounts:
        return f"the amount comes after the call: `{function}(…) with epsilon {amounts[0]}`"
    form = _WITH_MORE.get(function, "") if len(call.args) == 2 else ""
    return form and "write `" + form.format(*(arg.span.text for arg in call.args)) + "`"


def arity_error(name: str, params: Sequence[Parameter], places: int, keywords: Sequence[str]) -> str:
    """Why the arguments of a call cannot fit, or an empty text."""
    kinds = {param.kind for param in params}
    by_place = [param.name for param in params if param.kind == ""]
    needed = [param.name for param in params if param.default is None and param.kind in ("", "name")]
    named = {param.name for param in params if param.kind in ("", "name")}
    least = sum(param in needed for param in by_place)
    count = f"{least} to {len(by_place)} arguments"
    if least == len(by_place):
        count = "no arguments" if not by_place else f"{least} argument" + ("s" if least > 1 else "")
    takes = f"`{name}` takes {count if '*' not in kinds else f'at least {least} argument' + 's' * (least != 1)}"
    if places > len(by_place) and "*" not in kinds:
        return f"{takes}, but {places} are given"
    bound = set(by_place[:places])
    for keyword in keywords:
        if keyword not in named and "**" not in kinds:
            return f"`{name}` has no parameter `{keyword}`"
        if keyword in bound:
            return f"the argument `{keyword}` of `{name}` is given twice"
        bound.add(keyword)
    missing = [param for param in needed if param not in bound]
    return f"{takes}: `{missing[0]}` is missing" if missing else ""
