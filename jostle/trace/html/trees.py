"""Decision trees of a choice, with the path of the decision highlighted and open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.trace.forest import mapping, records
from jostle.trace.html.markup import Html, join, tag
from jostle.trace.text import number


def decision_tree(fields: Mapping[str, Any]) -> Html | None:
    """The tree that spoke of the chosen option, and in a drawer those of the others."""
    trees, paths = mapping(fields.get("trees")), mapping(fields.get("paths"))
    winner, errors = str(fields.get("chosen")), bool(fields.get("errors"))
    if not trees:
        return None
    if "" in trees:
        return tag("div", _node(trees[""], _went(fields.get("path")), True, errors), class_="dtree")
    out = []
    for option, tree in trees.items():
        drawing = tag("div", _node(tree, _went(paths.get(option)), True, errors), class_="dtree")
        out.append(tag("details", tag("summary", f"tree of {option}"), drawing, open=option == winner))
    return join(out)


def _went(steps: object) -> list[tuple[str, str]]:
    """(which way, the value that was met) for each test on the path."""
    return [("low" if step["went"] == "<=" else "high", number(step["value"])) for step in records(steps)]


def _node(node: Mapping[str, Any], path: Sequence[tuple[str, str]], lit: bool, errors: bool) -> Html:
    if "says" not in node:
        threshold = number(node.get("threshold"))
        here = path[0] if lit and path else None
        question = tag("span", f"{node.get('feature')} ≤ {threshold}?", tag("i", f" it is {here[1]}") if here else None,
                       class_="test lit" if here else "test")  # fmt: skip
        branches = []
        for side, word in (("low", "yes"), ("high", "no")):
            on_path = here is not None and here[0] == side
            below = _node(node[side], path[1:] if on_path else (), on_path, errors)
            branches.append(tag("li", tag("span", word, class_="way"), below, class_="lit" if on_path else None))
        return join(question, tag("ul", branches))
    ranking = sorted(node["says"].items(), key=lambda item: -item[1])
    words = ", ".join(f"{option} {number(-value if errors else value, 3)}" for option, value in ranking[:4])
    return tag("span", words, tag("small", f" of {number(node.get('n'))} runs"), class_="says lit" if lit else "says")
