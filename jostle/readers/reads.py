"""Which tables and files a relation of DuckDB reads, by its query and by the names in its catalog.

No row is looked at. Tables of one name in databases in memory are taken for one. What a query reads is not known where
it calls functions that may read anything, where it names data of Python, and where it seems to read nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

from jostle.diagnostics import Refusal
from jostle.engine.filesets import identities, paths

_NOTHING = frozenset({"range", "generate_series", "unnest"})
_FILES = frozenset({"read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto"})
_TABLES = """SELECT table_name, schema_name, d.path, NULL FROM duckdb_tables() JOIN duckdb_databases() d
USING (database_oid) UNION ALL SELECT view_name, NULL, NULL, sql FROM duckdb_views() WHERE NOT internal"""
_FUNCTIONS = "SELECT function_name FROM duckdb_functions() WHERE NOT internal"
Node = dict[str, Any]


class _UnknownError(Exception):
    """What a query reads cannot be told."""


def reads_of(origin: Any, connection: Any) -> frozenset[Hashable] | None:
    """What a relation reads: nothing where `origin` is none, and None where that is not known.

    `connection`, our own, takes its query apart.
    """
    if not hasattr(origin, "sql_query"):
        return frozenset()
    import duckdb

    try:
        tables = origin.query("tables", _TABLES).fetchall()
        functions = frozenset(name for (name,) in origin.query("functions", _FUNCTIONS).fetchall())
        tree = _tree(origin.sql_query(), connection)
        return frozenset(_marks(tree, tables, functions, connection)) or None
    except (duckdb.Error, Refusal, OSError, KeyError, TypeError, AttributeError, _UnknownError):
        return None


def _marks(tree: Node, tables: list[Any], functions: frozenset[str], connection: object) -> Iterator[Hashable]:
    parts = list(_parts(tree))
    named = {entry["key"].casefold() for part in parts if "cte_map" in part for entry in part["cte_map"]["map"]}
    for part in parts:
        kind, function = part.get("type"), part.get("function_name")
        if kind == "BASE_TABLE":
            name = part["table_name"].casefold()
            meant = [row for row in tables if row[0].casefold() == name]
            for _, schema, path, view in meant:
                if view is None:
                    yield _mark(name, schema, path)
                else:
                    yield from _marks(_body(view, connection), tables, functions, connection)
            if not meant and name not in named:
                yield from _of_files([part["table_name"]])
        elif kind == "TABLE_FUNCTION":
            if part["function"]["function_name"] in _FILES:
                first = part["function"]["arguments"][0]
                yield from _of_files([p["literal"]["text"] for p in _parts(first) if "literal" in p])
            elif part["function"]["function_name"] not in _NOTHING:
                raise _UnknownError
        elif function in functions:
            raise _UnknownError


def _mark(name: str, schema: str, path: str | None) -> Hashable:
    """What a table is known by; of a file that is a database, what `table("x.duckdb", table = "t")` is known by."""
    if path is None:
        return "table", name
    status = os.stat(path)
    return "file", status.st_dev, status.st_ino, name if schema == "main" else f"{schema}.{name}".casefold()


def _of_files(names: list[str]) -> Iterator[Hashable]:
    for name in names:
        marks = [mark for path in paths(name, [Path()]) for mark in identities(path)]
        if not marks:
            raise _UnknownError
        yield from marks


def _body(view: str, connection: object) -> Node:
    """The query of a view, which stands after the first `AS` that a query follows."""
    for word in re.finditer(r"\bAS\b", view, re.IGNORECASE):
        try:
            return _tree(view[word.end() :], connection)
        except _UnknownError:
            continue
    raise _UnknownError


def _tree(query: str, connection: Any) -> Node:
    ((text,),) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    tree: Node = json.loads(text)
    if tree["error"]:
        raise _UnknownError
    return tree


def _parts(tree: object) -> Iterator[Node]:
    """Every object in a tree."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
