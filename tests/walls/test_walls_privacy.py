"""One door to private data: only `privacy` holds rows or exact private aggregates, and only it draws noise.

What others may do is named here, one by one, with the reason.
"""

from __future__ import annotations

import ast
from pathlib import Path

from package_code import PACKAGE, ROOT, files, imports, nodes, shown, tree

from jostle.events import Stream
from jostle.privacy.reading.public_data import PublicData
from jostle.privacy.reading.vault import Reader, kernel_over
from jostle.readers.duckdb import LocalDuckDb

RANDOM = ("random", "secrets", "uuid", "opendp", "numpy.random", "scipy.stats", "hashlib.shake_256")
MAY_DRAW = {
    "jostle/privacy/mechanisms/noise.py",  # the noise of every private release, and the exact sampler for vectors of it
    "jostle/serve/store.py",  # secrets of sessions, tokens and links; no noise is made of them
    "jostle/privacy/ledger/store.py",  # the key of a registered dataset; no noise is made of it
    "jostle/simulate.py",  # seeded, on public arrays
    "jostle/kernels/simulated_tables.py",  # seeded: public synthetic tables to train on
    "jostle/kernels/simulated_points.py",  # seeded: public synthetic histograms and points to train on
    "jostle/kernels/rowprograms/losses.py",  # seeded: where fits start, and public points by which a loss is known
    "jostle/kernels/statistics/effects.py",  # seeded: public synthetic studies to train on
    "jostle/kernels/statistics/moments.py",  # seeded: the law of a statistic of released means, if groups were alike
    "jostle/kernels/mixtures/gaussians.py",  # seeded: where fits of mixtures start, and samples of released ones
    "jostle/kernels/graphical/ising.py",  # seeded: rows of public Ising models, and the chains that fit large ones
    "jostle/kernels/graphical/model.py",  # seeded: rows of public models
    "jostle/kernels/graphical/synthetic.py",  # seeded: synthetic models, and numbers within their bins
    "jostle/kernels/graphs.py",  # seeded: walks over graphs that fit released numbers
    "jostle/kernels/workloads/boxes.py",  # seeded: which ranges a random workload asks
}
# Attributes by which a kernel, or what answers about public data, would give away what has private rows.
INSIDE = {"_reader", "_vault", "vault", "kernel.engine", "kernel._engine", "data._engine", "public._engine"}


def outside() -> list[Path]:
    """The files that may not hold anything private."""
    parts = ("privacy/", "engine/", "readers/", "speed/", "backends/", "optional.py")
    inside = tuple(f"jostle/{part}" for part in parts)
    return [path for path in files() if not shown(path).startswith(inside)]


def chain(node: ast.AST) -> list[str]:
    """`a.b.c` as its names; empty where it is something else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [*([node.id] if isinstance(node, ast.Name) else [""]), *reversed(names)]


def test_nothing_else_draws_random_numbers() -> None:
    others = [path for path in files() if shown(path) not in MAY_DRAW]
    within = tuple(f"{name}." for name in RANDOM)
    assert [i.place for p in others for i in imports(p) if i.name in RANDOM or i.name.startswith(within)] == []
    used = [(f"{shown(p)}:{n.lineno}", chain(n)) for p in others for n in nodes(p) if isinstance(n, ast.Attribute)]
    drawn = (["np", "random"], ["numpy", "random"], ["os", "urandom"])
    assert [(place, names) for place, names in used if names[-2:] in drawn] == []


def test_those_that_may_draw_do() -> None:
    """A name that stays on the list without need would let the next thing in."""
    for name in MAY_DRAW:
        text = (PACKAGE.parent / name).read_text(encoding="utf-8")
        assert any(drawn in text for drawn in ("default_rng", "opendp", "urandom"))


def asked(path: Path) -> set[str]:
    """Attributes by which a file would reach the inside of a kernel."""
    reached: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Attribute):
            names = [name.removeprefix("_") if name == "_kernel" else name for name in chain(node)[-2:]]
            reached |= {name for name in (names[-1], ".".join(names)) if name in INSIDE}
    return reached


def test_nothing_else_asks_for_exact_numbers() -> None:
    """Outside `privacy` and the engines nobody reaches what answers about private rows: a session has a face to
    public data, which refuses private handles."""
    beyond = {shown(path): asked(path) for path in outside()}
    assert {path: names for path, names in beyond.items() if names} == {}


def test_a_kernel_gives_no_engine_and_no_vault() -> None:
    """What a program's interpreter can reach of a kernel without an underscore answers about public data."""
    kernel, data = kernel_over(LocalDuckDb(), Stream())
    private = (Reader, LocalDuckDb)
    for owner in (kernel, data, kernel.register):
        assert [name for name, value in vars(owner).items() if name[0] != "_" and isinstance(value, private)] == []
    public = {name for name in dir(PublicData) if name[0] != "_"}
    of_handles = {"cells", "exact", "records", "remembered", "rows", "size", "stamps", "vectors"}
    of_sizes = {"group_sizes", "rows_of_scan"}
    others = {"file", "forks", "guess", "keep", "objects", "open", "read_publicly", "remote", "rest"}
    assert public == of_handles | of_sizes | others


def test_nothing_else_imports_the_inside() -> None:
    """The vault, the noise, and the engine itself are made in one place: the session."""
    inside = (
        "jostle.privacy.reading.vault", "jostle.privacy.mechanisms.noise", "jostle.readers.duckdb",
        "jostle.engine.duckdb.engine.DuckDb", "jostle.speed.",
    )  # fmt: skip
    found = [i for path in outside() for i in imports(path) if i.name.startswith(inside) and not i.typing_only]
    session = ("jostle/tools/session.py:", "jostle/check/dry/stand_ins.py:")  # the latter over no engine at all
    made = ("jostle.privacy.reading.vault.kernel_over", "jostle.privacy.reading.vault.assembled", "jostle.speed.fast")
    assert [i for i in found if not (i.place.startswith(session) and i.name.startswith(made))] == []


def test_kernels_and_the_simulator_see_no_handles() -> None:
    for path in files("kernels", "simulate.py"):
        ours = [i for i in imports(path) if i.name.startswith("jostle") and "kernels" not in i.name]
        ground = (
            "jostle.privacy.rows.",
            "jostle.noise_laws",
            "jostle.error_laws",
            "jostle.formulas",
            "jostle.integers",
            "jostle.lazy",
        )
        assert [i.place for i in ours if not i.name.startswith(ground)] == []


def test_row_programs_are_data() -> None:
    """What kernels may import of privacy holds no handle, no noise and no budget, and reads nothing."""
    for path in files("privacy/rows"):
        ours = [i.name for i in imports(path) if i.name.startswith("jostle")]
        assert [
            name for name in ours if not name.startswith(("jostle.privacy.rows.", "jostle.integers", "jostle.lazy"))
        ] == []


def test_privacy_rests_on_no_kernel() -> None:
    """Numbers of released things are calculated elsewhere: nothing here runs code of `kernels`."""
    rooms = files("privacy", "engine", "readers", "speed", "backends")
    assert [i.place for p in rooms for i in imports(p) if "kernels" in i.name] == []


# Measurements that rest on more than `privacy` and `engine`, and on what. `docs/privacy/guarantee.md` names them.
OPTIONAL = {"jostle/optional.py": {"jostle.kernels.graphical.domain"}}


def test_measurements_stand_in_privacy() -> None:
    """A measurement reads exact numbers: who defines one is trusted."""
    defining = {
        shown(path) for path in files() for n in nodes(path)
        if isinstance(n, ast.ClassDef) and any("Measurement" in ast.unparse(base) for base in n.bases)
    }  # fmt: skip
    assert {path for path in defining if not path.startswith("jostle/privacy/")} == set(OPTIONAL)


def test_what_is_optional_is_loaded_by_those_who_ask() -> None:
    """It is imported inside the function that needs it only, and rests on the files that are named here."""
    for path in files():
        top = [n for n in tree(path).body if isinstance(n, ast.ImportFrom) and "jostle.optional" in (n.module or "")]
        assert top == []
    page = (ROOT / "docs" / "privacy" / "guarantee.md").read_text(encoding="utf-8")
    for name, kernels in OPTIONAL.items():
        loaded = {i.name.rpartition(".")[0] for i in imports(ROOT / name) if ".kernels." in i.name}
        assert loaded == kernels and name in page


PLAIN_MEANING = {
    "jostle/run/positions.py",  # of the values that a description lists, and of positions in a cube
    "jostle/run/operators.py",  # a date constant as a time
    "jostle/plan/facts.py",  # of the values that a description lists
    "jostle/run/library.py",  # of values of a program
}
ON_POSITIONS = {"jostle/run/jointworkload.py", "jostle/run/workloads.py"}


def test_no_private_row_meets_a_function_of_python() -> None:
    """Expressions over rows have one evaluator, the engine's: what an operation is in plain Python runs on public
    values alone, and what evaluates these is loaded where there are such, not by what holds records."""
    evaluating = {
        i.place.partition(":")[0] for p in files() for i in imports(p) if i.name == "jostle.run.positions.evaluate"
    }
    assert evaluating == ON_POSITIONS
    tables = {"OPERATIONS", "TEXTS", "MOMENTS", "ABSENCE", "NUMBERS", "ROW_FUNCTIONS", "operation", "_operation", "op"}
    taken = [
        (shown(p), n.value) for p in files() for n in nodes(p) if isinstance(n, ast.Attribute) and n.attr == "value"
    ]
    owners = [(path, owner.value if isinstance(owner, ast.Subscript) else owner) for path, owner in taken]
    meant = {path for path, owner in owners if chain(owner)[-1] in tables}
    assert meant == PLAIN_MEANING


def called(path: Path, name: str) -> list[int]:
    """Where a method of this name is called, by line."""
    calls = [n for n in nodes(path) if isinstance(n, ast.Call)]
    return [n.lineno for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == name]


def test_there_is_one_door() -> None:
    """One place charges, one takes from a prepaid amount, one reads, one releases and one tells of it."""
    kernel = files("privacy/kernel/kernel.py")
    for name in ("_charge", "_withdraw", "_pay"):
        assert {shown(p): len(called(p, name)) for p in files() if called(p, name)} == {shown(kernel[0]): 1}, name
    told = [
        (shown(p), n.lineno) for p in files() for n in nodes(p)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "emit"
        and n.args and isinstance(n.args[0], ast.Constant) and n.args[0].value == "measure"
    ]  # fmt: skip
    assert [place for place, _ in told] == [shown(kernel[0])]


def test_the_reader_stays_inside_the_door() -> None:
    """It is held by the kernel, constructed for it in one place, and named elsewhere as a parameter only."""
    for path in files():
        attributes = [n for n in nodes(path) if isinstance(n, ast.Attribute) and n.attr == "_reader"]
        assert not attributes or shown(path) == "jostle/privacy/kernel/kernel.py"
        made = [n for n in nodes(path) if isinstance(n, ast.Call) and chain(n.func)[-1:] == ["Reader"]]
        assert not made or shown(path) == "jostle/privacy/reading/vault.py"


HANDLES = {"Table", "Cube", "Vectors", "Score", "Scores", "ColumnHandle", "Exposure"}


def test_nothing_else_mints_a_handle() -> None:
    """Handles and exposures are made in `privacy` only; elsewhere they are looked at."""
    minted: list[str] = []
    for path in outside():
        ours = {i.name.split(".")[-1] for i in imports(path) if i.name.startswith("jostle.privacy.")} & HANDLES
        calls = [n for n in nodes(path) if isinstance(n, ast.Call) and not isinstance(n.func, ast.Attribute)]
        minted += [f"{shown(path)}:{n.lineno}" for n in calls if chain(n.func)[-1] in ours]
    assert minted == []
