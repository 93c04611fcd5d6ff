"""Decision trees of a choice, with the path of the decision highlighted and open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.trace.html.markup import Html, join, tag
from jostle.trace.text import number


def decision_tree(fields: Mapping[str, Any]) -> Html | None:
    """The tree that spoke of the chosen option, and in a drawer those of the others."""
    trees, paths = fields.get("trees"), fields.get("paths")
    if not isinstance(trees, Mapping) or not trees:
        return None
    winner = str(fields.get("chosen"))
    steps = paths.get(winner) if isinstance(paths, Mapping) else None
    if "" in trees:
        return tag("div", _node(trees[""], _went(steps or fields.get("path")), True), class_="dtree")
    out = []
    for option, tree in trees.items():
        own = paths.get(option) if isinstance(paths, Mapping) else None
        drawing = tag("div", _node(tree, _went(own), True), class_="dtree")
        out.append(tag("details", tag("summary", f"tree of {option}"), drawing, open=option == winner))
    return join(out)


def _went(steps: Any) -> list[tuple[str, str]]:
    """(which way, the value that was met) for each test on the path."""
    if not isinstance(steps, list | tuple):
        return []
    tests = [step for step in steps if isinstance(step, Mapping)]
    return [("low" if step.get("went") == "<=" else "high", number(step.get("value"))) for step in tests]


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
            on_path = here is not None and here[0] == side
            below = _node(node.get(side), path[1:] if on_path else (), on_path)
            branches.append(tag("li", tag("span", word, class_="way"), below, class_="lit" if on_path else None))
        return join(question, tag("ul", branches))
    utilities = node.get("says")
    ranking = sorted(utilities.items(), key=lambda item: -item[1]) if isinstance(utilities, Mapping) else []
    words = ", ".join(f"{option} {number(value, 3)}" for option, value in ranking[:4])
    return tag("span", words, tag("small", f" of {number(node.get('n'))} runs"), class_="says lit" if lit else "says")
