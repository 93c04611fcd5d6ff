"""`python -m tests.audit`: the full audit, and the page with its table.

Options: `--share 0.1` for fewer runs, `--only WORDS` for the cases whose names have them, `--write` to write
docs/privacy/audit.md.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness import FAILURE, Finding, audit
from mechanisms import cases
from specimens import specimens

OTHERS = (0.25, 4)
"""Other ε, at which programs that say theirs are audited with a quarter of the runs."""

PAGE = Path(__file__).parents[2] / "docs" / "privacy" / "audit.md"

OPENING = """# The audit

Each mechanism was run many times on two neighbouring inputs. On half of the runs an event was chosen that tells the two
apart, on the other half its probabilities were bounded by Clopper and Pearson; "shown" is the privacy loss that this
proves, wrong with a probability below {failure:g} a row. A sound mechanism never shows more than it charges. That it
shows less proves nothing by itself: the arguments are in [mechanisms](mechanisms.md), and this page is to catch
a mistake in them or in the code. That it can catch one is what the specimens are for: broken mechanisms, each of which
must show more than it claims.

Programs that do not adapt run once, from their text to the noise, and their noise is drawn over and over; their
statistic is the log-likelihood ratio of all they draw. Those that adapt to what they selected (`dawa`, `mwem`) run
once for each outcome of their selections, with the same statistic; a choice runs whole each time, so with fewer runs
and a cruder one. Noise is seeded NumPy noise of the same laws, and that of releases where it
says secure. Gaussian noise and stability selection are audited against (ε, δ).

Made by `{command}` on {date} ({minutes:.0f} minutes of one core; Python {python}).
"""


AT_OTHERS = """## At other prices

The programs above that spend ε = 1, spending others, with a quarter of the runs: what they show.
"""


def table(found: list[Finding], verdicts: tuple[str, str]) -> list[str]:
    lines = ["| mechanism | ε charged | δ | runs | ε shown | event | verdict |", "|---|---|---|---|---|---|---|"]
    for one in found:
        case, verdict = one.case, verdicts[0] if one.right else verdicts[1]
        delta = f"{case.delta:g}" if case.delta else "–"
        name = case.name.replace("|", "against")
        cells = [name, f"{case.epsilon:.3g}", delta, f"2 × {one.runs:,}", f"{one.bound:.2f}", one.event, verdict]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def at_other_prices(found: list[Finding], others: dict[str, list[Finding]]) -> list[str]:
    """One row a mechanism: what it shows at each ε."""
    prices = sorted((*OTHERS, 1))
    lines = ["| mechanism | " + " | ".join(f"ε = {e:g}" for e in prices) + " |", "|---" * (len(prices) + 1) + "|"]
    for one in found:
        if one.case.name in others:
            each = {
                f.case.epsilon: f"{f.bound:.2f}" + ("" if f.right else " **(more)**") for f in others[one.case.name]
            }
            each[1] = f"{one.bound:.2f}"
            lines.append(f"| {one.case.name} | " + " | ".join(each[e] for e in prices) + " |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.audit")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    began, found = time.process_time(), []
    others: dict[str, list[Finding]] = {}
    for case in (*specimens(), *cases()):
        if asked.only in case.name:
            found.append(audit(case, asked.share))
            one = found[-1]
            print(
                f"{'ok   ' if one.right else 'WRONG'} {case.name}: charged {case.epsilon:.3g}, shown {one.bound:.3f}",
                flush=True,
            )
            if case.at is not None and not case.broken:
                others[case.name] = [audit(case.at(epsilon), asked.share / 4) for epsilon in OTHERS]
                print("      " + ", ".join(f"{f.case.epsilon:g}: {f.bound:.3f}" for f in others[case.name]), flush=True)
    if asked.write:
        opening = OPENING.format(
            failure=FAILURE, command="python -m tests.audit --write", date=datetime.date.today().isoformat(),
            minutes=(time.process_time() - began) / 60, python=sys.version.split()[0],
        )  # fmt: skip
        sound = table([f for f in found if not f.case.broken], ("holds", "**shows more than it charges**"))
        broken = table([f for f in found if f.case.broken], ("convicted", "**not convicted**"))
        PAGE.write_text(
            "\n".join(
                [
                    opening,
                    "## Mechanisms",
                    "",
                    *sound,
                    "",
                    AT_OTHERS,
                    *at_other_prices(found, others),
                    "",
                    "## Specimens",
                    "",
                    *broken,
                    "",
                ]
            )
        )
    return 0 if all(one.right for one in (*found, *(f for each in others.values() for f in each))) else 1


if __name__ == "__main__":
    sys.exit(main())
