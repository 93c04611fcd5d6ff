"""What a person reads when a program is refused: whole diagnostics, kept as text and compared.

`diagnostics/` holds one file a kind. An entry is a title, a program (or a line `$ jostle …`), and what Jostle says of
it, plain and 100 columns wide:

    ======== a title [simulated]
    x = 1 +
    --------
    SyntaxError: …

To add one, write its title, its program and a line of dashes into any of the files, and run

    python -m tests.golden.diagnostics --write

which renders every entry anew and puts it into the file of its kind. Then read what it says, as somebody would who
has just made that mistake. In brackets a title may name a setting in which the program runs (`SETTINGS`).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent / "diagnostics"
DATA = HERE.parents[1] / "language" / "data"
WIDTH = 100
TITLE, RULE = "======== ", "--------"
SETTINGS = ("simulated", "registered", "changed", "gone", "json")


@dataclass(frozen=True)
class Entry:
    """A program, and what was said of it when the file was written. `setting` is one of `SETTINGS` or empty."""

    title: str
    program: str
    said: str

    @property
    def setting(self) -> str:
        return self.title.rpartition("[")[2].rstrip("]") if self.title.endswith("]") else ""

    @property
    def text(self) -> str:
        return f"{TITLE}{self.title}\n{self.program}{RULE}\n{self.said}"


def entries_of(path: Path) -> list[Entry]:
    """The entries of one file."""
    found = []
    for block in ("\n" + path.read_text(encoding="utf-8")).split("\n" + TITLE)[1:]:
        title, _, rest = block.partition("\n")
        program, rule, said = rest.partition(f"{RULE}\n")
        if not rule:
            raise SystemExit(f"{path.name}: `{title}` has no line of dashes after its program")
        found.append(Entry(title, program, said.strip("\n") + "\n"))
    return found


def all_entries() -> dict[str, list[Entry]]:
    """By file (without its ending), in order."""
    return {path.stem: entries_of(path) for path in sorted(HERE.glob("*.txt"))}


@contextlib.contextmanager
def place() -> Iterator[Path]:
    """A folder with the files that programs read, as the working directory, and an own ledger."""
    before, kept = Path.cwd(), os.environ.get("JOSTLE_LEDGER")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for file in DATA.glob("*.*"):
            shutil.copy(file, folder)
        (folder / "mine.jst").write_text("use mine\n", encoding="utf-8")
        (folder / "latin.jst").write_bytes(b'x = "caf\xe9"\n')
        (folder / "empty.jsonl").write_text("", encoding="utf-8")
        (folder / "half.jsonl").write_text('{"v": 1, "t": 0.0, "id": 1, "kind": "ru\n', encoding="utf-8")
        dear = 'private p = table("people.csv") described by {age: 0..99} protecting rows budget epsilon 1\n'
        dear += "param e = 0.5\nn = {{ select count(*) from p with epsilon e }}\n"
        (folder / "dear.jst").write_text(dear, encoding="utf-8")
        (folder / "short.jst").write_text("x = 1\n", encoding="utf-8")
        (folder / "saved.jst").write_text("release n = [1, 2]\nrelease one = [1, [2]]\n", encoding="utf-8")
        os.environ["JOSTLE_LEDGER"] = str(folder / "ledger.db")
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)
            os.environ.pop("JOSTLE_LEDGER")
            if kept is not None:
                os.environ["JOSTLE_LEDGER"] = kept


def rendered(entry: Entry, folder: Path) -> tuple[str, str]:
    """The kind of the (first) fault that Jostle finds, and all it says; an empty kind where it finds none."""
    from jostle.source import Source
    from jostle.tools.render import render_all
    from jostle.tools.session import Session

    if entry.setting and entry.setting not in SETTINGS:
        raise SystemExit(f"there is no setting `{entry.setting}`")
    if entry.program.startswith("$ jostle "):
        return _command(entry.program, folder)
    ledger = _ledger(entry.setting, folder)
    session = Session(cwd=folder, ledger=ledger, simulate=1 if entry.setting == "simulated" else None)
    source = Source("program.jst", entry.program)
    found = tuple(session.check(source)) or session.attempt(source).diagnostics
    if not found:
        return "", "nothing: the program runs\n"
    if entry.setting == "json":
        said = "\n".join(json.dumps(d.as_json(), ensure_ascii=False, indent=1) for d in found) + "\n"
    else:
        said = render_all(found, width=WIDTH)
    return found[0].kind, said.replace(str(folder), "FOLDER")


def _command(line: str, folder: Path) -> tuple[str, str]:
    """What a command says on standard error."""
    import shlex

    from jostle.tools.entry import main

    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        main(shlex.split(line)[2:])
    said = err.getvalue().replace(str(folder), "FOLDER")
    return said.partition(":")[0], said


def _ledger(setting: str, folder: Path) -> Path:
    """The ledger of a setting: with `people` registered, with its file changed or gone afterwards, or none at all."""
    if setting not in ("registered", "changed", "gone"):
        return folder / "ledger.db"
    from jostle.tools.entry import main

    own = folder / setting
    own.mkdir(exist_ok=True)
    if not (own / "ledger.db").exists():
        shutil.copy(folder / "people.csv", own / "owned.csv")
        words = [
            "data",
            "register",
            "people",
            str(own / "owned.csv"),
            "--schema",
            "{age: 0..99}",
            "--protecting",
            "rows",
        ]
        with contextlib.redirect_stdout(io.StringIO()):
            main([*words, "--budget", "epsilon 1", "--ledger", str(own / "ledger.db")])
        if setting == "changed":
            (own / "owned.csv").write_text("person,age\np0,20\n", encoding="utf-8")
        if setting == "gone":
            (own / "owned.csv").unlink()
    return own / "ledger.db"


def write() -> None:
    """Renders every entry anew, each into the file of its kind."""
    by_kind: dict[str, list[Entry]] = {}
    seen: set[str] = set()
    bad: list[str] = []
    with place() as folder:
        for entries in all_entries().values():
            for entry in entries:
                kind, said = rendered(entry, folder)
                if not kind or entry.title in seen:
                    bad.append(f"`{entry.title}`: {'there are two of this title' if kind else said.strip()}")
                seen.add(entry.title)
                by_kind.setdefault(kind, []).append(Entry(entry.title, entry.program, said))
    if bad:
        raise SystemExit("\n".join(["nothing was written:", *bad]))
    for path in HERE.glob("*.txt"):
        if path.stem not in by_kind:
            path.unlink()
    for kind, entries in by_kind.items():
        (HERE / f"{kind}.txt").write_text("\n".join(entry.text for entry in entries), encoding="utf-8")
    print(", ".join(f"{kind} {len(entries)}" for kind, entries in sorted(by_kind.items())), f"({len(seen)} in all)")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit("python -m tests.golden.diagnostics --write")
    write()
