"""An engine's answers about private rows, faster: the same integers, from codes and rows that were read before.

It is asked in place of the engine, and what it does not know how to answer faster the engine answers. That both say
the same is tested for plans that are made at random (`tests/engine/test_engine_parts.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from jostle.engine.base import Engine, Here, Work
from jostle.lazy import Array
from jostle.plan.plan import Count, Key, Plan, RowExpr, Term
from jostle.speed.parts import Parts

if TYPE_CHECKING:
    from jostle.speed.rowstore import RowStore


class FastAnswers:
    """`engine.base.Answers` of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.parts = Parts(engine)

    @property
    def here(self) -> Here:
        return self._engine.here

    def check(self, question: object) -> None:
        self._engine.check(question)

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[Array]:
        """Of a part that is only counted, from the codes of its rows."""
        if terms and all(term == Count() for term in terms):
            counts = self.parts.counts(plan, keys)
            if counts is not None:
                return [counts] * len(terms)
        return self.parts.group(plan, keys, terms)

    def counts(self, plan: Plan, tables: Sequence[tuple[Key, ...]]) -> list[Array]:
        """In one pass over the rows, where their columns are coded."""
        together = self.parts.several(plan, tables) if len(tables) > 1 else None
        return [self.group(plan, keys, (Count(),))[0] for keys in tables] if together is None else list(together)

    def crossed(self, plan: Plan, keys: Sequence[Key], by: Key) -> list[Array]:
        """In one pass over the rows, where they are numbered."""
        from jostle.privacy.rows.leaves import LeafFold, one_leaf

        tree = one_leaf(tuple(len(key.values) for key in keys))
        fold = LeafFold(tree, tree.level, len(by.values), tuple(range(len(keys))))
        together = self.parts.folded(plan, (*keys, by), fold)
        if together is not None:
            return [counts[0] for counts in together]
        return [self.group(plan, (key, by), (Count(),))[0] for key in keys]

    def codes(self, plan: Plan, keys: tuple[Key, ...]) -> list[Array]:
        coded = self.parts.codes(plan, keys)
        return self._engine.codes(plan, keys) if coded is None else coded

    def fold_codes(self, plan: Plan, keys: tuple[Key, ...], work: Work) -> list[object]:
        folded = self.parts.folded(plan, keys, work)
        return self._engine.fold_codes(plan, keys, work) if folded is None else folded

    def fold(self, plan: Plan, exprs: tuple[RowExpr, ...], work: Work) -> list[object]:
        """Of rows in a ball beside those that were read before, unless the rows are elsewhere."""
        from jostle.privacy.rows.folds import AtRows
        from jostle.speed.rowstore import StoredRows

        if self._engine.capabilities.folds or not isinstance(work, AtRows):
            return self._engine.fold(plan, exprs, work)
        return work.fold.over(StoredRows(self._store, (plan, exprs, work.radius, work.norm)))

    def tally(self, plan: Plan, expr: RowExpr) -> tuple[Array, Array]:
        return self._engine.tally(plan, expr)

    def tuples(self, plan: Plan, exprs: tuple[RowExpr, ...]) -> tuple[list[tuple[object, ...]], Array]:
        return self._engine.tuples(plan, exprs)

    @cached_property
    def _store(self) -> RowStore:
        from jostle.speed.rowstore import RowStore

        return RowStore(self._engine)
