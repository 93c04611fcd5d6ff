"""The chunks about budgets, each followed before its run and then run: what it spends is what was said."""

from __future__ import annotations

import importlib.util
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jostle.diagnostics import Refusal
from jostle.source import Source
from jostle.tools.session import Session

ROOT = Path(__file__).resolve().parents[2]
LANGUAGE = ROOT / "tests" / "language"
SHARED = ROOT.parent / "shared" / "conformance"


def chunks() -> list[Any]:
    spec = importlib.util.spec_from_file_location("language_chunks", LANGUAGE / "chunks.py")
    if spec is None or spec.loader is None:
        return []
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    places = [(SHARED, SHARED), (LANGUAGE, LANGUAGE / "data")]
    return [
        pytest.param(chunk.text, data, id=f"{chunk.file}:{chunk.line}")
        for folder, data in places
        if (folder / "budgets.jst").is_file()
        for chunk in module.chunks_of(folder / "budgets.jst")
    ]


@pytest.mark.parametrize("text, data", chunks())
def test_a_chunk_spends_what_was_said(text: str, data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JOSTLE_LEDGER", str(tmp_path / "ledger"))
    session, source = Session(cwd=data), Source("chunk.jst", text)
    if session.check(source):
        return  # it does not run
    try:
        costs = session.costs(source)
    except Refusal as refusal:
        pytest.fail(f"the cost of what passes the check is told: {refusal}")
    result = session.attempt(source)
    for cost in costs:
        if cost.name not in result.budget or cost.plain_sum:
            continue
        spent = int(Decimal(result.budget[cost.name][cost.unit]["spent"]) * 10**12)
        assert spent <= cost.most
        if result.ok:
            assert spent >= cost.least
            assert not (cost.exact and cost.fits) or spent == cost.bound


def test_there_are_chunks() -> None:
    """Ours at least; the shared ones where they are beside this checkout."""
    assert len(chunks()) >= 35
