"""Small private tables, each beside its neighbours: a row more, first, in the middle or last; other orders and batches.

A world is one program's declarations over one table, in a session for every variant of the table. Noise is replaced by
a recorder, which answers without looking at what it is given and keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from parameter_values import Values
from recorded_noise import Draw

from jostle.diagnostics import Refusal
from jostle.privacy.kernel import exposures
from jostle.privacy.mechanisms.noise import SecureNoise
from jostle.run.faults import deep
from jostle.run.interpreter import Modules
from jostle.run.scope import Scope
from jostle.source import Source
from jostle.syntax import parse
from jostle.tools.session import Session

COLUMNS = ("x", "y", "z", "k", "c", "g", "id")
SCHEMA = '{x: -1.0..1.0, y: -1.0..1.0, z: 0..3, k: 0..7, c: {"a", "b"}, g: {"u", "v", "w"}, id: text}'

UNITS: tuple[tuple[str, str, str, float], ...] = (
    ("rows", "epsilon 1000000000", "epsilon 1", 8), ("rows", "rho 1000000000", "rho 1", 3),
    ("rows, public size", "epsilon 1000000000", "epsilon 1", 1), ("rows, public size", "rho 1000000000", "rho 1", 1),
    ("id up to 2 rows", "epsilon 1000000000", "epsilon 1", 1), ("id up to 2 rows", "rho 1000000000", "rho 1", 1),
    ("id up to 2 rows weighted", "epsilon 1000000000", "epsilon 1", 1),
    ("rows", "epsilon 1000000000, delta 0.5", "epsilon 1 delta 0.000001", 0.4),
)  # fmt: skip
"""What is protected, the budget, the amount of a measurement, and how often a world is of this kind."""

VECTORS = {
    "v1": (1, "vectors(t, x)"), "v2": (2, "vectors(t, x, y, radius = 1)"), "v3": (3, "vectors(t, x, y, z)"),
    "vs": (2, 'vectors(t, x, y, norm = "sup")'), "vc": (3, 'vectors(t, z, k, x, norm = "sup")'),
    "vb": (2, 'vectors(t, z, k, norm = "sup")'), "vr": (2, "vectors(t, x, y, radius = 0.5, scaled = false)"),
    "vw": (28, f'vectors(t, {", ".join(["x"] * 28)}, norm = "sup")'),
}  # fmt: skip
CUBES = {
    "h1": ((8,), "histogram(t, k)"), "h2": ((4, 8), "histogram(t, z, k)"), "hc": ((2,), "histogram(t, c)"),
    "hl": ((32,), "histogram(t, line = k * 4 + z)"), "h3": ((2, 3, 4), "histogram(t, c, g, z)"),
    "hn": ((3,), "histogram(t, k / 3)"),
}  # fmt: skip

Row = tuple[Any, ...]


class Recorder:
    """Noise whose answers depend on how often it was asked, and on nothing else."""

    def __init__(self) -> None:
        self.draws: list[Draw] = []
        self.real = False  # noise as it is, to see whether it can be drawn

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        return self._answer("laplace", values, scale)

    def gaussian(self, values: np.ndarray, sigma: float) -> np.ndarray:
        return self._answer("gaussian", values, sigma)

    def cube(self, values: np.ndarray, scale: float) -> np.ndarray:
        return self._answer("cube", values, scale)

    def noisy_max(self, scores: np.ndarray, scale: float) -> int:
        if self.real:
            return SecureNoise().noisy_max(scores, scale)
        self._answer("selection", scores, scale)
        return 7 * len(self.draws) % int(np.size(scores))

    def gumbel_max(self, scores: np.ndarray, scale: float) -> int:
        if self.real:
            return SecureNoise().gumbel_max(scores, scale)
        self._answer("gumbel", scores, scale)
        return 7 * len(self.draws) % int(np.size(scores))

    def sample(self, size: int, kept: int) -> np.ndarray:
        """All of them: then what a row moves is the most that it can."""
        return np.ones(size, dtype=bool)

    def _answer(self, kind: str, values: np.ndarray, scale: float) -> np.ndarray:
        if not scale > 0:
            raise AssertionError(f"noise of scale {scale}")
        if self.real:
            return getattr(SecureNoise(), kind)(values, scale)
        self.draws.append(Draw(kind, np.array(values), scale))
        return ((np.arange(np.size(values), dtype=np.int64) + len(self.draws)) % 4).reshape(np.shape(values))


@dataclass
class World:
    """`sessions`: by name of the variant. `near`: pairs of variants that are neighbours; `equal`: of equal tables."""

    unit: str
    amount: str
    sessions: dict[str, Session]
    near: tuple[tuple[str, str], ...]
    names: frozenset[str]
    rows: dict[str, list[Row]] = field(repr=False)
    equal: tuple[tuple[str, str], ...] = (("without", "mixed"),)

    @property
    def vectors(self) -> list[str]:
        return [name for name in VECTORS if name in self.names]

    @property
    def cubes(self) -> list[str]:
        return [name for name in CUBES if name in self.names]


def world(seed: int, noise: Recorder) -> World:
    """A world from a seed. Its sessions draw from `noise`."""
    random = Values(f"world {seed}")
    unit, budget, amount, _ = random.choices(UNITS, [u[3] for u in UNITS])[0]
    rows = _rows(random)
    more, other = _row(random, "new"), _row(random, "new")
    by_person = unit.startswith("id")
    added = [more, *([other, more] if by_person else [])]  # of a person several rows, of which two count
    half = len(rows) // 2
    tables = {
        "without": rows, "first": [*added, *rows], "last": [*rows, *added],
        "middle": [*rows[:half], *added, *rows[half:]], "mixed": random.sample(rows, len(rows)),
    }  # fmt: skip
    near = tuple(("without", name) for name in ("first", "middle", "last"))
    if "public size" in unit:
        tables |= {"another": [*rows[:half], other, *rows[half:]], "far": [other, *rows]}
        near = (("middle", "another"), ("first", "far"))
        tables["mixed"] = random.sample(tables["middle"], len(rows) + 1)
    program = f'private t = bound("rows") described by {SCHEMA} protecting {unit} budget {budget}\n'
    sessions, names = {}, frozenset[str]()
    for name, table in tables.items():
        sessions[name], names = _session(program, table)
    first = "middle" if "public size" in unit else "without"
    return World(unit, amount, sessions, near, names, tables, ((first, "mixed"),))


@lru_cache(maxsize=1)
def _modules() -> Modules:
    """Of the standard library; all sessions share them, since they hold no data."""
    return Modules()


def _session(program: str, rows: list[Row]) -> tuple[Session, frozenset[str]]:
    session = Session()
    session._modules = _modules()
    columns = zip(*rows, strict=True) if rows else [[] for _ in COLUMNS]
    session.bind("rows", {
        name: np.array(cells, dtype=object if name in ("c", "g", "id") else float)
        for name, cells in zip(COLUMNS, columns, strict=True)
    })  # fmt: skip
    session.execute(Source("world.jst", "use classifiers\nuse trees\nuse graphical\n" + program))
    names = set()
    for name, (_, text) in (VECTORS | CUBES).items():
        try:
            session.execute(Source("world.jst", f"{name} = {text}\n"))
            names.add(name)
        except Refusal:
            continue  # vectors of a weighted source
    return session, frozenset(names)


def _rows(random: Values) -> list[Row]:
    way = random.random()
    if way < 0.08:
        return []
    if way < 0.2:
        return [_row(random, "p0")] * random.choice((1, 2, 3, 7, 40))
    if way < 0.3:
        pool = [_row(random, f"p{i}") for i in range(2)]
        return [random.choice(pool) for _ in range(random.randint(2, 12))]
    return [_row(random, f"p{random.randrange(6)}") for _ in range(random.randint(1, 10))]


EDGES = (1.0, -1.0, 0.0, -0.0, 0.5, 0.25, 16383 / 16384, math.nan, math.inf, -5.0, 1e300, 5e-324, 1 - 2**-53)


def _row(random: Values, owner: str) -> Row:
    def real() -> float:
        return random.choice(EDGES) if random.chance(0.4) else random.uniform(-1, 1)

    def whole(most: int) -> float:
        return random.choice((-1.0, 99.0, 1.5, math.nan)) if random.chance(0.06) else random.whole(0, most)

    def listed(*values: str) -> Any:
        return random.choice((None, "", "other")) if random.chance(0.06) else random.choice(values)

    return real(), real(), whole(3), whole(7), listed("a", "b"), listed("u", "v", "w"), owner


# Looking ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def tree_of(text: str) -> Any:
    return parse(Source("call.jst", text + "\n"), interactive=True)


def evaluate(session: Session, text: str, values: dict[str, Any]) -> Any:
    """The value of one expression whose names are bound to `values`; nothing is checked beforehand."""
    tree, scope = tree_of(text), Scope(session._scope)
    scope.names.update(values)
    result = None
    with deep():
        for statement in tree.body:
            if hasattr(statement, "value") and type(statement).__name__ == "Bare":
                result = session._interp.eval(statement.value, scope)
            else:
                session._interp.statement(statement, scope)
    return result


BATCHES = (("jostle.privacy.rows.factored", "BATCH"), ("jostle.privacy.rows.folds", "BLOCK"),
           ("jostle.privacy.rows.factored", "CHUNK"), ("jostle.privacy.rows.factored", "FOLD"))  # fmt: skip


@contextmanager
def batches_of(rows: int) -> Iterator[None]:
    """Batches of so many rows, wherever there are batches."""
    import importlib

    before = []
    for module, name in BATCHES:
        holder = importlib.import_module(module)
        before.append((holder, name, getattr(holder, name)))
        setattr(holder, name, rows)
    try:
        yield
    finally:
        for holder, name, value in before:
            setattr(holder, name, value)


@contextmanager
def recorded() -> Iterator[Recorder]:
    """Everything drawn is recorded, and what fails after a charge is raised as it is."""
    from jostle.privacy.kernel.exposures import Guarded

    noise = Recorder()
    before, hidden = exposures.SecureNoise, Guarded.__exit__
    exposures.SecureNoise = lambda: noise  # type: ignore[assignment, misc]
    Guarded.__exit__ = lambda *_: None  # type: ignore[assignment]
    try:
        yield noise
    finally:
        exposures.SecureNoise, Guarded.__exit__ = before, hidden  # type: ignore[misc, method-assign]
