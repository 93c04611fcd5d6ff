"""How many lines stand in the package for one capability alone: files, classes and functions that nothing else calls.

The command: `python -m tests.experiments.capability_lines`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALL = ""
"""The whole file."""
OF = {
    "Public facts": {
        "jostle/kernels/workloads/public_answers.py": ALL,
        "jostle/kernels/workloads/joint_answers.py": "NonnegativeCells Nonnegative projected rounded _set_cells",
        "jostle/run/joint.py": "_given given_answers _by_keys _named with_sizes _workload",
        "jostle/run/jointplan.py": "Shape _nearby is_from_zero cones whole _groups",
        "jostle/run/jointworkload.py": "public_sizes adds_up _below _filled",
        "jostle/privacy/reading/public_data.py": "group_sizes sizes_are_public rows_of_scan",
        "jostle/formulas.py": "Projected",
    },
    "Streams": {
        "jostle/privacy/measurements/running.py": ALL,
        "jostle/run/answers.py": "_running _running_sums running_weights inverse",
        "jostle/run/selects.py": "_running_until",
        "jostle/run/clauses.py": "need_whole_periods",
        "jostle/plan/schemas.py": "with_period",
        "stdlib/streams.jst": ALL,
    },
    "Bounds": {
        "stdlib/sequences.jst": "rows_to_read rows_left_out",
        "jostle/run/margins.py": "_with_left_out",
        "jostle/formulas.py": "Widened",
        "jostle/tools/plan.py": "bounds_text _look_at_bounds",
    },
    "Best of many runs": {
        "jostle/privacy/measurements/watch.py": "OneRun BestRun",
        "jostle/privacy/mechanisms/margin.py": "Stopping",
        "jostle/run/selection.py": "_best_run",
        "stdlib/selection.jst": ALL,
    },
    "Training": {
        "jostle/privacy/measurements/subsampled_batches.py": "Sampled PrepaidSamples need_single_rows",
        "jostle/kernels/rowprograms/derivatives.py": ALL,
        "jostle/kernels/rowprograms/losses.py": ALL,
        "jostle/privacy/measurements/vectors.py": "Steps PrepaidSteps reach apart _not_apart",
        "jostle/run/rowsums.py": "_prepaid_steps Estimates _loss_points _in_shape _loss_of",
        "stdlib/learning.jst": ALL,
    },
    "Inference": {
        "jostle/kernels/statistics/effects.py": "risk_maps survival_curve log_rank_test independence_test",
        "jostle/kernels/statistics/weighting.py": "hazard_model rate_model _design _poisson _grouped _log_linear "
        "_rate_lines",
        "jostle/kernels/statistics/moments.py": "_contrasts group_means _chance_of_square weighted_values deviation_of",
        "jostle/kernels/statistics/regression.py": "Pulls _bounds _spreads correlation_pulls regression_pulls "
        "_of_correlations",
        "stdlib/statistics.jst": "independence weighted_quantiles anova poisson_regression kaplan_meier log_rank "
        "hazard_ratios _lasting",
    },
    "Open domains": {
        "jostle/privacy/measurements/open_selects.py": ALL,
        "jostle/privacy/mechanisms/stability.py": ALL,
        "stdlib/sequences.jst": "ngrams _gram _of_words _next frequent_prefixes",
    },
    "Order": {
        "stdlib/sequences.jst": "with_previous so_far sessions _named",
        "jostle/run/persons.py": "_in_order",
    },
}


def lines_of(path: Path, names: str) -> int:
    """The lines of a file, or of what has these names in it, each once; refused where a name is not there."""
    text = path.read_text(encoding="utf-8")
    if not names:
        return len(text.splitlines())
    spans: dict[str, int] = {}
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                spans[node.name] = spans.get(node.name, 0) + (node.end_lineno or 0) - node.lineno + 1
                spans[node.name] += len(node.decorator_list)
    else:
        for part in re.findall(r"^def .*\n(?: .*\n|\n(?= ))*", text, re.MULTILINE):
            spans[re.match(r"def (\w+)", part)[1]] = len(part.splitlines())  # type: ignore[index]
    return sum(spans[name] for name in names.split())


def main() -> None:
    for capability, files in OF.items():
        each = {name: lines_of(ROOT / name, names) for name, names in files.items()}
        where = ", ".join(f"{Path(name).name} {many}" for name, many in each.items())
        print(f"| {capability} | {sum(each.values()):,} | {where} |")


if __name__ == "__main__":
    main()
