"""Choices as HTML: features, predictions, the decision tree with its path, and the training runs.

Decision trees of a choice, with the path of the decision highlighted and open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from jostle.events import Event
from jostle.resources import Json
from jostle.trace import tree
from jostle.trace.costs import Costs, Forest, mapping, records
from jostle.trace.html.event_tree import Html, draw, join, table, tag
from jostle.trace.pictures import Picture, Plot
from jostle.trace.text import number


def decision_tree(fields: Mapping[str, object]) -> Html | None:
    """The tree that spoke of the chosen option, and in a drawer those of the others."""
    trees, paths = mapping(fields.get("trees")), mapping(fields.get("paths"))
    winner, errors = str(fields.get("chosen")), bool(fields.get("errors"))
    if not trees:
        return None
    if "" in trees:
        return tag("div", _tree_node(trees[""], _went(fields.get("path")), True, errors), class_="dtree")
    out = []
    for option, node in trees.items():
        drawing = tag("div", _tree_node(node, _went(paths.get(option)), True, errors), class_="dtree")
        out.append(tag("details", tag("summary", f"tree of {option}"), drawing, open=option == winner))
    return join(out)


def _went(steps: object) -> list[tuple[str, str]]:
    """(which way, the value that was met) for each test on the path."""
    return [("low" if step["went"] == "<=" else "high", number(step["value"])) for step in records(steps)]


def _tree_node(node: Mapping[str, Json], path: Sequence[tuple[str, str]], lit: bool, errors: bool) -> Html:
    if "says" not in node:
        threshold = number(node.get("threshold"))
        here = path[0] if lit and path else None
        question = tag("span", f"{node.get('feature')} ≤ {threshold}?", tag("i", f" it is {here[1]}") if here else None,
                       class_="test lit" if here else "test")  # fmt: skip
        branches = []
        for side, word in (("low", "yes"), ("high", "no")):
            on_path = here is not None and here[0] == side
            below = _tree_node(node[side], path[1:] if on_path else (), on_path, errors)
            branches.append(tag("li", tag("span", word, class_="way"), below, class_="lit" if on_path else None))
        return join(question, tag("ul", branches))
    ranking = sorted(node["says"].items(), key=lambda item: -item[1])
    words = ", ".join(f"{option} {number(-value if errors else value, 3)}" for option, value in ranking[:4])
    return tag("span", words, tag("small", f" of {number(node.get('n'))} runs"), class_="says lit" if lit else "says")


_WHOLE = 12  # choices that are shown one by one
_PANELS = 3  # pictures of one training


def choices(events: Sequence[Event], forest: Forest, costs: Costs) -> Html | None:
    """Each choice of the run, and below them what each was trained on."""
    choice_events = [e for e in forest.walk() if e.kind == "choice"]
    trained = [e for e in events if e.kind == "train"]
    if not choice_events and not trained:
        return None
    inside = tree.nested_choices(choice_events)
    parts = [_choice(e, costs) for e in ([] if inside is not None else choice_events[:_WHOLE])]
    if inside is not None:
        nodes = tag("section", tag("h3", "Node by node"), _node(inside, "all rows", True))
        parts += [*_first_of_each(choice_events, costs), nodes]
    if len(choice_events) > _WHOLE:
        parts.append(_counted(choice_events))
    return join(parts, [_training(group) for group in _together(trained)])


def _choice(event: Event, costs: Costs) -> Html:
    fields = event.fields
    spent = costs.text(event)
    price = tag("span", spent, class_="price") if spent else None
    option = tag("b", str(fields.get("chosen", "nothing")))
    head = tag("h3", tag("a", event.name, href=f"#e{event.id}"), " chose ", option, price)
    policy = f"by {fields['way']}" if fields.get("way") else fields.get("policy")
    why = ": ".join(str(w) for w in (policy, fields.get("why")) if w)
    other = tree.at_other_amounts(fields)
    return tag("section", head, tag("p", why) if why else None, _features(fields), _predictions(fields),
               _along(fields), tag("p", other[0].upper() + other[1:] + ".") if other else None,
               decision_tree(fields), class_="choice")  # fmt: skip


def _along(fields: Mapping[str, object]) -> Html | None:
    """What is predicted as the feature that decided goes over its values in training; these data are marked."""
    along, rows, here = tree.sweep(fields)
    if not rows:
        return None
    marked = [[tag("b", f"▶ {row[0]}") if k == here else row[0], *row[1:]] for k, row in enumerate(rows)]
    told = table([str(along["feature"]), *mapping(along["options"]), "best"], marked, class_="data")
    return join(
        tag("p", f"{tree.heading(fields)}, by {along['feature']}, the feature that decided:".capitalize()), told
    )


def _features(fields: Mapping[str, object]) -> Html | None:
    features = records(fields.get("features"))
    if not features and fields.get("way"):
        return None
    said = any(feature.get("means") for feature in features)
    rows = [[f["name"], tree.looked_at(f), tree.cost_text(f)] for f in features]
    if said:
        rows = [[*row, str(f.get("means", ""))] for row, f in zip(rows, features, strict=True)]
    head = ["feature", "value", "cost", *(["what it is"] if said else [])]
    return table(head, rows, class_="data") if rows else tag("p", "No features were looked at.")


def _predictions(fields: Mapping[str, object]) -> Html | None:
    """A row an option, the best first, with a bar; and the margin. Errors have bars of their logarithms."""
    predictions = mapping(fields.get("predictions"))
    if not predictions:
        return None
    lengths = _lengths(predictions, bool(fields.get("errors")))
    rows = []
    for option, (figure, spread) in sorted(tree.figures(fields).items(), key=lambda item: -predictions[item[0]]):
        name = tag("b", f"▶ {option}") if option == fields.get("chosen") else join(f"  {option}")
        rows.append([name, figure, spread, tag("span", class_="meter", style=f"width:{lengths[option]:.3g}px")])
    ahead = tree.margin(fields)
    body = table(["option", tree.heading(fields), "", ""], rows, class_="data")
    return join(body, tag("p", ahead) if ahead else None)


def _lengths(predictions: Mapping[str, float], errors: bool) -> dict[str, float]:
    """The lengths of the options' bars in pixels: of errors a larger one is longer, elsewhere a better one."""
    sizes = {o: math.log(max(-u, 1e-12)) if errors else float(u) for o, u in predictions.items()}
    low, high = min(sizes.values()), max(sizes.values())
    return {o: 8 + 92 * (size - low) / (high - low) if high > low else 100.0 for o, size in sizes.items()}


def _first_of_each(events: Sequence[Event], costs: Costs) -> list[Html]:
    """Renders the first call of each choice inside an algorithm; all its calls share the tree."""
    first: dict[str, Event] = {}
    for event in events:
        first.setdefault(event.name, event)
    return [_choice(event, costs) for event in first.values()]


def _node(node: tree.ChoiceNode, name: str, open_: bool) -> Html:
    """A part of the data, what was chosen there, and the parts below it."""
    decisions = [
        join(tag("a", e.name, href=f"#e{e.id}"), " ", tag("b", tree.chosen(e)), " ", tag("small", tree.why(e)), " ")
        for e in node.choices
    ]
    line = join(tag("span", name, class_="way"), decisions)
    if not node.children:
        return tag("div", line, class_="leaf")
    below = [_node(child, f"{node.split_by} = {child.key}", False) for child in node.children.values()]
    return tag("details", tag("summary", line), tag("div", below), class_="grown", open=open_)


def _counted(events: Sequence[Event]) -> Html:
    """Many calls (a choice inside a recursion): how often each option was taken, by choice."""
    rows = [[name, option, str(n)] for name, option, n in tree.option_counts(events)[:40]]
    head = tag("h3", f"{len(events)} choices in all")
    return tag("section", head, table(["choice", "chosen", "times"], rows, class_="data"))


# What training saw --------------------------------------------------------------------------------


def _together(trained: Sequence[Event]) -> list[list[Event]]:
    """The trainings, those of choice points that were learned from the same whole runs as one."""
    groups: list[list[Event]] = []
    for event in trained:
        same = [g for g in groups if all(g[0].fields.get(k) == event.fields.get(k) for k in ("standings", "databases"))]
        if same and event.fields.get("standings"):
            same[0].append(event)
        else:
            groups.append([event])
    return groups


def _training(events: Sequence[Event]) -> Html:
    event = events[0]
    rows = records(event.fields.get("rows"))
    options = [str(o) for o in event.fields.get("options") or []]
    standings = records(event.fields.get("standings"))
    if standings:
        return _standings(events, standings)
    if not rows or not options:
        return Html("")
    head = tag("h3", f"What {event.name} was trained on")
    return tag("section", head, _regrets(rows, options), _heat(rows, options))


def _standings(events: Sequence[Event], standings: Sequence[Mapping[str, Json]]) -> Html:
    """Compares the fixed ways with the learned one, for choices inside an algorithm."""
    ordered = sorted(standings, key=lambda s: float(s.get("regret", 0)))
    rows = [[str(s.get("policy")), number(s.get("regret"), 3), f"± {number(s.get('error'), 2)}"] for s in ordered[:20]]
    many = len(events[0].fields.get("databases") or [])
    verb = "was" if len(events) == 1 else "were"
    names = ", ".join(dict.fromkeys(e.name for e in events))
    head = tag("h3", f"What {names} {verb} learned from: whole runs on {many} data sets")
    return tag("section", head, table(["way", "regret, left out", ""], rows, class_="data"))


def _heat(rows: Sequence[Mapping[str, object]], options: Sequence[str]) -> Html:
    """Regret of each option on each training set: how far its utility is below the best one's, by logarithm where
    utilities are errors; dark is bad."""
    errors = all(u <= 0 for row in rows for u in _utilities(row, options))
    by_set: dict[str, list[list[float]]] = {}
    for row in rows:
        size = f"{number(row['rows'], 3)} rows" if row.get("rows") else f"× {number(row.get('scale'))}"
        by_set.setdefault(f"{row.get('database')}, {size}", []).append(_losses(row, options, errors))
    means = {name: [math.fsum(col) / len(col) for col in zip(*lost, strict=True)] for name, lost in by_set.items()}
    top = max((v for line in means.values() for v in line), default=1.0) or 1.0
    body = [
        tag("tr", tag("th", name, scope="row"), [
            tag("td", f"{2**v:.2f}×" if errors else number(v, 3), style=f"--heat:{min(1.0, v / top):.3f}",
                class_="best" if v == min(line) else None)
            for v in line
        ])
        for name, line in means.items()
    ]  # fmt: skip
    what = "Error over the least error" if errors else "Utility below the best"
    head = tag("thead", tag("tr", tag("td"), [tag("th", o, scope="col") for o in options]))
    caption = tag("caption", f"{what}, by training set and scale")
    return tag("div", tag("table", caption, head, tag("tbody", body), class_="heat"), class_="wide")


def _regrets(rows: Sequence[Mapping[str, Json]], options: Sequence[str]) -> Html | None:
    """How each option's regret goes with the number of rows (or the scale, where that is not known): one picture for
    each epsilon, for the middle ones of many."""
    errors = all(u <= 0 for row in rows for u in _utilities(row, options))
    axis = "rows" if all(row.get("rows") for row in rows) else "scale"
    amounts = sorted({row.get("epsilon") for row in rows}, key=lambda e: e or 0.0)
    start = max(0, (len(amounts) - _PANELS) // 2)
    panels = []
    for amount in amounts[start : start + _PANELS]:
        here = [row for row in rows if row.get("epsilon") == amount]
        by_size: dict[float, list[list[float]]] = {}
        for row in here:
            by_size.setdefault(float(f"{float(row[axis]):.1g}"), []).append(_losses(row, options, errors))
        places = sorted(by_size)
        if len(places) < 2:
            return None
        means = [[math.fsum(column) / len(column) for column in zip(*by_size[at], strict=True)] for at in places]
        series = {o: [2 ** m[k] if errors else m[k] for m in means] for k, o in enumerate(options)}
        label = "error over the least error" if errors else "utility below the best"
        fields: Plot = {"shape": "line", "x": places, "series": series, "x_label": axis, "y_label": label,
                        "log_x": True, "log_y": errors}  # fmt: skip
        panels.append(draw(Picture("Regret" if amount is None else f"Regret at epsilon {number(amount)}", fields)))
    return tag("div", panels, class_="pictures")


def _losses(row: Mapping[str, object], options: Sequence[str], errors: bool) -> list[float]:
    """How far each utility is below the best one's: of errors the binary logarithm of their ratio."""
    utilities = _utilities(row, options)
    best = max(utilities)
    return [math.log2(max(-u, 1e-12) / max(-best, 1e-12)) if errors else best - u for u in utilities]


def _utilities(row: Mapping[str, Json], options: Sequence[str]) -> list[float]:
    return [float(row["utilities"][option]) for option in options]
