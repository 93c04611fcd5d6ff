"""A person's session in `jostle repl`, typed into a real terminal by tmux: `python -m tests.tools.repl_session`.

Each step types something and waits until the screen shows what is expected. It ends with 0 where all were seen; a step
that was not prints the screen. Slow (a minute or two), and needs tmux, so it is a command and no test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "programs" / "data"
PEOPLE = (
    'private people = table("data/people.csv") described by {age: 16..79, income: 0..200000, '
    'city: {"Ames", "Bergen", "Cork", "Delft"}} protecting rows budget epsilon 1'
)
ENTER, TAB, STOP, BACK = "Enter", "Tab", "C-c", "BSpace"

# What is typed (a text; a list of keys after it), and a pattern that the screen then shows.
STEPS: list[tuple[str, list[str], str]] = [
    ("", [], r"jostle \d.*:help for help"),
    (":help", [ENTER], r":why NAME"),
    ("1 + 2 * 3", [ENTER], r"(?m)^7$"),
    ("xs = [i^2 for i in 1..5]", [ENTER], r"jostle › $"),
    ("xs", [ENTER], r"\[1, 4, 9, 16, 25\]"),
    ("print(xs[9])", [ENTER], r"places are 0 to 4"),
    ("def twice(x):", [ENTER], r"def twice"),
    ("return 2 * x", [ENTER, ENTER], r"jostle › $"),
    ("twice(21)", [ENTER], r"(?m)^42$"),
    ("total = (1 +", [ENTER], r"total = \(1 \+"),
    ("2)", [ENTER], r"jostle › $"),
    ("x = 2 ** 3", [ENTER], r"write `x = 2\^3`"),
    ("print(sigma)", [ENTER], r"`sigma` is not defined"),
    (":explain", [ENTER], r"NameError\n=+"),
    (":explain NoSuch", [ENTER], r"no kind of error"),
    (":explain idle-clamp", [ENTER], r"idle-clamp\n=+"),
    (PEOPLE, [ENTER], r"people ε 1.00/1.00 ›"),
    ("people", [ENTER], r"a private table"),
    ("print(people)", [ENTER], r"rows of `people` cannot be printed"),
    (":type people", [ENTER], r"protecting rows.*stability 1"),
    (":cost {{ select count(*) from people with epsilon 0.1 }}", [ENTER], r"0\.1"),
    ("n = {{ select count(*) from people whe", [TAB], r"where"),
    (" age > 40 with epsilon 0.1 }}", [ENTER], r"people ε 0.90/1.00 ›"),
    ("n", [ENTER], r"(?m)^1[5-9]\d\d ± \d+$"),
    (":type n", [ENTER], r"noise of scale 10"),
    (":why n", [ENTER], r"n was made by entry"),
    ("{{ select count(*) from people }}", [ENTER], r"nothing pays for it"),
    ("{{ select count(*) from people where agee > 1 with epsilon 0.1 }}", [ENTER], r"did you mean `age`"),
    ("g = {{ select count(*) as n from people groupby city with epsilon 0.1 }}", [ENTER], r"people ε 0.80/1.00 ›"),
    ("g", [ENTER], r"Bergen"),
    ("big = {{ select count(*) from people with epsilon 0.7 }}", [ENTER], r"more than half"),
    ("n", [ENTER], r"(?s)not run; nothing was spent.*people ε 0.80/1.00 ›"),
    (":budget", [ENTER], r"0\.2 of 1 spent, 0\.8 left"),
    ("many = [{{ select count(*) from people with epsilon 0.00001 }} for i in 1..20000]", [ENTER], r"many = "),
    ("", [STOP], r"(?s)stopped; what was charged stays charged.*people ε 0\.7\d"),
    (":budget", [ENTER], r"0\.2\d+ of 1 spent"),
    ("use histograms", [ENTER], r"people ε"),
    ("ages = histogram(people, x = age)", [ENTER], r"people ε"),
    ("below = hb(ages, prefixes(ages)) with epsilon 0.2", [ENTER], r"people ε 0\.5\d"),
    ("plot(\"ages\", y = below)", [ENTER], r"people ε"),
    (":names", [ENTER], r"below"),
    (":time", [ENTER], r"people ε"),
    ("twice(4)", [ENTER], r"(?s)8.*\d+ ms|\d s"),
    (":type dawa", [ENTER], r"(?s)dawa\(db, queries\).*a quarter of epsilon.*allotment"),
    ("gini?", [ENTER], r"of `use trees`"),
    ("6 * 7", [ENTER], r"(?m)^42$"),
    ("_ + 1", [ENTER], r"(?m)^43$"),
    ("m = {{ select count(*) from peop", [TAB], r"from people"),
    (' where city == "Be', [TAB], r'== "Bergen'),
    ("", [STOP], r"people ε"),
    (":lo", [TAB], r":load"),
    (" data/../nothing.jst", [ENTER], r"there is no program"),
    (PEOPLE.replace("epsilon 1", "epsilon 5"), [ENTER], r"with a budget of epsilon 1: it stands"),
    (":nothing", [ENTER], r"there is no command :nothing"),
    ("exit", [ENTER], r"exit\n.*[#$] ?$"),
]  # fmt: skip


class Terminal:
    """One tmux session on a socket of its own."""

    def __init__(self, folder: Path) -> None:
        self._base = ["tmux", "-L", f"jostle-{os.getpid()}", "-f", "/dev/null"]
        environment = {**os.environ, "HOME": str(folder), "PS1": "$ ", "JOSTLE_LEDGER": str(folder / "ledger.db")}
        command = [*self._base, "new-session", "-d", "-x", "110", "-y", "40", "-c", str(folder), "bash --norc"]
        subprocess.run(command, env=environment, check=True)

    def do(self, *words: str) -> str:
        return subprocess.run([*self._base, *words], capture_output=True, encoding="utf-8", check=True).stdout

    def screen(self) -> str:
        return self.do("capture-pane", "-p").rstrip("\n ") + " "

    def close(self) -> None:
        self.do("kill-server")


def main() -> int:
    """Types all steps; the number of those that did not show what was expected."""
    missed = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        shutil.copytree(DATA, folder / "data")
        terminal = Terminal(folder)
        try:
            terminal.do("send-keys", "-l", f"{sys.executable} -m jostle repl")
            terminal.do("send-keys", ENTER)
            for number, (text, keys, shown) in enumerate(STEPS, 1):
                if number > 1 and text:
                    terminal.do("send-keys", "C-l")  # a clear screen: what is found is new
                    time.sleep(0.3)
                if text:
                    terminal.do("send-keys", "-l", text)
                if STOP in keys:
                    time.sleep(1.5)
                for key in keys:
                    time.sleep(0.2)
                    terminal.do("send-keys", key)
                began = time.monotonic()
                while not (found := re.search(shown, terminal.screen().rstrip("\n"))) and time.monotonic() - began < 30:
                    time.sleep(0.2)
                print(f"{'saw   ' if found else 'MISSED'} {number:2}  {text[:60]} {' '.join(keys)}", flush=True)
                if not found:
                    missed += 1
                    print(terminal.screen(), flush=True)
        finally:
            terminal.close()
    print(f"{len(STEPS) - missed} of {len(STEPS)} steps showed what was expected")
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
