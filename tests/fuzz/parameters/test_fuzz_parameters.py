"""Public parameters, some hundred sets of them, and faults that the fuzzer must find."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from parameter_calls import FAMILIES
from parameter_oracle import look
from parameter_runs import cores, runs
from parameter_specimens import ALONE, SPECIMENS
from parameter_values import Values
from parameter_worlds import recorded, world

pytestmark = pytest.mark.filterwarnings("ignore")
SETS = 400
CONVICTED = 2000  # sets within which each specimen must be convicted


def test_parameters_tell_of_no_row_and_move_no_more_than_is_paid() -> None:
    """Over all families, on several worlds."""
    faults = [(one.seed, one.text, one.faults) for one in runs(0, SETS, worlds=200) if one.faults]
    assert not faults


def test_every_family_measures() -> None:
    """Parameters that fit are measured, so that hostile ones are not all refused for another reason."""
    with recorded() as noise:
        place = next(w for seed in range(9) if (w := world(seed, noise)).amount == "epsilon 1" and w.unit == "rows")
        for name, (_, family) in FAMILIES.items():
            if name in ("samples", "optima"):
                continue  # in another unit
            drawn = 0
            for seed in range(12):
                values = Values(seed)
                values.strange = 0.0
                drawn += bool(look(place.sessions["without"], noise, family(values, place)).draws)
            assert drawn >= 3, name


def test_exact_parts_alone() -> None:
    assert not [(one.seed, one.family, one.faults) for one in cores(0, 3 * SETS) if one.faults]


@pytest.mark.parametrize("name", ALONE)
def test_a_specimen_is_convicted_by_its_exact_part_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put_back, _ = SPECIMENS[name]
    put_back(monkeypatch)
    assert any(one.faults for one in cores(100_000, CONVICTED, ALONE[name]))


@pytest.mark.parametrize("name", SPECIMENS)
def test_a_specimen_is_convicted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put_back, family = SPECIMENS[name]
    put_back(monkeypatch)
    assert any(one.faults for one in runs(100_000, CONVICTED, family, worlds=100))
