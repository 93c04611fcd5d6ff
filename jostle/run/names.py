"""The names that every program knows: a closed list, so that a check needs not load what they do.

A test holds it against the scope that the interpreter starts from.
"""

from __future__ import annotations

_WORDS = """
    MkChoiceMaker MkFeatures MkModel MkOption MkScore abs accounting answer append avg bound ceil cells clamp
    columns counts dataset derive enumerate error exact exp exp_mech explain floor forest gaussian histogram
    identity idxmax idxmin integer keys l2 laplace least_cost_partition left len limited list log max median min
    misfit noisy_max nonzero number partition peak pi pick plot prefixes print quantile ranges real record rectangles
    regret_tree reversed rmse roughness round scaled_error set size sorted spent spread sqrt stddev str sum table
    text total tree values var vectors_in where zip
"""

BUILTINS = frozenset(_WORDS.split())
