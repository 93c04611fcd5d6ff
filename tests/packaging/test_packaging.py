"""The wheel and the sdist, built here, each installed in an environment of its own, where they run the main program.

The environments see this one's dependencies (through a `.pth` file, nothing is downloaded) but not its Jostle, so
that what runs is what was packaged. The first run trains (under a minute); both share the
models stored in this run of the tests, since the same code and program have the same key.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import jostle

pytest.importorskip("hatchling", reason="hatchling builds the packages: pip install '.[test]'")

ROOT = Path(__file__).resolve().parents[2]


def command(*words: object, cwd: Path) -> str:
    """Runs a command away from the checkout, which must not be on its path."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(w) for w in words], cwd=cwd, env=environment, capture_output=True, encoding="utf-8", timeout=1800
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The two packages, built by hatchling from this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def installed(package: Path, folder: Path) -> Path:
    """An environment with the package and this environment's dependencies; its folder of commands."""
    home = folder / "environment"
    command(sys.executable, "-m", "venv", "--without-pip", home, cwd=folder)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    site = Path(command(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    command(
        sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index",
        "--no-build-isolation", "--ignore-installed", package, cwd=folder,
    )  # fmt: skip
    where = command(python, "-c", "import jostle; print(jostle.__file__)", cwd=folder).strip()
    assert Path(where).is_relative_to(home), f"{where} is not what was installed"
    return scripts


def test_the_wheel_holds_the_language_and_its_library(built: dict[str, Path]) -> None:
    names = set(zipfile.ZipFile(built["wheel"]).namelist())
    for path in (*(ROOT / "grammar").iterdir(), *(ROOT / "stdlib").glob("*.jst")):
        if path.is_file():
            assert f"jostle/_{path.parent.name}/{path.name}" in names
    for path in (ROOT / "jostle").rglob("*.py"):
        assert path.relative_to(ROOT).as_posix() in names
    assert not any(name.startswith(("tests/", "programs/", "stdlib/", "grammar/")) for name in names)


@pytest.mark.slow(but=["wheel"])
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_the_main_program_runs_where_it_is_installed(kind: str, built: dict[str, Path], tmp_path: Path) -> None:
    scripts = installed(built[kind], tmp_path)
    said = command(scripts / "jostle", "run", ROOT / "programs" / "choose.jst", cwd=tmp_path)
    assert "town: " in said and "village: " in said
    assert "choose chose Each " in said, "noise on every age is best for 4,000 people"
    assert said.count("└─ spent ε 0.3 of 0.3") == 2


@pytest.mark.slow
def test_the_wheel_brings_what_it_needs_into_an_empty_environment(built: dict[str, Path], tmp_path: Path) -> None:
    """Installed with its dependencies, as users do: the example runs, and no more than 24 distributions are there."""
    home = tmp_path / "environment"
    command(sys.executable, "-m", "venv", home, cwd=tmp_path)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    install = [scripts / "python", "-m", "pip", "install", "-q", "--no-input", "--retries", "0", built["wheel"]]
    done = subprocess.run(install, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=1200)
    if done.returncode:
        assert "No matching distribution" in done.stderr or "Connection" in done.stderr, done.stderr
        pytest.skip("no package registry can be reached")
    assert command(scripts / "jostle", "init", "--example", cwd=tmp_path)
    assert "spent, 0.2 left" in command(scripts / "jostle", "run", "first.jst", cwd=tmp_path)
    listed = command(scripts / "python", "-m", "pip", "list", "--format", "freeze", cwd=tmp_path).splitlines()
    assert len([line for line in listed if not line.startswith(("pip==", "setuptools==", "jostle"))]) <= 24


@pytest.mark.slow
def test_an_index_can_show_what_was_built(built: dict[str, Path]) -> None:
    pytest.importorskip("twine", reason="twine checks packages: pip install '.[dev]'")
    said = command(sys.executable, "-m", "twine", "check", "--strict", *built.values(), cwd=ROOT)
    assert said.count("PASSED") == 2


@pytest.mark.slow
def test_pyright_reads_every_public_name() -> None:
    pytest.importorskip("pyright", reason="pyright reads types: pip install '.[dev]'")
    program = Path(__file__).with_name("public_names.py")
    assert "0 errors" in command(sys.executable, "-m", "pyright", "--pythonpath", sys.executable, program, cwd=ROOT)


@pytest.mark.slow
def test_the_types_of_every_public_name_hold() -> None:
    """Of each name in `jostle.__all__`, as somebody else's strict code sees them."""
    pytest.importorskip("mypy", reason="mypy reads types: pip install '.[dev]'")
    program = Path(__file__).with_name("public_names.py")
    assert all(name in program.read_text(encoding="utf-8") for name in jostle.__all__)
    command(sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--follow-imports=silent", program, cwd=ROOT)
