"""What the owner of a database defines, types, casts and settings, is not taken for the server's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jostle.source import Source

OWN = {
    "text": ("TYPE own_types.text AS (a pg_catalog.int4, b pg_catalog.int4)", "(1,2)", "text"),
    "int4": ("TYPE own_types.int4 AS (a pg_catalog.int4)", "(1)", "0..9"),
    "numeric": ("TYPE own_types.numeric AS RANGE (subtype = pg_catalog.int4)", "[1,2)", "0..9"),
    "date": ("TYPE own_types.date AS RANGE (subtype = pg_catalog.int4)", "[1,2)", "date"),
    "enum": ("TYPE own_types.enum AS (a pg_catalog.int4)", "(1)", "text"),
}
"""Types of an owner's that are called as types are which are read: what makes them, a cell, and a description."""


@pytest.mark.parametrize("name", OWN)
def test_a_type_of_an_owner_s_is_not_taken_for_one_of_its_name(
    name: str, load: Any, execute: Any, url: str, session_at: Any
) -> None:
    made, cell, described = OWN[name]
    execute(f"DROP SCHEMA IF EXISTS own_types CASCADE; CREATE SCHEMA own_types; CREATE {made}")
    load("called", {"x": (f"own_types.{name}", [cell, None]), "y": ("pg_catalog.int4", [1, 2])})
    program = (
        f'private t = postgres("called") described by {{x: {described}, y: 0..9}} protecting rows budget epsilon 9\n'
    )
    result = session_at(url).attempt(Source("p", program + "release n = {{ select count(*) from t with epsilon 1 }}\n"))
    assert [d.message for d in result.diagnostics][:1] == [
        f"the column `x` is of the type `own_types.{name}`, which is not read".replace(
            "own_types.numeric", 'own_types."numeric"'
        )
    ]
    assert not result.budget


@pytest.mark.parametrize("kind", ["own_casts.mood", "own_casts.mild"])
def test_a_row_meets_no_cast_of_an_owner_s(kind: str, load: Any, execute: Any, url: str, session_at: Any) -> None:
    execute("""DROP SCHEMA IF EXISTS own_casts CASCADE; CREATE SCHEMA own_casts;
        CREATE TYPE own_casts.mood AS ENUM ('low', 'high'); CREATE DOMAIN own_casts.mild AS own_casts.mood;
        CREATE FUNCTION own_casts.spelled(own_casts.mood) RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'not this row'; END $$;
        CREATE CAST (own_casts.mood AS text) WITH FUNCTION own_casts.spelled(own_casts.mood)""")
    load("moods", {"x": (kind, ["low", "high", "high", None])})
    for unit in ("rows", "x up to 9 rows"):
        declared = f'private t = postgres("moods") described by {{x: text}} protecting {unit} budget epsilon 9000\n'
        count = 'release n = {{ select count(*) from t where x == "high" with epsilon 4000 }}\n'
        result = session_at(url).attempt(Source("p", declared + count))
        assert result.ok and round(result.released["n"]) == 2


def test_a_missing_cell_of_a_public_table_is_none_whatever_a_role_has_set(
    load: Any, execute: Any, url: str, session_at: Any, tmp_path: Path
) -> None:
    load("spelled", {"x": ("text", ["NULL", "b"])})
    (tmp_path / "public.csv").write_text("x,z\nb,1\n,1\n")
    program = (
        'private t = postgres("spelled") described by {x: text} protecting rows budget epsilon 9000\n'
        'known = table("public.csv") described by {x: text, z: 0..9}\n'
        "release n = {{ select count(*) from t join known on x with epsilon 4000 }}\n"
    )
    execute("ALTER ROLE postgres SET array_nulls = off")
    try:
        result = session_at(url).attempt(Source("p", program))
    finally:
        execute("ALTER ROLE postgres RESET array_nulls")
    assert result.ok and round(result.released["n"]) == 1
