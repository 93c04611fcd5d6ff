"""What a cell is by the description of its column: it fits, is unreadable, lies outside, has a fraction or is not
listed; as an expression on rows, for one column and for several; and the shares of such cells, by noisy counts.

Everything here is public: descriptions, and numbers that were released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jostle.engine.sql.cells import TRUTHS
from jostle.formulas import MISFIT
from jostle.language.facts import MISSING_WORDS
from jostle.language.moments import DAY, moment_of
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import Apply, Categories, Column, Constant, Domain, Integer, Moments, Open, Real, RowExpr
from jostle.run.operators import applied
from jostle.run.propagation import of_numbers

LEAST = 0.01  # the share of cells from which on a misfit is said
CERTAIN = 3  # times its error at 95 % that a count must be above 0: noise alone is that large once in 8,000 times
MOST_LISTED, FITS, STATES_OF_ONE = 500, "fits", 4
STATES = {
    "unreadable": "{share} of its cells are no {kind}, and count as `none`",
    "outside": "{share} of its cells lie outside of its range, and count as the nearest end",
    "fraction": "{share} of its cells have fractions, and are taken down to integers",
    "unlisted": "{share} of its cells are not among the listed values, and count as `none`",
    "empty": "{share} of its cells are missing, and count as `none`",
}
_CELLS = {"unreadable": "are unreadable", "outside": "lie outside of its range", "fraction": "have fractions",
          "unlisted": "are not listed", "empty": "are missing"}  # fmt: skip
CUTS = {what: MISFIT + "`{name}`, {share} of whose cells " + says for what, says in _CELLS.items()}
WAYS_OUT = {  # by what does not fit; of unreadable cells by their kind
    "outside": "describe the range that the cells have, such as 0.0..100.0 for percent",
    "fraction": "write the ends of its range with a point to keep them",
    "unlisted": "list values as the cells have them, with their case and blanks",
    "empty": "leave `never missing` out, so that such rows are in no group",
    "number": 'describe texts as such, `{"a", "b"}`; '
    'numbers like 12,5 are read by `table(…, decimal = ",")`, like 12 € by `number(replace(x, "€", ""))`',
    "conversion to number": 'take out what is no digit, `number(replace(x, ",", ""))`; texts like 1.234,5 are read by '
    '`number(replace(replace(x, ".", ""), ",", "."))`',
    "conversion to date": 'read what is written in another way too, `coalesce(date(x), date(x, "%d.%m.%Y"))`',
    "conversion to time": 'read what is written in another way too, `coalesce(time(x), time(x, "%H:%M"))`',
    "boolean": 'list the values that the cells have, such as {"ja", "nein"}',
    "date": 'describe dates in another form by it, `date("%d.%m.%Y")`',
    "time": 'describe times in another form by it, `time("%d.%m.%Y %H:%M")`',
}


# Expressions ---------------------------------------------------------------------------------------


def cell_state(text: Column, domain: Domain, schema: dict[str, Domain], empty: str | None) -> RowExpr | None:
    """What a cell is, read as a text: one of `STATES`, or `FITS`; `empty` if it is. None for what always fits.

    The first question of it is what holds of nearly every cell, those that fit (`speed.fast.common_case`).
    """
    kind = domain_kind(domain)
    if kind == "text" and not isinstance(domain, Categories):
        return None
    if isinstance(domain, Categories) and not 0 < len(domain.values) <= MOST_LISTED:
        return None
    unread = either(is_word(text, schema), empty, Constant("unreadable"), schema)
    if kind == "boolean":
        common, state = _is_truth(text, schema), unread
    else:
        value: RowExpr = text if kind == domain_kind(schema[text.name]) else applied(kind, (text,), schema)
        common, state = _of_value(value, domain, schema)
        if kind == "text":
            empty, state = None, either(is_word(text, schema), None, state, schema)
        else:
            state = applied("if", (Apply("missing", (value,)), unread, state), schema)
    return either(common, FITS, either(Apply("missing", (text,)), empty, state, schema), schema)


def _is_truth(text: Column, schema: dict[str, Domain]) -> RowExpr:
    word, number = applied("lower", (applied("trim", (text,), schema),), schema), applied("number", (text,), schema)
    words = applied("in", (word, *(Constant(one) for some, _ in TRUTHS for one in some)), schema)
    return Apply("or", (words, applied("in", (number, *(Constant(float(one)) for _, one in TRUTHS)), schema)))


def _of_value(value: RowExpr, domain: Domain, schema: dict[str, Domain]) -> tuple[RowExpr, RowExpr]:
    """Whether a value fits, and what it is otherwise."""
    if isinstance(domain, Categories):
        return applied("in", (value, *map(Constant, domain.values)), schema), Constant("unlisted")
    common: RowExpr = Apply("not", (Apply("missing", (value,)),))
    state: RowExpr = Constant(FITS)
    if domain == Open("integer") or isinstance(domain, Integer):
        common = applied("==", (applied("floor", (value,), schema), value), schema)
        state = either(applied("!=", common.args, schema), "fraction", state, schema)
    if isinstance(domain, Integer | Real | Moments):
        kind, moment = domain_kind(domain), isinstance(domain, Moments)
        low, high = (Constant(moment_of(kind, int(x)) if moment else float(x)) for x in (domain.low, domain.high))
        # an integer is taken down before it is compared, so that 99.5 is within 0..99
        whole = applied("floor", (value,), schema) if isinstance(domain, Integer) else value
        beyond = Apply("or", (applied("<", (whole, low), schema), applied(">", (whole, high), schema)))
        state = either(beyond, "outside", state, schema)
        within = Apply("and", (applied(">=", (value, low), schema), applied("<=", (value, high), schema)))
        common = within if whole is value else Apply("and", (within, common))
    return common, state


def is_word(text: Column, schema: dict[str, Domain]) -> RowExpr:
    """Whether a text is a word for what is missing; no number of a file's own is."""
    texts = schema.get(text.name) != Open("real")
    return applied("in", (text, *map(Constant, MISSING_WORDS)), schema) if texts else Constant(False)


def says(state: RowExpr) -> set[object]:
    """What `cell_state` may say."""
    if isinstance(state, Apply):
        return says(state.args[1]) | says(state.args[2])
    return {state.value} if isinstance(state, Constant) else set()


def either(test: RowExpr, state: str | None, other: RowExpr, schema: dict[str, Domain]) -> RowExpr:
    return applied("if", (test, Constant(state), other), schema)


def state_of_row(states: Mapping[str, RowExpr]) -> tuple[RowExpr, dict[float, tuple[str, str]]]:
    """What a row is by the states of its cells, as a number, and what each number says of which column: of several
    columns, of the first in whose cell something does not fit. A missing cell of a column alone is none."""
    keys = [(name, what) for name, state in states.items() for what in STATES if what in says(state)]
    fits = None if len(states) > 1 else float(len(keys))
    parts: list[RowExpr] = []
    for name, state in states.items():
        numbers: dict[object, float | None] = {what: float(i) for i, (of, what) in enumerate(keys) if of == name}
        parts.append(_numbered(state, {FITS: fits, None: None, **numbers}))
    meaning = {float(i): key for i, key in enumerate([*keys, ("", FITS)])}
    if len(parts) == 1:
        return parts[0], meaning
    commons: list[RowExpr] = [state.args[0] for state in states.values() if isinstance(state, Apply)]
    while len(commons) > 1:  # by halves, as expressions may not be deep
        pairs = [tuple(commons[i : i + 2]) for i in range(0, len(commons), 2)]
        commons = [Apply("and", pair) if len(pair) == 2 else pair[0] for pair in pairs]
    other = Constant(float(len(keys)))
    return Apply("if", (commons[0], other, Apply("coalesce", (*parts, other)))), meaning


def _numbered(state: RowExpr, numbers: Mapping[object, float | None]) -> RowExpr:
    """A state that says numbers."""
    if isinstance(state, Apply):
        return Apply("if", (state.args[0], *(_numbered(one, numbers) for one in state.args[1:])))
    return Constant(numbers[state.value] if isinstance(state, Constant) else None)


# Shares --------------------------------------------------------------------------------------------


def misfit_shares(
    counts: Mapping[tuple[str, str], Any], least: float = LEAST
) -> dict[tuple[str, str], tuple[int, int]]:
    """The shares of cells that do not fit, in percent with their ±, from `least` on where noise does not hide them."""
    error = max((one.error for one in of_numbers([*counts.values()]) if one is not None), default=0.0)
    values = {what: float(count) for what, count in counts.items()}
    total = sum(values.values())
    certain = CERTAIN + math.log(max(1, len(counts) / STATES_OF_ONE)) / 3  # one of many counts is large by chance
    shares = {
        what: share_between(count, total, error, len(counts))
        for what, count in values.items()
        if what[1] != FITS and count > certain * error and count > least * total
    }
    return {what: (min(100, round(100 * share)), max(1, round(100 * off))) for what, (share, off) in shares.items()}


def in_percent(share: tuple[int, int]) -> str:
    return "{} % ± {}".format(*share)


def share_between(count: float, total: float, error: float, many: int) -> tuple[float, float]:
    """The share of a count in the total of so many, each of an error at 95 %, and the error of the share.

    Both have noise, that of the count alike: shares r that are not excluded have |count − r·total| at most the error of
    that difference, whose square is error²·(1 − 2r + many·r²) (Fieller 1954).
    """
    share = min(1.0, count / total) if total > count else 1.0
    square, line = total**2 - many * error**2, count * total - error**2
    if total <= 0 or square <= 0 or (inside := line**2 - square * (count**2 - error**2)) < 0:
        return share, 1.0
    low, high = ((line + sign * math.sqrt(inside)) / square for sign in (-1, 1))
    return share, max(share - max(0.0, low), min(1.0, high) - share)


def example_cell(kind: str) -> str:
    """A kind with how a cell of it is written: `date as 2024-12-31`."""
    if kind in ("number", "boolean"):
        return kind if kind == "number" else "true or false"
    return f"{kind} as {moment_of(kind, _DAYS if kind == 'date' else _DAYS * DAY).isoformat()}"


_DAYS = 20_088  # until 31 December 2024
