"""Exports a policy's trees as nested records, which `choice` events carry for the renderings.

A test is {feature, threshold, low, high}, a leaf {says: {option: utility}, n}. Forests are not drawn.

What a Feature means: the comment at its declaration.
"""

from __future__ import annotations

import re

from jostle.choice.models import TreeEnsembles
from jostle.choice.policy import Policy
from jostle.choice.trees import LEAF, Tree

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
    options = policy.table.options
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
