"""The names that every program knows: a closed list, so that a check needs not load what they do.

A test holds it against the scope that the interpreter starts from.
"""

from __future__ import annotations

_WORDS = """
    MkChoiceMaker MkFeatures MkModel MkOption MkScore abs accounting accuracy answer append avg band binned
    bisections bootstrap bound boundaries ceil cells clamp columns coordinate_scores count_partition counts dataset
    derive distance entropy enumerate error exact exp exp_mech explain floor forest gaussian gini histogram identity
    idxmax idxmin integer keys l2 laplace least_cost_partition left leftover len limited list log marginals max
    max_class median min misfit noisy_max noisy_moments noisy_samples noisy_sum nonzero number partition peak
    perturbed_optimum pi pick plot predicates prefixes prepaid print quantile ranges real record rectangles
    regret_tree reversed ridge rmse roughness round rows_right scaled_error set simulated_tables size sorted spent
    split_rows spread sqrt standard_error stddev str sum table text total tree union values var vectors vectors_in
    where whole zip
"""

BUILTINS = frozenset(_WORDS.split())
