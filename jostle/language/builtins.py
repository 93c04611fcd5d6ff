"""The built-in names of the language: one row a name, which every pass reads.

A row says a name's parameters, its effect on private data, how it reads its arguments, what it gives, and one line
for people. `@` marks the parameter whose handles are measured, scored or transformed; one that stands after `*` is
given by name. What serves one module of the library alone is of that module (`MODULES`): every program knows it, and
may have the name for something else. The run looks up a row for whatever it implements, so that a name without a row
is an import error; whatever a check before the run does not find here may charge anything.
"""

from __future__ import annotations

from jostle.language.facts import Builtin, Effect, Gives, Reads
from jostle.language.row_functions import OVERLOADS, ROW_FUNCTIONS, Function

BUILTINS: dict[str, Builtin] = {}
"""The rows by name."""

MODULES = {
    "workloads": (
        "identity",
        "prefixes",
        "ranges",
        "rectangles",
        "marginals",
        "predicates",
        "answer",
        "exact",
        "closeness",
        "same_cells",
    ),
    "features": ("nonzero", "largest_cell", "largest_marginal", "l2", "l1_to_uniform", "total_variation"),
    "histograms": ("least_cost_partition", "misfit", "scaled_error", "bootstrap"),
    "cuts": ("count_partition",),
    "selection": ("largest", "margin_max", "above_threshold", "above", "best_run", "in_rho"),
    "gradual": ("refinable", "refine", "sum_of"),
    "classifiers": ("binned", "correct_count", "surprise_count", "ranked_counts", "accuracy", "simulated_tables"),
    "regressions": ("prediction_error", "simulated_regressions"),
    "effects": ("simulated_studies",),
    "trees": ("entropy", "gini", "leaf_counts", "level_sizes", "max_class", "split_rows", "subtrees"),
    "row_vectors": ("vectors", "prepaid", "noisy_moments", "noisy_sum", "coordinate_scores", "row_score"),
    "learning": ("in_shape", "loss_points", "loss_of"),
    "graphical": ("noisy_samples", "perturbed_optimum", "distance", "distances"),
    "best": ("advisor", "retrained"),
    "sequences": ("in_order",),
    "weighted": ("weighted", "shave", "grouped", "joined", "intersect", "concat", "without"),
}
"""Names that serve one module of the library alone, by module; `use` brings them, so that two modules' clash."""

_HOMES = {name: module for module, names in MODULES.items() for name in names}

PURE, MEASURES, TRANSFORMS, SCORES, DECLARES = Effect
PUBLIC, HANDLES, CONTAINERS, PRINTS, DRAWS, ROWS, SOURCE, NOTHING = Reads


def row(
    name: str, signature: str | None, about: str, gives: Gives = Gives.RELEASED, reads: Reads = PUBLIC,
    effect: Effect = PURE, function: str = "",
) -> None:  # fmt: skip
    """Enters a row; a name has one."""
    if name in BUILTINS:
        raise ImportError(f"the built-in `{name}` has two rows")
    BUILTINS[name] = Builtin(name, signature, effect, reads, gives, about, function, _HOMES.get(name, ""))


# Words of descriptions, and constants ----------------------------------------------------------------

row("text", None, "The domain of any text.", Gives.DOMAIN, NOTHING)
row("integer", None, "The domain of any whole number.", Gives.DOMAIN, NOTHING)
row("real", None, "The domain of any number.", Gives.DOMAIN, NOTHING)
row("date", None, "The domain of any date.", Gives.DOMAIN, NOTHING)
row("time", None, "The domain of any time of a date.", Gives.DOMAIN, NOTHING)
row("pi", None, "The ratio of a circle's circumference to its diameter.", Gives.CONSTANT, NOTHING)

# Sources ---------------------------------------------------------------------------------------------

row("table", "path, part = none, *, sheet, header, separator, encoding, decimal",
    "Opens files as a table, or makes one of records or of a release.", reads=SOURCE, effect=DECLARES)  # fmt: skip
row("counts", "cells", "Takes counts, or a file of them, as a cube.", reads=SOURCE, effect=DECLARES)
row("bound", "name, part = none, *, sheet, header, separator, encoding, decimal",
    "Takes what Python or the command line bound to a name.", reads=SOURCE, effect=DECLARES)  # fmt: skip
row("dataset", "name", "Opens a dataset that its owner has registered.", reads=SOURCE, effect=DECLARES)
row("postgres", "name", "Opens a table of a PostgreSQL database.", reads=SOURCE, effect=DECLARES)
row("spark", "*names", "Opens a table of a Spark cluster, or Parquet files that it reads.", reads=SOURCE,
    effect=DECLARES)  # fmt: skip
row("vectors_in", "folder", "Reads the arrays of a folder's `.npy` files, by name.", reads=HANDLES, effect=DECLARES)

# Transformations of tables ---------------------------------------------------------------------------

row("histogram", "@table: tabular, *columns, **named", "Counts rows by columns or expressions: a cube.", Gives.CUBE,
    ROWS, TRANSFORMS)  # fmt: skip
row("partition", "@table: rows, key, *, over = none", "Parts by a public key: pairs of a value and its part.",
    Gives.PARTS, ROWS, TRANSFORMS)  # fmt: skip
row("where", "@table: filtered, condition", "The rows for which a condition holds.", Gives.FILTERED, ROWS, TRANSFORMS)
row("derive", "@table: tabular, **columns", "The table with further columns.", Gives.DERIVED, ROWS, TRANSFORMS)
row("pick", "@table: tabular, *columns", "The table with these columns alone.", Gives.PICKED, ROWS, TRANSFORMS)
row("columns", "@table", "The columns of a table, to choose among.", Gives.COLUMNS, ROWS, TRANSFORMS)
row("vectors", "@table: points, *columns, radius, scaled = true, norm = \"l2\", low, high",
    "Rows as vectors of numeric columns, clipped to a norm.", Gives.VECTORS, ROWS, TRANSFORMS)  # fmt: skip
row("binned", "@table, column, edges: edges", "The table with a numeric column as the number of edges that it reaches.",
    Gives.BINNED, HANDLES, TRANSFORMS)  # fmt: skip
row("split_rows", "@table, parts, seed = 0", "Disjoint parts of a table, by a hash of what is protected.",
    Gives.SHARES, HANDLES, TRANSFORMS)  # fmt: skip
row("explode", "@table, **lists", "A row for each item of a list that is not none.", Gives.EXPLODED, ROWS, TRANSFORMS)
row("in_order", "@table: table, by, most: number, within = none, what = none",
    "A row for each moment of a person, with those before and after it.", Gives.MOMENTS, HANDLES,
    TRANSFORMS)  # fmt: skip
row("union", "*@parts, weights = none", "All rows of several tables, or the larger weights of records, or workloads.",
    Gives.UNION, HANDLES, TRANSFORMS)  # fmt: skip
row("weighted", "@table", "The rows of a table as records of weight 1.", Gives.RECORDS, HANDLES, TRANSFORMS)
row("shave", "@records: records, step: number, most: number = 100, *, name: text = \"place\"",
    "Each record as several of a weight `step`, with their places.", Gives.RECORDS, HANDLES, TRANSFORMS)  # fmt: skip
row("grouped", "@records: records, by, name: text = \"size\", most: number = 1000, *, "
    "reducer: text = \"count\", of = none",
    "The sizes of groups of records, or sums, minima and maxima, of their heaviest ones first.", Gives.RECORDS, HANDLES,
    TRANSFORMS)  # fmt: skip
row("joined", "@left: records, @right: records, on, most: number = 1048576",
    "Pairs of records that are equal in some columns, scaled by what such records weigh.", Gives.RECORDS, HANDLES,
    TRANSFORMS)  # fmt: skip
row("intersect", "@left: records, @right: records", "Of each record the smaller of two weights.", Gives.RECORDS,
    HANDLES, TRANSFORMS)  # fmt: skip
row("concat", "@left: records, @right: records", "Of each record the sum of two weights.", Gives.RECORDS, HANDLES,
    TRANSFORMS)  # fmt: skip
row("without", "@left: records, @right: records", "Of each record what it weighs more on the left.", Gives.RECORDS,
    HANDLES, TRANSFORMS)  # fmt: skip
row("limited", "@handle, amount", "The same table or cube under a smaller budget of its own.", Gives.LIMITED, HANDLES,
    TRANSFORMS)  # fmt: skip

# Measurements ----------------------------------------------------------------------------------------

row("laplace", "@value: measured, strategy = none, *, epsilon = none, via = none",
    "Noisy cells of a cube, answers of a strategy, or a noisy score.", reads=HANDLES, effect=MEASURES)  # fmt: skip
row("gaussian", "@value: measured, strategy = none, *, epsilon = none, via = none",
    "The same as `laplace` with Gaussian noise.", reads=HANDLES, effect=MEASURES)  # fmt: skip
row("exp_mech", "domain: options, @utilities: utilities, epsilon = none",
    "An element of `domain`, likely one of large utility.", Gives.ITEM, HANDLES, MEASURES)  # fmt: skip
row("noisy_max", "@utilities: utilities, epsilon = none", "The index of a score that is likely large.", reads=HANDLES,
    effect=MEASURES)  # fmt: skip
row("largest", "@utilities: utilities, count: number = 1, leads = false, *, epsilon = none",
    "The places of the largest scores, in order, and by how much each leads the next.", reads=HANDLES,
    effect=MEASURES)  # fmt: skip
row("margin_max", "@utilities: utilities, *, epsilon = none, delta = none",
    "The index of a score that is likely large, among as few as stand clear of the others.", reads=HANDLES,
    effect=MEASURES)  # fmt: skip
row("above_threshold", "@value, threshold: number, most: number = 1, *, tells: text = \"answer\", epsilon = none",
    "Pays for a watch, which is asked scores until so many were above a threshold.", reads=HANDLES,
    effect=MEASURES)  # fmt: skip
row("above", "value, watch: watch", "Asks a watch whether a table has so many rows, or a score is so large.",
    reads=HANDLES)  # fmt: skip
row("in_rho", "@data, f, *, epsilon = none, delta = none",
    "What a function of the data gives, its amounts counted in rho where they are of epsilon and delta.",
    reads=HANDLES, effect=MEASURES)  # fmt: skip
row("best_run", "@data, run: function, candidates: items, runs: number, "
    "*, good = none, law: text = \"geometric\", epsilon = none",
    "What a function gave in the best of many runs on one of several candidates each, for the price of three.",
    reads=HANDLES, effect=MEASURES)  # fmt: skip
row("refine", "@value, *, epsilon = none",
    "The answer of what is refinable, with the noise of all that was paid for it.", reads=HANDLES,
    effect=MEASURES)  # fmt: skip
row("least_cost_partition", "@cube, *, epsilon = none, **tuning",
    "A bucket for every cell, by a walk that splits uneven blocks.", reads=HANDLES, effect=MEASURES,
    function="measurements.answers:cost_partition")  # fmt: skip
row("count_partition", "@cube, *, epsilon = none, **tuning",
    "A bucket for every cell, by a walk that splits full blocks.", reads=HANDLES, effect=MEASURES,
    function="measurements.answers:count_partition")  # fmt: skip
row("prepaid", "@rows, *, steps = none, rate = none, epsilon = none, delta = none, via = none",
    "Pays at once for several measurements of vectors, or for sums of samples, or of batches.", reads=HANDLES,
    effect=MEASURES)  # fmt: skip
row("noisy_moments", "@rows, weights = \"one\", parameters = none, *, shares = [1, 1, 9], paid = none, part = 1, "
    "epsilon = none, delta = none, via = none",
    "Noisy counts, sums and second moments of vectors under weights.", reads=HANDLES, effect=MEASURES)  # fmt: skip
row("noisy_sum", "@rows, given, parameters = none, *, bound = 1, norm = \"l2\", paid = none, part = 1, "
    "epsilon = none, delta = none, via = none",
    "The noisy sum of a row kernel's vectors, clipped to a norm.", reads=HANDLES, effect=MEASURES)  # fmt: skip
row("loss_points", "start, terms", "Weights and rows at public points, to call a loss with.")
row("in_shape", "start, weights", "Numbers in lists and records as those in which a fit starts.")
row("loss_of", "values, start, terms", "The loss that a function gave at public points, and its gradient.")
row("noisy_samples", "@cubes, rate = none, steps = 200, *, epsilon = none, delta = none",
    "Noisy counts of fresh secret samples of the rows.", reads=HANDLES, effect=MEASURES)  # fmt: skip
row("perturbed_optimum", "@cubes, model, rows, ridge = none, *, epsilon = none, delta = none, via = none",
    "A graphical model's potentials with noise on each.", reads=HANDLES, effect=MEASURES)  # fmt: skip

# Scores ----------------------------------------------------------------------------------------------

row("size", "@value: rows", "How many rows a table, a cube or vectors have: a score.", Gives.SCORE, HANDLES, SCORES,
    function="scores.cells:size")  # fmt: skip
row("nonzero", "@value: cube", "How many cells hold rows: a score.", Gives.SCORE, HANDLES, SCORES,
    function="scores.cells:nonzero")  # fmt: skip
row("largest_cell", "@value: cube", "The largest cell: a score.", Gives.SCORE, HANDLES, SCORES,
    function="scores.cells:largest_cell")  # fmt: skip
row("largest_marginal", "@value: cube", "The largest cell of any marginal: a score.", Gives.SCORE, HANDLES, SCORES,
    function="scores.cells:largest_marginal")  # fmt: skip
row("l2", "@value: cube", "The Euclidean norm of the counts: a score.", Gives.SCORE, HANDLES, SCORES,
    function="scores.cells:l2")  # fmt: skip
row("l1_to_uniform", "@value: cube", "The rows that would have to move for even counts: a score.", Gives.SCORE, HANDLES,
    SCORES, function="scores.cells:l1_to_uniform")  # fmt: skip
row("total_variation", "@value: cube", "The sum of differences of neighbouring counts: a score.", Gives.SCORE, HANDLES,
    SCORES, function="scores.cells:total_variation")  # fmt: skip
row("misfit", "@cube, queries, estimate: numbers", "How far an estimate's answers are from the true ones: scores.",
    Gives.SCORE, HANDLES, SCORES, function="scores.cells:misfit")  # fmt: skip
row("distance", "@cube, expected, penalty = 0", "How far public counts are from the true ones: a score.",
    Gives.SCORE, HANDLES, SCORES, function="scores.cells:distance")  # fmt: skip
row("distances", "@table, names, expected, penalties",
    "How far public counts over some columns each are from the true ones: scores.", Gives.SCORE, HANDLES,
    SCORES)  # fmt: skip
row("closeness", "@cube, queries, answers: numbers", "How close released answers are to the true ones: a score, −rmse.",
    Gives.SCORE, HANDLES, SCORES, function="scores.cells:closeness")  # fmt: skip
row("coordinate_scores", "@rows, given, parameters = none, *, bound = 1",
    "The coordinates of a row kernel's sum and their negatives: scores.", Gives.SCORE, HANDLES, SCORES)  # fmt: skip
row("row_score", "@rows, given, parameters = none, *, bound = 1", "The sum of a row kernel's one number: a score.",
    Gives.SCORE, HANDLES, SCORES)  # fmt: skip
row("correct_count", "@table, model: classifier, label", "How many rows a public classifier gets right: a score.",
    Gives.SCORE, HANDLES, SCORES)  # fmt: skip
row("surprise_count", "@table, model: classifier, label",
    "How improbable a classifier calls the rows' classes: a score.",
    Gives.SCORE, HANDLES, SCORES)  # fmt: skip
row("ranked_counts", "@table: any, model, label, of", "Rows by how probable a classifier calls a class: scores.",
    Gives.SCORE, HANDLES, SCORES)  # fmt: skip
row("leaf_counts", "@table: any, tree, label", "How many rows of each class each leaf of a growing tree has: scores.",
    Gives.SCORE, HANDLES, SCORES)  # fmt: skip
row("subtrees", "@table: any, tree, label", "How many rows each tree of at most two tests gets right: scores.",
    Gives.SCORE, HANDLES, SCORES)  # fmt: skip
row("level_sizes", "@table: any, tree", "How many rows each leaf has that a growing tree may split: scores.",
    Gives.SCORE, HANDLES, SCORES)  # fmt: skip
row("entropy", "@table, by, label, *, most, prices", "How well a split tells classes apart, by entropy: a score.",
    Gives.SCORE, ROWS, SCORES)  # fmt: skip
row("gini", "@table, by, label, *, prices", "How well a split tells classes apart, by Gini's index: a score.",
    Gives.SCORE, ROWS, SCORES)  # fmt: skip
row("max_class", "@table, by, label, *, prices", "How many rows a split's majorities get right: a score.", Gives.SCORE,
    ROWS, SCORES)  # fmt: skip

row("sum_of", "@table, values", "The sum of an expression on rows: a score.", Gives.SCORE, ROWS, SCORES)
row("refinable", "@value", "A count, a score or the cells of a cube, to be asked for in steps.", Gives.SCORE,
    HANDLES, SCORES)  # fmt: skip

# Workloads, and public tables and cubes --------------------------------------------------------------

row("identity", "cube, count = 2000, seed = 0", "The workload of each cell.", Gives.WORKLOAD, HANDLES)
row("prefixes", "cube, count = 2000, seed = 0", "The workload of all ranges from the start.", Gives.WORKLOAD, HANDLES)
row("ranges", "cube, count = 2000, seed = 0", "A workload of random ranges.", Gives.WORKLOAD, HANDLES)
row("rectangles", "cube, count = 2000, seed = 0", "A workload of random rectangles.", Gives.WORKLOAD, HANDLES)
row("marginals", "cube, over: dimensions = 1",
    "The workload of all marginals over so many dimensions, or of those named.", Gives.WORKLOAD, HANDLES)  # fmt: skip
row("predicates", "cube, *conditions", "The workload of conditions on a cube's dimensions.", Gives.WORKLOAD, ROWS)
row("answer", "queries, cells: list", "The answers of a workload on released cells.", reads=HANDLES)
row("exact", "queries, cube", "The answers of a workload on public counts.", reads=HANDLES)
row("same_cells", "cube, queries", "Refuses a workload that was made from another cube.", reads=HANDLES)
row("cells", "cube", "The counts of a public cube, or the rows of public vectors.", reads=HANDLES)
row("accuracy", "table, model: classifier, label", "The share of a public table's rows whose class a classifier names.",
    reads=HANDLES)  # fmt: skip
row("simulated_tables", "count, seed = 1, *, rows = none, wide = false",
    "Public synthetic tables to train choices on.", reads=HANDLES)  # fmt: skip
row("prediction_error", "table, model: regression",
    "The root mean square of what a regression is off by, over a public table's rows.", reads=HANDLES)  # fmt: skip
row("simulated_regressions", "count, seed = 1, *, rows = none",
    "Public synthetic tables with a number to predict.", reads=HANDLES)  # fmt: skip
row("simulated_studies", "count, seed = 1, *, rows = none",
    "Public synthetic studies of a treatment, with its effect.", reads=HANDLES)  # fmt: skip

# Numbers ---------------------------------------------------------------------------------------------


def _with_kinds(operation: Function) -> str:
    """The signature of a function of rows, with what each parameter takes."""
    if operation.name == "number" or operation.name in {spelled for spelled, *_ in OVERLOADS}:  # of several kinds
        return operation.signature
    names, numeric = operation.signature.split(", "), set(operation.kinds) == {"number"}
    kinds = [f": {kind}" if kind in ("number", "text") else "" for kind in operation.kinds]
    kinds += [": number" if numeric else ""] * len(names)
    kinds[:1] = [": each"] if numeric else kinds[:1]
    return ", ".join(
        name + kind if " = " not in name else name.replace(" = ", f"{kind} = ", 1)
        for name, kind in zip(names, kinds, strict=False)
    )


for _operation in ROW_FUNCTIONS.values():
    if _operation.name not in BUILTINS:  # `text` is a domain as well
        numeric = {_operation.gives, *_operation.kinds} == {"number"}
        row(_operation.name, _with_kinds(_operation), _operation.about, Gives.NUMBER if numeric else Gives.RELEASED)
row("sum", "values: numbers", "The sum of numbers.", Gives.NUMBER)
row("avg", "values: numbers", "The mean of numbers.")
row("var", "values: numbers", "The sample variance of numbers.")
row("stddev", "values: numbers", "The sample standard deviation of numbers.")
row("median", "values: numbers", "The median of numbers.")
row("quantile", "values: numbers, q: number", "The quantile of numbers, interpolated.")
row("idxmax", "value: numbers", "The place of the largest number, the first of equals.")
row("idxmin", "value: numbers", "The place of the smallest number, the first of equals.")
row("rmse", "a: numbers, b: numbers", "The root mean square error between two vectors.")
row("scaled_error", "answers: numbers, truth: numbers, total: number",
    "The L2 error by the number of queries and the total, as DPBench has it.")  # fmt: skip
row("accounting", "*, epsilon = none, sigma = none, times = 1, delta = 1e-06",
    "What equal measurements lose together, under each way of adding up.")  # fmt: skip

# Containers and texts --------------------------------------------------------------------------------

row("len", "value: sized", "How many items, letters, queries or listed values there are.", Gives.LENGTH, CONTAINERS)
row("sample", "items, count, seed = 0", "So many items of a list, or rows of a public table, by a public hash.",
    reads=CONTAINERS)  # fmt: skip
row("append", "items: list, item", "The list with one more item.", Gives.APPENDED, HANDLES)
row("list", "value: items", "The items as a list.", Gives.ITEMS, HANDLES)
row("set", "value: items", "The items as a set.", Gives.DISTINCT)
row("zip", "*columns: items", "Lists of one item of each.", Gives.ZIPPED, HANDLES)
row("enumerate", "value: items", "Pairs of a place and an item.", Gives.NUMBERED, HANDLES)
row("reversed", "value: items", "The items, the last one first.", Gives.REVERSED, HANDLES)
row("sorted", "values: items, by = none", "In order, by a function or a field's name.", Gives.SORTED, CONTAINERS)
row("keys", "value: record", "The names of a record's fields.")
row("values", "value: items", "The values of a record's fields, or a list's items.", Gives.FIELDS, HANDLES)
row("record", "pairs: pairs", "A record of pairs of a name and a value.", Gives.RECORD, HANDLES)
row("str", "value", "The value as a text.", reads=CONTAINERS)

# For people ------------------------------------------------------------------------------------------

row("print", "*values", "Shows public values.", reads=PRINTS)
row("plot", "title, x = none, y = none, *, kind = none, x_label = \"\", y_label = \"\", low = none, high = none, "
    "log_x = false, log_y = false", "Draws public numbers.", reads=DRAWS)  # fmt: skip
row("explain", "value: choice", "What a ChoiceMaker has learned, as a text.", reads=HANDLES)
row("error", "value", "The 95 % half-width of measured numbers, and of what is calculated from them.", reads=HANDLES)
row("standard_error", "value", "The standard error of measured numbers, and of what is calculated from them.")
row("band", "value, level = 0.95", "The bounds between which each true value lies with a probability.")
row("with_left_out", "value, lost: number, low: number = 0, high: number = 1",
    "Counts or sums within `up to k rows`, with errors that cover what is left out.", reads=HANDLES)  # fmt: skip
row("bootstrap", "cells: list, option, queries, *, epsilon = none, rho = none, runs = 100, seed = 0",
    "The error of an option, by running it on released cells.", reads=HANDLES)  # fmt: skip
row("spent", "value: source", "What a private source has lost.", Gives.BALANCE, HANDLES)
row("left", "value: source", "What a private source has left.", Gives.BALANCE, HANDLES)
row("as_epsilon", "share: number = 1", "A share of what is left of the allotment, as an ε; in ρ, a pure mechanism's.")
row("has_delta", "", "Whether the amount that the allotment has is an ε with a δ.")

# Choices ---------------------------------------------------------------------------------------------

row("MkChoiceMaker", "ops, feats, dbs, model, score", "A ChoiceMaker of options, features, databases, model, score.",
    Gives.CHOICE, HANDLES)  # fmt: skip
row("MkOption", "function", "A function as an Option.", Gives.OPTION, HANDLES)
row("MkScore", "function", "A function as a Utility.", Gives.UTILITY, HANDLES)
row("MkFeatures", "functions", "Functions as Features.", Gives.FEATURES, HANDLES)
row("MkModel", "function", "A function of the training table as a model.", reads=HANDLES)
row("tree", "depth = 3, min_leaf = none, exchange = false", "The model of one regression tree for each option.")
row("regret_tree", "depth = 3, min_leaf = none, exchange = false", "The model of one tree that is split by regret.")
row(
    "forest",
    'depth = 4, min_leaf = none, trees = 15, exchange = false, by = "regret"',
    "The model of many trees for all options; `by` says what their splits lower: regret, or losses.",
)
row("advisor", "choice: choice, call: function, *, version = 1, epsilons = none, seeds = \"\", over = none, margin = 0",
    "A choice that ships trained, called like a function.", Gives.ADVISOR, HANDLES)  # fmt: skip
row("retrained", "choice: choice, on", "The same choice, to be trained on other public data.", Gives.ADVISOR, HANDLES)
row("improved", "choice: choice, *, epsilon = none",
    "The same choice, its Options valued by formulas from its training runs.",
    Gives.ADVISOR, HANDLES)  # fmt: skip
row("whole", "algorithm, data", "Whole runs of an algorithm, to train the choices inside it on.", reads=HANDLES)

SOURCES = tuple(name for name, entry in BUILTINS.items() if entry.reads is SOURCE)
"""The functions that open a source, in a declaration or as a public one."""

REMOTE = ("postgres", "spark")
"""Those whose data lie on a server (`backends/remote`)."""

OPENERS = tuple(name for name, entry in BUILTINS.items() if entry.effect is DECLARES)
"""Those, and the functions that read a file as they are called."""

DOMAINS = frozenset(name for name, entry in BUILTINS.items() if entry.gives is Gives.DOMAIN)
"""The words of a description that list no values."""

SLOW = frozenset({
    "simulated_tables", "simulated_regressions", "simulated_studies", "accounting", "whole",
})  # fmt: skip
"""Functions that may take long, and are not called before a run (`check.dry`)."""

EVERYWHERE = tuple(name for name, entry in BUILTINS.items() if not entry.module)
"""The names that every program knows without `use`."""


def brought(path: tuple[str, ...]) -> tuple[str, ...]:
    """The built-ins that `use` of a module brings, beside what the module defines and what those it uses bring."""
    return MODULES.get(".".join(path), ())
