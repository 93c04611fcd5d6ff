"""One table of built-ins: what implements a name agrees with its row, and the name stands in no other list."""

from __future__ import annotations

import inspect

import pytest
from package_code import HERE

import jostle.choice.advisors
import jostle.choice.evaluation
import jostle.choice.improvement
import jostle.choice.maker
import jostle.run.library  # noqa: F401 (they implement built-ins)
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Builtin, Effect, Reads
from jostle.run import evaluator, library
from jostle.run import values as v

FUNCTIONS = [row for row in BUILTINS.values() if row.reads is not Reads.NOTHING]
LISTS = [
    "jostle.language.builtins",  # the table itself
]


def test_every_name_of_the_table_is_implemented() -> None:
    assert evaluator.base_scope().names.keys() == BUILTINS.keys()


def test_a_function_without_a_row_cannot_be_imported() -> None:
    with pytest.raises(ImportError, match="`unheard_of` has no row"):
        evaluator.implement("unheard_of", len)


def test_a_row_without_a_function_ends_the_session_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Builtin("unheard_of", "value", Effect.PURE, Reads.PUBLIC, BUILTINS["abs"].gives, "")
    monkeypatch.setitem(BUILTINS, "unheard_of", row)
    with pytest.raises(ImportError, match="no function implements unheard_of"):
        evaluator.base_scope()


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row.name)
def test_a_function_has_the_parameters_of_its_row(row: Builtin) -> None:
    implemented = evaluator.base_scope().names[row.name]
    if isinstance(implemented, v.RowForm):
        assert row.reads in (Reads.ROWS, Reads.SOURCE)
        return
    written = [(p.name, p.kind, p.default is not None) for p in row.parameters]
    kinds = {inspect.Parameter.KEYWORD_ONLY: "name", inspect.Parameter.VAR_POSITIONAL: "*",
             inspect.Parameter.VAR_KEYWORD: "**"}  # fmt: skip
    parameters = [p for p in inspect.signature(implemented.body).parameters.values() if p.name != "at"]
    assert written == [(p.name, kinds.get(p.kind, ""), p.default is not p.empty) for p in parameters]
    assert implemented.sees_handles == (row.reads not in (Reads.PUBLIC, Reads.PRINTS, Reads.DRAWS))


@pytest.mark.parametrize("row", [r for r in FUNCTIONS if r.function], ids=lambda r: r.name)
def test_a_function_of_privacy_takes_what_its_row_says(row: Builtin) -> None:
    """Its parameters are those of the row, the amount last, and each is annotated with what a program can give."""
    taken = list(inspect.signature(library.function_of(row)).parameters)
    assert set(taken) - {"amount"} == {p.name for p in row.parameters if p.name not in library.AMOUNTS}
    assert ("amount" in taken) == any(p.name in library.AMOUNTS for p in row.parameters)
    assert (row.effect is Effect.MEASURES) == ("amount" in taken)
    assert library.readers_of(row).keys() == set(taken) - {"amount"}


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row.name)
def test_what_acts_on_handles_says_which(row: Builtin) -> None:
    acts = row.effect in (Effect.MEASURES, Effect.TRANSFORMS, Effect.SCORES)
    assert acts == (row.exposed is not None)
    assert not acts or not row.cannot_charge
    assert row.about


def test_no_other_list_names_the_builtins() -> None:
    lists = HERE.builtin_lists()
    assert sorted({module for module, _ in lists}) == LISTS, lists
