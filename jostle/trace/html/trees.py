"""Decision trees of a choice: nested, with the path that was taken lit and open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.trace.html.markup import Html, join, tag
from jostle.trace.text import number


def lit_tree(fields: Mapping[str, Any]) -> Html | None:
    """The tree that spoke of the chosen option, and in a drawer those of the others."""
    trees, paths = fields.get("trees"), fields.get("paths")
    if not isinstance(trees, Mapping) or not trees:
        return None
    chosen = str(fields.get("chosen"))
    steps = paths.get(chosen) if isinstance(paths, Mapping) else None
    if "" in trees:
        return tag("div", _node(trees[""], _went(steps or fields.get("path")), True), class_="dtree")
    out = []
    for option, tree in trees.items():
        own = paths.get(option) if isinstance(paths, Mapping) else None
        drawn = tag("div", _node(tree, _went(own), True), class_="dtree")
        out.append(tag("details", tag("summary", f"tree of {option}"), drawn, open=option == chosen))
    return join(out)


def _went(steps: Any) -> list[tuple[str, str]]:
    """(which way, the value that was met) for each test on the path."""
    if not isinstance(steps, list | tuple):
        return []
    known = [step for step in steps if isinstance(step, Mapping)]
    return [("low" if step.get("went") == "<=" else "high", number(step.get("value"))) for step in known]


def _node(node: Any, path: Sequence[tuple[str, str]], lit: bool) -> Html:
    if not isinstance(node, Mapping):
        return Html("")
    if "says" not in node:
        threshold = number(node.get("threshold"))
        here = path[0] if lit and path else None
        question = tag("span", f"{node.get('feature')} ≤ {threshold}?", tag("i", f" it is {here[1]}") if here else None,
                       class_="test lit" if here else "test")  # fmt: skip
        branches = []
        for side, word in (("low", "yes"), ("high", "no")):
            taken = here is not None and here[0] == side
            below = _node(node.get(side), path[1:] if taken else (), taken)
            branches.append(tag("li", tag("span", word, class_="way"), below, class_="lit" if taken else None))
        return join(question, tag("ul", branches))
    said = node.get("says")
    known = sorted(said.items(), key=lambda item: -item[1]) if isinstance(said, Mapping) else []
    words = ", ".join(f"{option} {number(value, 3)}" for option, value in known[:4])
    return tag("span", words, tag("small", f" of {number(node.get('n'))} runs"), class_="says lit" if lit else "says")
