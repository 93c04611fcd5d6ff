"""Renders each choice of a run as a tree: its features and their cost, its predictions, and the events of its option.

Where every utility is a negative error the choice compares them by their ratios, and a person reads errors. Choices of
two runs are matched by their name and the order in which each name's were made. Choices inside a recursion are arranged
by the parts of the data at which they were made: a choice point's event says its `context`, the keys of the part at
hand, [[column, key], …]. Pure functions of events.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import zip_longest

from msgspec import Struct, field

from jostle.events import Event
from jostle.formulas import cuts_in, error_text
from jostle.records import replace
from jostle.resources import Json
from jostle.trace.costs import Costs, Forest, joint_text, mapping, place, price, records
from jostle.trace.text import Twig, align, amount, number, plural


def heading(fields: Mapping[str, object]) -> str:
    return "predicted error" if fields.get("errors") else "predicted, larger is better"


def figures(fields: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    """The figure of each option, and its spread over the training runs it is learned from (empty where unknown)."""
    sign, spread = (-1 if fields.get("errors") else 1), mapping(fields.get("spread"))
    return {
        option: (number(sign * score), f"± {number(spread[option], 2)}" if option in spread else "")
        for option, score in mapping(fields.get("predictions")).items()
    }


def margin(fields: Mapping[str, object]) -> str | None:
    """How far the next option is behind, and whether single runs differ by more than that; none without another."""
    predictions, chosen = mapping(fields.get("predictions")), str(fields.get("chosen"))
    others = {option: float(score) for option, score in predictions.items() if option != chosen}
    if chosen not in predictions or not others:
        return None
    second = max(others, key=lambda option: others[option])
    mine, next_best, spread = float(predictions[chosen]), others[second], mapping(fields.get("spread"))
    widths = [float(spread[o]) for o in (chosen, second)] if {chosen, second} <= spread.keys() else [0.0, 0.0]
    if mine < next_best and not fields.get("errors"):
        return f"{number(next_best - mine)} less than {second}, which is not enough to leave {chosen}"
    if fields.get("errors") and mine < 0 and next_best < 0:
        times = number(next_best / mine, 3)
        text = f"the error of {second} is " + (f"{times} times as large" if times != "1" else "about as large")
        gap, widths = math.log(next_best / mine), [w / -u for w, u in zip(widths, (mine, next_best), strict=True)]
    else:
        text, gap = f"{number(mine - next_best)} more than {second}", mine - next_best
    return text + (", though single runs differ by more" if gap < math.hypot(*widths) else "")


_DEEPEST = 12
_MOST = 24  # twigs shown under one
WORDS = {"replayed": "answered before, free", "public": "public, exact", "refused": "refused"}


def choices(events: Sequence[Event], name: str | None = None, most: int = 20) -> str:
    """Every choice (of the given name) as a tree; those made inside another choice stand inside its tree."""
    forest = Forest.of(events)
    choice_events = [e for e in (forest.walk() if name else forest.outermost("choice")) if e.kind == "choice"]
    choice_events = [e for e in choice_events if name in (None, e.name)]
    if not choice_events:
        return "no choice was made\n" if name is None else f"no choice named `{name}` was made\n"
    costs = Costs.of(forest)
    trees = ["\n".join(_choice(forest, costs, e).lines()) for e in choice_events[:most]]
    if len(choice_events) > most:
        trees.append(f"… and {plural(len(choice_events) - most, 'more choice')}")
    return "\n\n".join(trees) + "\n"


def _choice(forest: Forest, costs: Costs, event: Event, depth: int = 0) -> Twig:
    """One choice as a tree to be drawn; fields that the event lacks are left out."""
    fields = event.fields
    twig = Twig(_join(f"{event.name} chose {fields.get('chosen', 'nothing')}", place(event)))
    if fields.get("simulated") is not None:
        twig.add("simulated: nothing private was opened")
    if fields.get("way"):
        twig.add(f"chosen by {fields['way']}: {fields.get('why')}")
    else:
        _features(twig, fields)
    _predictions(twig, fields)
    _along(twig, fields)
    _path(twig, fields)
    for line in (margin(fields), at_other_amounts(fields), reused(forest, event)):
        if line:
            twig.add(line)
    ran = [c for c in forest.children(event) if c.kind != "feature"]
    for child in ran:
        _ran(forest, costs, twig, child, depth)
    if total := costs.text(event):
        whole = price(fields)
        twig.add(f"spent {total}" + (f" of {amount(whole[1])}" if whole is not None else ""))
    return twig


def brief(event: Event, total: str) -> list[str]:
    """One choice in two or three lines: what was chosen and why, and that it spent `total` in all."""
    fields = event.fields
    option = str(fields.get("chosen", "nothing"))
    others = [o for o in mapping(fields.get("predictions")) if o != option]
    lines = [f"{event.name} chose {option}" + (f" over {', '.join(others)}" if others else "")]
    why = [f"policy: {fields['policy']}"] if fields.get("policy") else []
    why += [f"by {fields['way']}: {fields.get('why')}"] if fields.get("way") else []
    why += [", ".join(_step(s) for s in records(fields.get("path"))), margin(fields) or ""]
    if any(why):
        lines.append("  because: " + "; ".join(w for w in why if w))
    costs = [price(feature) for feature in records(fields.get("features"))]
    paid = sum((cost[1] for cost in costs if cost is not None), Decimal(0))
    if total:
        lines.append(f"  spent {total}" + (f", {amount(paid)} of it on features" if paid else ""))
    return lines


def _features(twig: Twig, fields: Mapping[str, object]) -> None:
    features = records(fields.get("features"))
    if not features:
        twig.add("features: none were looked at")
        return
    under = twig.add("features")
    rows = [(f"{f['name']} = {looked_at(f)}", cost_text(f), str(f.get("means") or "")) for f in features]
    for line in align(rows, (False, False, False)):
        under.add(line)


def looked_at(feature: Mapping[str, object]) -> str:
    """The value of a feature, with its noise where it was bought: `4071 ± 200`."""
    value, error = feature["value"], feature.get("error")
    if isinstance(error, bool) or not isinstance(error, int | float) or not isinstance(value, int | float):
        return number(value)
    return number(value) + (f" ± {error_text(value, error)}" if math.isfinite(error) else "")


def cost_text(feature: Mapping[str, object]) -> str:
    """`ε 0.1`, or `free`."""
    cost = price(feature)
    return f"{cost[0]} {amount(cost[1])}" if cost is not None else "free"


def _predictions(twig: Twig, fields: Mapping[str, object]) -> None:
    rows = [
        (("▶ " if option == fields.get("chosen") else "  ") + option, figure, spread)
        for option, (figure, spread) in figures(fields).items()
    ]
    if not rows:
        return
    model = fields.get("model")
    under = twig.add(heading(fields) + (f" ({model})" if isinstance(model, str) and model else ""))
    for line in align(rows, (False, True, False)):
        under.add(line)


def sweep(fields: Mapping[str, object]) -> tuple[Mapping[str, Json], list[list[str]], int]:
    """What is predicted along the feature that decided: the field itself, a row for each of its values with the best
    option last, and which row these data are at. Neighbours that are predicted alike are one row."""
    along = mapping(fields.get("along"))
    places, options, here = along.get("places") or [], mapping(along.get("options")), -1
    rows: list[list[str]] = []
    sign = -1 if fields.get("errors") else 1
    for k, at in enumerate(places):
        scores = {option: float(values[k]) for option, values in options.items()}
        told = [*(number(sign * score, 3) for score in scores.values()), max(scores, key=scores.__getitem__)]
        if rows and rows[-1][1:] == told and at != along.get("value"):
            continue
        if rows and rows[-1][1:] == told and here < len(rows) - 1:
            rows.pop()
        here = len(rows) if at == along.get("value") else here
        rows.append([number(at), *told])
    return along, rows, here


def _along(twig: Twig, fields: Mapping[str, object]) -> None:
    along, rows, here = sweep(fields)
    if not rows:
        return
    under = twig.add(f"{heading(fields)}, by {along['feature']}, the feature that decided")
    head = (str(along["feature"]), *mapping(along["options"]), "best", "")
    marked = [(*row, "◀ these data" if k == here else "") for k, row in enumerate(rows)]
    for line in align([head, *marked], (True, *(True for _ in along["options"]), False, False)):
        under.add(line.rstrip())


def at_other_amounts(fields: Mapping[str, object]) -> str:
    """What the policy takes at half and twice the amount; empty where the event does not say it."""
    other = mapping(fields.get("otherwise"))
    if not other:
        return ""
    start = "with the same features: " if fields.get("features") else ""
    return start + ", ".join(f"{option} at {word} the amount" for word, option in other.items())


def reused(forest: Forest, event: Event) -> str:
    """The features whose answers were given before, and cost nothing again."""
    again = [
        f"{child.name}" for child in forest.children(event)
        if child.kind == "feature" and any(one.fields.get("replayed") for one in forest.walk(child))
    ]  # fmt: skip
    return f"answered before, and used again for nothing: {', '.join(again)}" if again else ""


def _path(twig: Twig, fields: Mapping[str, object]) -> None:
    """The tests that led to the predictions: once where all options share them, else for each option."""
    policy = ": ".join(str(w) for w in ("policy", fields.get("policy"), fields.get("why")) if w)
    if fields.get("policy"):
        twig.add(policy)
    for option, steps in _paths(fields).items():
        of = f" of {option}" if option else ""
        under = twig.add(f"path through the tree{of}" + ("" if steps else ": no test"))
        for step in steps:
            under.add(_step(step))


def _step(step: Mapping[str, object]) -> str:
    sign = "≤" if step["went"] == "<=" else step["went"]
    return f"{step['feature']} = {number(step['value'])} {sign} {number(step['threshold'])}"


def _ran(forest: Forest, costs: Costs, twig: Twig, event: Event, depth: int) -> None:
    """Hangs what happened inside a choice under `twig`; runs of like events become one line."""
    if event.kind == "choice" and depth < _DEEPEST:
        twig.twigs.append(_choice(forest, costs, event, depth + 1))
        return
    under = twig.add(one_line(event, "ran " if event.kind == "option" else "", costs.text(event)))
    hang_children(forest, under, event, depth >= _DEEPEST, lambda child: _ran(forest, costs, under, child, depth + 1))


def hang_children(forest: Forest, under: Twig, event: Event, cut: bool, hang: Callable[[Event], None]) -> None:
    """Hangs the children of an event under its twig, folded where they read the same; only their number with `cut`."""
    below = forest.children(event)
    if cut and below:
        under.add(f"… {plural(sum(1 for _ in forest.walk(event)) - 1, 'event')} below")
        return
    for child in below:
        hang(child)
    under.twigs = fold(under.twigs)


_SIZE = {"random stopping": "{} runs in the mean"}


def one_line(event: Event, before: str = "", cost: str = "") -> str:
    """An event in one line: its kind and name, what it measured and how, its cost and its place."""
    fields = event.fields
    parts = [f"{before}{event.name}" if before else f"{event.kind} {event.name}".strip()]
    if event.kind == "measure":
        mechanism = fields.get("mechanism")
        parts = [str(mechanism or event.name)] + ([event.name] if mechanism and event.name != mechanism else [])
        if fields.get("scale") is not None:
            parts.append(_SIZE.get(str(mechanism), "scale {}").format(number(fields["scale"])))
        if fields.get("within") is not None and fields.get("of"):
            of = "of the best score" if fields["of"] == "score" else fields["of"]
            parts.append(f"within {number(fields['within'])} {of} (95 %)")
        parts.append("on " + ", ".join(fields.get("sources") or ()))
        if (part := fields.get("prepaid")) is not None:
            parts.append(f"{number(part)} of what was prepaid" if part else "paid for before")
    if event.kind == "query":
        aggregates, keys = (", ".join(map(str, fields.get(k) or ())) for k in ("aggregates", "keys"))
        parts += [joint_text(fields), aggregates if aggregates != event.name else "", f"by {keys}" if keys else ""]
        cut = cuts_in(fields.get("cut"))
        parts += [f"without {', '.join(cut)}"] if cut else []
    parts += [word for key, word in WORDS.items() if fields.get(key)]
    return _join(*parts, cost, place(event))


def fold(twigs: list[Twig]) -> list[Twig]:
    """Neighbouring twigs that read the same as one with `×n`; of very many, the first ones."""
    out: list[tuple[list[str], Twig, int]] = []
    for twig in twigs:
        lines = twig.lines()
        if out and out[-1][0] == lines:
            out[-1] = (lines, twig, out[-1][2] + 1)
        else:
            out.append((lines, twig, 1))
    first_twigs = [Twig(f"{t.text} ×{n}" if n > 1 else t.text, t.twigs) for _, t, n in out[:_MOST]]
    return first_twigs + ([Twig(f"… and {len(out) - _MOST} more")] if len(out) > _MOST else [])


def _join(*parts: str) -> str:
    return "  ".join(p for p in parts if p)


class Decisions(Struct, frozen=True):
    """One choice in two runs; None in the one that did not make it."""

    name: str
    mine: Event | None
    theirs: Event | None

    @property
    def differs(self) -> bool:
        """Whether the two took different options."""
        return chosen(self.mine) != chosen(self.theirs)

    def reasons(self) -> list[str]:
        """Why the two took different options, as far as their events say."""
        if self.mine is None or self.theirs is None:
            return []
        here, there = self.mine.fields, self.theirs.fields
        return [*_parting(here, there), *_predicted(here, there)]


def decisions(one: Sequence[Event], other: Sequence[Event]) -> list[Decisions]:
    """The choices of both runs: those that took different options first."""
    mine, theirs = _by_name(one), _by_name(other)
    pairs = [
        Decisions(f"{name} ({place})", *both)
        for name in dict.fromkeys([*mine, *theirs])
        for place, both in enumerate(zip_longest(mine.get(name, ()), theirs.get(name, ())), 1)
    ]
    return sorted(pairs, key=lambda pair: not pair.differs)


def chosen(event: Event | None) -> str:
    return "no choice" if event is None else str(event.fields.get("chosen", "nothing"))


def features_of(event: Event | None) -> str:
    features = [] if event is None else records(event.fields.get("features"))
    return ", ".join(f"{f['name']} {looked_at(f)}" for f in features)


def _by_name(events: Sequence[Event]) -> dict[str, list[Event]]:
    out: dict[str, list[Event]] = {}
    for event in Forest.of(events).walk():
        if event.kind == "choice":
            out.setdefault(event.name, []).append(event)
    return out


def _paths(fields: Mapping[str, object]) -> dict[str, list[Mapping[str, object]]]:
    """The tests that a choice met: one path for all options, or one for each; none where all met none."""
    paths = {str(option): records(steps) for option, steps in mapping(fields.get("paths")).items()}
    shared = records(fields.get("path"))
    if any(steps != shared for steps in paths.values()):
        return paths
    return {"": shared} if shared else {}


def _parting(here: Mapping[str, object], there: Mapping[str, object]) -> Iterator[str]:
    """The first test of each path at which the two went apart; another way of choosing where there is none."""
    mine, theirs = _paths(here), _paths(there)
    apart = False
    for option in mine:
        for step, other in zip(mine[option], theirs.get(option, ()), strict=False):
            if (step["feature"], step["threshold"]) != (other["feature"], other["threshold"]):
                break
            if step["went"] != other["went"]:
                apart = True
                lead = f"for {option}: " if option else ""
                yield (
                    f"{lead}{step['feature']} is {number(step['value'])} here and {number(other['value'])} there, "
                    f"and {number(step['threshold'])} lies between"
                )
                break
    ways = [str(fields.get("way") or fields.get("policy") or "") for fields in (here, there)]
    if not apart and ways[0] != ways[1]:
        yield f"chosen by {ways[0] or 'no policy'} here and by {ways[1] or 'no policy'} there"
    elif not apart and here.get("trees") != there.get("trees"):
        yield "the two learned from other runs, and ask other questions"


def _predicted(here: Mapping[str, object], there: Mapping[str, object]) -> Iterator[str]:
    """What was predicted of the two options that were taken, in both runs."""
    mine, theirs = figures(here), figures(there)
    options = dict.fromkeys(str(fields.get("chosen")) for fields in (here, there))
    texts = [f"{o} {mine[o][0]} here and {theirs[o][0]} there" for o in options if o in mine and o in theirs]
    if texts and heading(here) == heading(there):
        yield f"{heading(here)}: {'; '.join(texts)}"


_CHILDREN, _LINES = 12, 80  # nodes that are shown under one, and lines in all


class ChoiceNode(Struct):
    """One part of the data: the key that leads to it, the choices made there, and the parts below."""

    key: str = ""
    split_by: str = ""  # the column that its children are divided by
    choices: list[Event] = field(default_factory=list)
    children: dict[str, ChoiceNode] = field(default_factory=dict)


def nested_choices(events: Iterable[Event]) -> ChoiceNode | None:
    """The tree of parts at which choices were made; None where there were none. Of several trees, one beside another.

    Where a choice is made a second time at the part that the first one stood at, another tree begins.
    """
    trees: list[ChoiceNode] = []
    top = 0
    for event in sorted((e for e in events if e.kind == "choice"), key=lambda e: e.id):
        context = event.fields.get("context")
        if not isinstance(context, list):
            continue
        top = min(top, len(context)) if trees else len(context)
        if not trees or (len(context) == top and any(e.name == event.name for e in _node(trees[-1], context).choices)):
            trees.append(ChoiceNode())
        _node(trees[-1], context).choices.append(event)
    if len(trees) < 2:
        return trees[0] if trees else None
    return ChoiceNode(
        split_by="tree", children={str(i + 1): replace(tree, key=str(i + 1)) for i, tree in enumerate(trees)}
    )


def _node(root: ChoiceNode, context: Sequence[object]) -> ChoiceNode:
    """The part that the keys of a context lead to, made where it was not there."""
    at = root
    for step in context:
        column, key = step if isinstance(step, list | tuple) and len(step) == 2 else ("", step)
        at.split_by = str(column)
        at = at.children.setdefault(number(key), ChoiceNode(number(key)))
    return at


def why(event: Event) -> str:
    """The features at a choice and the tests that they met; where none was asked, how far the next option is behind."""
    path = event.fields.get("path")
    tests = [s for s in path if isinstance(s, Mapping)] if isinstance(path, list) else []
    statements = [
        f"{s.get('feature')} {number(s.get('value'))} {s.get('went')} {number(s.get('threshold'))}" for s in tests
    ]
    policy = [str(event.fields.get("policy") or event.fields.get("way") or ""), margin(event.fields) or ""]
    return ", ".join(statements) or ": ".join(filter(None, policy))


def twig(node: ChoiceNode, name: str = "all rows") -> Twig:
    branch = Twig("  ".join([name, *(f"{e.name} {chosen(e)} ({why(e)})" for e in node.choices)]))
    children = list(node.children.values())
    for child in children[:_CHILDREN]:
        branch.twigs.append(twig(child, f"{node.split_by} = {child.key}"))
    if len(children) > _CHILDREN:
        branch.add(f"… and {len(children) - _CHILDREN} more")
    return branch


def decisions_text(events: Sequence[Event]) -> str:
    """Renders the number of times each option was taken, and the first lines of the tree."""
    root = nested_choices(events)
    if root is None:
        return ""
    lines = twig(root).lines()
    cut = [f"… {len(lines) - _LINES} more lines; `--html` shows all"] if len(lines) > _LINES else []
    times = [f"{name} chose {option} {plural(n, 'time')}" for name, option, n in option_counts(events)]
    return "\n".join([*times, *lines[:_LINES], *cut])


def option_counts(events: Iterable[Event]) -> list[tuple[str, str, int]]:
    """Counts how often each option was taken: (choice, option, times), the most frequent first."""
    times: dict[tuple[str, str], int] = {}
    for event in events:
        if event.kind == "choice":
            place = event.name, str(event.fields.get("chosen"))
            times[place] = times.get(place, 0) + 1
    return sorted(((*place, n) for place, n in times.items()), key=lambda row: (-row[2], row[0], row[1]))
