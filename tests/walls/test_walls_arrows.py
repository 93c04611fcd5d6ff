"""Imports run one way: `ORDER`, of which each part may use those before it.

`records`, `resources`, `noise_laws`, `error_laws`, `formulas`, `integers` and `lazy` stand beside `source`, `doubles`
beside `diagnostics`; `simulate` imports nothing of ours, and `kernels` the row programs that they build, which are
data, and what stands beside `source`.
"""

from __future__ import annotations

import pytest
from package_code import HERE, Import, files, imports, shown

ORDER = (
    "version", "lazy", "source", "records", "resources", "noise_laws", "error_laws", "formulas",
    "integers", "diagnostics", "doubles", "events", "syntax", "language", "accounting", "plan", "engine",
    "privacy", "speed", "readers", "backends", "optional", "run", "choice", "trace", "check",
    "documentation", "mistakes", "tools", "train", "serve",
)  # fmt: skip
ALONE = ("kernels", "simulate")
ROW_PROGRAMS = (
    "jostle.privacy.rows.",
    "jostle.noise_laws",
    "jostle.error_laws",
    "jostle.formulas",
    "jostle.integers",
    "jostle.lazy",
)


def part_of(name: str) -> str:
    """`jostle.privacy.kernel.kernel` is of `privacy`; `jostle` is the package itself, its face to Python."""
    parts = name.split(".")
    known = (*ORDER, *ALONE)
    return parts[1] if len(parts) > 1 and parts[1] in known else "jostle"


STARTS = "jostle/tools/commands.py", "jostle.serve.command.command"
"""The command line loads every command when it is asked for, and one of them has a room above its own."""


def allowed(importer: str, imported: Import) -> bool:
    target = part_of(imported.name)
    if (imported.place.partition(":")[0], imported.name) == STARTS:
        return True
    if target == "jostle":
        return False  # the package's own face, which loads the parts
    if importer in ALONE:
        return target == importer or (importer == "kernels" and imported.name.startswith(ROW_PROGRAMS))
    if target in ALONE:
        return ORDER.index(importer) >= ORDER.index("privacy")
    return ORDER.index(target) <= ORDER.index(importer)


def ours(part: str) -> list[Import]:
    name = part if (files()[0].parents[0] / part).is_dir() else f"{part}.py"
    return [i for path in files(name) for i in imports(path) if i.name.split(".")[0] == "jostle"]


@pytest.mark.parametrize("part", [*ORDER, *ALONE])
def test_no_arrow_runs_back(part: str) -> None:
    wrong = [f"{i.place}: {i.name}" for i in ours(part) if not allowed(part, i)]
    assert wrong == []


def test_every_file_belongs_to_a_part() -> None:
    tops = {shown(path).split("/")[1].removesuffix(".py") for path in files()}
    assert tops <= {*ORDER, *ALONE, "__init__", "__main__"}


def test_no_import_is_hidden() -> None:
    hidden = [i.place.partition(":")[0] for path in files() for i in imports(path) if i.name == "?"]
    assert hidden == ["jostle/serve/worker.py"]  # a process of which runs are forked loads what a run had loaded


def test_the_reader_sees_imports_inside_functions() -> None:
    """The walls stand on `imports`: it must see more than the top of a file."""
    session = [i.name for i in imports(files("tools/session.py")[0])]
    assert "jostle.privacy.kernel.kernel.Kernel" in session


def test_it_would_see_an_arrow_that_runs_back() -> None:
    assert not allowed("privacy", Import("jostle.run.values.Record", "", False))
    assert not allowed("kernels", Import("jostle.source", "", False))
    assert not allowed("engine", Import("jostle.kernels.histograms.estimates", "", False))
    assert allowed("run", Import("jostle.kernels", "", False))


ROOMS = (
    ("rows", "mechanisms", "ledger"), ("kernel",), ("reading",), ("transformations", "scores"), ("measurements",),
)  # fmt: skip


def test_the_rooms_of_privacy_stand_one_above_the_other() -> None:
    """A room imports those of lower floors only."""
    floor = {room: i for i, rooms in enumerate(ROOMS) for room in rooms}
    inside = [(i, shown(path).split("/")[2]) for path in files("privacy") for i in imports(path)]
    ours = [(i, room, i.name.split(".")[2]) for i, room in inside if i.name.startswith("jostle.privacy.")]
    assert {room for _, room in inside} == set(floor)
    assert [i.place for i, room, below in ours if room != below and floor[below] >= floor[room]] == []


def test_privacy_is_small() -> None:
    assert HERE.rooms() <= 8 and HERE.floors() <= 6  # docs/decisions/rings.md


def test_no_files_import_one_another_in_a_circle() -> None:
    assert HERE.circles() == []
