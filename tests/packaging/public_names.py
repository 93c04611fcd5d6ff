"""Every public name of the package, used as its types say: `mypy --strict` and `pyright` read this, nothing runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jostle


def count(session: jostle.Session, program: Path) -> dict[str, Any]:
    result = session.run(program, share=0.5)
    frames: list[object] = [result.frame("by_city"), result.frame("by_city", "arrow")]
    released: dict[str, Any] = result.released
    assert result.ok and not result.diagnostics and result.budget["people"]["epsilon"]["spent"] and frames
    assert [one.message for one in result.warnings] == [] and result.margins() and result["by_city"] is not None
    return released


def main() -> str:
    told: str = jostle.describe(object())
    try:
        with jostle.Session(simulate=1, ledger=None, memory="1GB", look=False) as session:
            session.bind("people", Path("people.csv"))
            count(session, Path("count.jst"))
            session.run_text("print(1)")
            session.dry_run(Path("count.jst"))
    except jostle.Refusal as refusal:
        return f"{refusal} {refusal.first.kind} {refusal.first.help} {refusal.diagnostics[0].message}"
    remote: str = jostle.connect("http://127.0.0.1:8000", token="t", seconds=1.0).url
    classifier: object = jostle.PrivateClassifier(object(), ["age"]).fit([[1.0]])
    functions: list[object] = [classifier, jostle.evaluate, jostle.improve]
    return f"{told}{remote}{jostle.__version__}{len(functions)}"
