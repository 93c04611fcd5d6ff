"""Renders a policy: as text (its training, cross-validation, what won and why, its trees), and its trees as records.

The records are what `choice` events carry for the renderings of a trace. A test is {feature, threshold, low, high}, a
leaf {says: {option: utility}, n}; forests are not drawn. What a Feature means is the comment at its declaration.
"""

from __future__ import annotations

import re

from jostle.choice.models import LEAF, Tree, TreeEnsembles
from jostle.choice.policy import SINGLE_BEST, Policy


def explain(policy: Policy) -> str:
    if policy.predictor is None:
        return f"policy: {policy.table.options[0]}, the only option\n"
    parts = [_head(policy), _training(policy), _validation(policy), _models(policy)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def ways(policy: Policy) -> str:
    """A choice point: how the fixed ways and the learned one compared, and its trees where they won."""
    over = f"trained on whole runs on {_count(len(policy.table.databases), 'data set')}"
    lines = [f"policy: {policy.name}", f"why: {policy.why}", over, "regret of utility, mean ± standard error"]
    width = max((len(s.name) for s in policy.standings), default=0)
    lines += [f"  {s.name:<{width}}  {s.regret:8.4f} ± {s.error:.4f}" for s in policy.standings]
    if policy.learned:
        lines += ["what each option gains over the mean run"]
        lines += _models(policy)[1:]
    return "\n".join(lines)


def _head(policy: Policy) -> list[str]:
    table = policy.table
    if not policy.learned:
        name = f"{SINGLE_BEST} ({policy.choose({}, None).chosen})"
        return [f"policy: {name}", f"why: {policy.why}", "reads no feature; all of epsilon goes to the option"]
    public = dict(zip(table.features, table.public, strict=True))
    reads = [f"{n} ({'exact' if table.exact else 'free' if public.get(n, True) else 'paid'})" for n in policy.columns]
    cost = f"; features take {policy.share * 100:g} % of epsilon" if policy.share else "; at no cost"
    if policy.further is not None:
        cost += f", and {policy.further.share * 100:g} % more where a second look is predicted to pay"
    return [
        f"policy: {policy.name}, by {policy.model}",
        f"why: {policy.why}",
        f"reads {', '.join(reads) or 'nothing'}{cost}",
    ]


def _training(policy: Policy) -> list[str]:
    """Lines about the training runs and how often each option was the best."""
    table = policy.table
    scales = sorted({r.scale for r in table.runs})
    epsilons = f"epsilon {', '.join(f'{e:.3g}' for e in table.epsilons)}" if table.epsilons else "without noise"
    wins = [0] * len(table.options)
    for run in table.runs:
        wins[max(range(len(wins)), key=lambda k: run.utilities[0][k])] += 1
    best = ", ".join(f"{o} {w}" for o, w in zip(table.options, wins, strict=True))
    return [
        f"trained on {_count(len(table.databases), 'data set')} at {_count(len(scales), 'scale')}, {epsilons}: "
        f"{_count(len(table.runs), 'instance')}, {_count(table.repeats, 'run')} of each option in each",
        f"best option, by instances: {best}",
    ]


def _validation(policy: Policy) -> list[str]:
    if not policy.standings:
        return []
    kind = "log regret" if policy.table.scale.logarithmic else "regret"
    width = max(len(s.name) for s in policy.standings)
    lines = [f"cross-validation by leaving data sets out: mean {kind} ± standard error"]
    for s in policy.standings:
        mark = "*" if s.name == policy.name else " "
        lines.append(f"{mark} {s.name:<{width}}  {s.regret:8.4f} ± {s.error:.4f}")
    return lines


def _models(policy: Policy) -> list[str]:
    predictor, options = policy.predictor, policy.outcomes
    if not isinstance(predictor, TreeEnsembles):
        return ["the model is the program's own"]
    models = " (its logarithm is modelled)" if predictor.scale.logarithmic else ""
    lines = [f"predicted utility{models} ± standard deviation, and draws of training instances"]
    if predictor.together:
        trees = predictor.ensembles[0]
        if len(trees) > 1:
            lines.append(f"the mean of {len(trees)} trees; the first:")
        lines += _tree(predictor, trees[0], options, range(len(options)))
        lines += [f"{o}: predicts for itself, whatever the tree says" for k, o in enumerate(options) if policy.own(k)]
    for k, option in enumerate(() if predictor.together else options):
        if policy.own(k):
            lines += [f"{option}: predicts for itself"]
        else:
            lines += [f"{option}:", *_tree(predictor, predictor.ensembles[k][0], (), (0,))]
    if policy.further is not None:
        lines += ["of the second look:", *_models(policy.further)[1:]]
    return lines


def _tree(predictor: TreeEnsembles, tree: Tree, names: tuple[str, ...], outputs: range | tuple[int, ...]) -> list[str]:
    """The lines of a tree; `names` of its outputs where they are several."""

    def leaf(at: int) -> str:
        statements = []
        for k in outputs:
            utility = predictor.scale.utility(tree.value[at][k])
            width = predictor.scale.width(utility, tree.spread[at][k])
            statements.append(f"{names[k] + ' ' if names else ''}{utility:.4g} ± {width:.2g}")
        return f"{', '.join(statements)}  ({tree.n[at]})"

    return tree.lines(predictor.columns, leaf, indent="  ")


def _count(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")


_MOST = 400  # nodes of all trees together


def meaning(feature: object) -> str:
    """The first sentence of the comment behind the first line of a Feature, or of that above it; empty without one."""
    span = getattr(getattr(getattr(feature, "run", None), "body", None), "span", None)
    if span is None:
        return ""
    behind = re.search(r"\s#\s*([^#]+)$", span.source.line(span.line))
    words, line = ([behind[1]], 0) if behind else ([], span.line - 1)
    while span.source.line(line).startswith("#"):
        words.insert(0, span.source.line(line).lstrip("# "))
        line -= 1
    return " ".join(words).partition(". ")[0].strip().rstrip(".")


def tree_records(policy: Policy) -> dict[str, object]:
    """Returns the tree of each option, or one under `""` for all options; empty where there is none to draw."""
    model = policy.predictor
    if not policy.learned or not isinstance(model, TreeEnsembles) or any(len(trees) != 1 for trees in model.ensembles):
        return {}
    if sum(len(trees[0].feature) for trees in model.ensembles) > _MOST:
        return {}
    options = policy.outcomes
    if model.together:
        return {"": _node(policy, model, model.ensembles[0][0], options, 0)}
    return {o: _node(policy, model, trees[0], (o,), 0) for o, trees in zip(options, model.ensembles, strict=True)}


def _node(policy: Policy, model: TreeEnsembles, tree: Tree, options: tuple[str, ...], at: int) -> dict[str, object]:
    if tree.feature[at] == LEAF:
        utilities = {o: model.scale.utility(v) for o, v in zip(options, tree.value[at], strict=True)}
        return {"says": utilities, "n": tree.n[at]}
    column = model.columns[tree.feature[at]]
    return {
        "feature": column, "threshold": policy.reading(column, tree.threshold[at]),
        "low": _node(policy, model, tree, options, tree.left[at]),
        "high": _node(policy, model, tree, options, tree.right[at]),
    }  # fmt: skip
