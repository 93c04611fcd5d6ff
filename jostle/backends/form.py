"""The form of a statement: the SQL that a dialect emits for a question, from public facts alone.

What an engine sends is narrower: it knows how many rows there are, of which types the cells of a file are, and what it
counted before. None of it is asked for here. Columns are of the types of their descriptions, rows are as many as there
can be at most, and nothing stands ready; so equal questions have equal forms, whatever the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jostle.backends.questions import Question
from jostle.backends.stored import Stored, StoredRelations
from jostle.engine.sql import able, relations
from jostle.engine.sql.dialect import Dialect
from jostle.plan.domains import Domain, Integer, Open
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import Bound, Plan, Scan, inputs

_MOST_ROWS = 2**62
_KINDS = {"number": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE", "time": "TIMESTAMP us"}


class Form(StoredRelations):
    """The forms of several questions. `names` has what the data sets of plans are called.

    `views` are the names of queries whose rows an engine keeps, or which it puts in place of their names.
    """

    def __init__(self, questions: Iterable[Question], dialect: Dialect, names: Mapping[str, str]) -> None:
        super().__init__()
        self.dialect, self.views = dialect, dict[str, str]()
        self._columns: dict[str, dict[str, str]] = {}  # of each data set the kinds
        for question in questions:
            self._look(question.plan)
        self._tables = {key: _table(names.get(key, f"public_{key}"), kinds) for key, kinds in self._columns.items()}

    @property
    def tables(self) -> list[Stored]:
        """The tables that the statements read, with what stands for their raw cells."""
        return list(self._tables.values())

    def sql(self, question: Question) -> str:
        """The form of a statement. Refused with `DataError` where the dialect cannot do it as the others do."""
        able.check(question, self.dialect, self.check_source, lambda rows: None)
        relation = relations.relation(question.plan, self.base, self.dialect)
        if question.terms:
            return relations.group(relation, question.keys, question.terms).sql
        if question.tallied and len(question.exprs) == 1:
            return relations.tally(relation, question.exprs[0])
        return (relations.tuples if question.tallied else relations.vectors)(relation, question.exprs)

    def stored(self, key: str) -> Stored:
        return self._tables[key]

    def keep(self, query: str) -> str:
        return self.views.setdefault(query, f"view{len(self.views)}")

    def count(self, table: str) -> int:
        return _MOST_ROWS

    def _look(self, plan: Plan) -> None:
        """Notes the columns that a plan reads; of those that only tell whose a row is no type is known: texts."""
        for source in inputs(plan):
            self._look(source)
        if isinstance(plan, Scan):
            self._columns.setdefault(plan.data, {}).update((name, _kind(domain)) for name, domain in plan.columns)
        if isinstance(plan, Bound):
            self._tell(plan.scan.data, *plan.by)
        if isinstance(plan, Bound) and plan.owners is not None:
            self._tell(plan.scan.data, plan.owners.on)
            self._tell(plan.owners.table.scan.data, plan.owners.key)

    def _tell(self, key: str, *names: str) -> None:
        for name in names:
            self._columns[key].setdefault(name, "VARCHAR")


def _table(name: str, kinds: Mapping[str, str]) -> Stored:
    cells = tuple((f"r{i}", kind) for i, kind in enumerate(kinds.values()))
    return Stored(name, name, tuple(kinds), cells, _MOST_ROWS)


def _kind(domain: Domain) -> str:
    if isinstance(domain, Integer) or domain == Open("integer"):
        return "BIGINT"
    return _KINDS.get(domain_kind(domain), "VARCHAR")
