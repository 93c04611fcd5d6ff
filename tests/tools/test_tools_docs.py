"""The pages that are made from the code are whole, and all pages are built without a warning."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BUILD = loaded()


@pytest.mark.parametrize("path", sorted((ROOT / "stdlib").glob("*.jst")), ids=lambda p: p.stem)
def test_the_reference_of_a_module_is_whole(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    opening, parts = BUILD.module_parts(text)
    assert opening, "a module opens with what it is"
    told = {signature.partition("(")[0] for part in parts for signature in part.signatures}
    assert told == set(re.findall(r"^(?:def )?([A-Za-z_]\w*)(?:\(| = )", text, re.MULTILINE))


def test_every_built_in_name_leads_to_where_it_is_explained() -> None:
    rows = [line for line in BUILD.builtins_page().splitlines() if line.startswith("| `")]
    assert len(rows) > 80
    assert [row for row in rows if "](" not in row] == []


def test_the_pages_are_built(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs builds the pages: pip install '.[docs]'")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), BUILD.QUICK: "1"}
    command = [sys.executable, "-m", "docs.build", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "site" / "tutorial.html").read_text(encoding="utf-8")
    assert '<span class="kd">private</span>' in page or '<span class="k">private</span>' in page
    for name in ("index", "gallery", "tools", "reference/histograms", "reference/builtins"):
        assert (tmp_path / "site" / f"{name}.html").exists()
