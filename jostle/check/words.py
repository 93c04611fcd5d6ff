"""The words whose meaning the checker must know: aggregates, row functions, and what takes or refuses handles.

Only what helps to find an error before the run stands here; a word that is missing is let through.
"""

from __future__ import annotations

AGGREGATES = frozenset({"count", "sum", "avg", "var", "stddev", "median", "quantile", "min", "max", "mode"})
BOUNDED = frozenset({"sum", "avg", "var", "stddev"})  # aggregates whose terms need known bounds
ROW_FUNCTIONS = frozenset({"abs", "floor", "ceil", "round", "sqrt", "log", "exp", "clamp", "min", "max"})

# Functions whose arguments after the first are expressions over the rows of the first; of ROW_CALLS all of them.
ROW_CALLS = frozenset({"histogram", "partition", "where", "derive", "pick"})
SPLITS = frozenset({"entropy", "gini", "max_class"})
OVER_ROWS = ROW_CALLS | SPLITS | {"columns", "predicates", "vectors"}

SOURCES = frozenset({"table", "counts", "dataset", "bound"})
TRANSFORMATIONS = frozenset({"histogram", "where", "derive", "pick", "vectors"})
KEEPS_COLUMNS = frozenset({"where"})

# Functions of public values: a handle among their arguments is an error. A container that holds one may be
# counted and put in order of length, so only the handle itself is looked at.
PUBLIC_ONLY = frozenset(
    {
        "len", "sqrt", "abs", "floor", "ceil", "round", "exp", "log", "sum", "max", "min", "sorted", "str", "number",
        "idxmax", "idxmin",
    }
)  # fmt: skip

# Functions that show their arguments to a person, and what a message calls that.
SHOWN = {"print": "printed", "plot": "drawn"}

FOLDS = ("max", "min", "sum", "argmax", "argmin")
OPEN_DOMAINS = frozenset({"text", "integer", "real"})
ALWAYS = frozenset({"epsilon", "rho"})  # names of what is left of an allotment
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
QUANTUM = 1e-12  # no amount may be smaller
