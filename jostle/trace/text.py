"""Numbers, bars and trees drawn with characters, which the renderings of a trace share.

Knows nothing of events. All widths are in characters.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise

from msgspec import Struct, field

from jostle.formulas import digits_beside

HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-"
    "\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]|\r(?!\n)"
)
"""Controls, ends of lines that are none to the language, marks that turn the order in which a text is shown, and signs
that are shown as nothing: Unicode's `Default_Ignorable_Code_Point`."""


def clean(text: str) -> str:
    """A text as it may be shown: what steers a terminal, turns the order of a line or is shown as nothing stands as a
    picture. So texts of data and of programs that differ look different; line ends stay."""
    if text.isprintable() and HIDDEN.search(text) is None:
        return text
    return "".join(c if c in "\n\t" or (c.isprintable() and HIDDEN.match(c) is None) else _picture(c) for c in text)


def _picture(char: str) -> str:
    code = ord(char)
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else "\N{REPLACEMENT CHARACTER}"


_LEVELS = "▁▂▃▄▅▆▇█"
UNITS = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}


def number(value: object, digits: int = 4) -> str:
    """A number for a person: whole numbers in full, others to `digits` significant digits, anything else as text.

    An empty text is `""`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, int | float):
        return str(value) or '""'
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.{digits}g}"


def measured(value: object, margin: object, digits: int = 6) -> str:
    """A number with a margin (`run.margins`) beside it: without the decimals that its error, written with two
    significant digits, has none of."""
    error = margin.get("error") if isinstance(margin, Mapping) else None
    if isinstance(value, float) and isinstance(error, int | float) and 0 < error < math.inf and math.isfinite(value):
        places = max(0, 1 - math.floor(math.log10(error)))
        digits = max(digits, digits_beside(value, error))
        value = round(value, places) if places < 12 else value
    return number(value, digits)


def exact(value: object) -> Decimal | None:
    """An amount as a decimal: `0.1`, `"0.1"` and `1` are amounts; `None` for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() else None


def amount(value: object) -> str:
    """A privacy amount without trailing zeros, to 6 significant digits: `0.3`, `1`, `0.0333333`."""
    decimal = value if isinstance(value, Decimal) else exact(value)
    if decimal is None:
        return str(value)
    return "0" if decimal == 0 else f"{float(decimal):.6g}"


def bar(share: float, width: int = 20) -> str:
    """A bar filled to `share` (cut to 0..1); a share above 0 fills at least one cell."""
    share = min(1.0, max(0.0, share))
    full = round(share * width)
    if share > 0:
        full = max(1, full)
    return "█" * full + "░" * (width - full)


def sparkline(values: Sequence[float], width: int = 60) -> str:
    """Block characters for a series; a longer one is averaged into `width` buckets; infinite values are blank."""
    if not values:
        return ""
    count = min(width, len(values))
    cuts = [len(values) * k // count for k in range(count + 1)]
    means: list[float | None] = []
    for low, high in pairwise(cuts):
        finite = [v for v in values[low:high] if math.isfinite(v)]
        means.append(math.fsum(finite) / len(finite) if finite else None)
    present = [m for m in means if m is not None]
    if not present:
        return " " * count
    low_end, spread = min(present), max(present) - min(present)
    steps = len(_LEVELS) - 1
    return "".join(" " if m is None else _LEVELS[round((m - low_end) / spread * steps) if spread else 0] for m in means)


def folded(tree: str, width: int) -> str:
    """A drawn tree whose long lines go on below, under their own twig."""
    lines: list[str] = []
    for line in tree.split("\n"):
        twig = line[: len(line) - len(line.lstrip(" │├└─"))]
        under = twig.replace("├─", "│ ").replace("└─", "  ") + "  "
        wrapped = textwrap.wrap(line, width, subsequent_indent=under, break_on_hyphens=False, break_long_words=False)
        lines += wrapped or [line]
    return "\n".join(lines)


def plural(count: int, word: str) -> str:
    """`1 query`, `3 queries`."""
    many = {"query": "queries", "choice": "choices", "branch": "branches", "entry": "entries"}.get(word, word + "s")
    return f"{count} {word if count == 1 else many}"


def align(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Rows of cells in columns, each padded to the widest of its column; `right` says which columns end flush."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(right))] if rows else []
    return [
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in rows
    ]


class Twig(Struct):
    """A node of a tree to be drawn: one line, and what hangs from it."""

    text: str
    twigs: list[Twig] = field(default_factory=list)

    def add(self, text: str) -> Twig:
        """Hangs a new twig under this one and returns it."""
        self.twigs.append(Twig(text))
        return self.twigs[-1]

    def lines(self) -> list[str]:
        """The tree as lines, drawn with `├─` and `└─`."""
        out = [self.text]
        for k, twig in enumerate(self.twigs):
            last = k == len(self.twigs) - 1
            first, *rest = twig.lines()
            out.append(("└─ " if last else "├─ ") + first)
            out += [("   " if last else "│  ") + line for line in rest]
        return out
