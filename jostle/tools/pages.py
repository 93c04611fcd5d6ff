"""The words of `jostle explain`: one page a kind of diagnostic, in the order of `diagnostics.KINDS`.

Text only. Each example meets its kind and each mended program runs, given a file `people.csv` with the columns
`person, age, sex, city, hours, gain`; the tests hold the pages to that.

The words of `jostle explain` for the warnings, in the order of `diagnostics.WARNINGS`.

Text only. Each example is warned of by its name and no other, and each mended program of none, given a file
`people.csv` as in `tools.pages` and `german.csv`, whose header is `age;score`; the tests hold the pages to that.

The page of each kind of diagnostic, error or warning: what it means, a program that meets it, and the way out.

The pages themselves stand in `pages.py`; this lays them out. The tests run every example and every mended program.
"""

from __future__ import annotations

import textwrap

from msgspec import Struct

from jostle.diagnostics import KINDS, WARNINGS


class Page(Struct, frozen=True):
    """`brief` is one line; `mended` is the example put right, or empty where the way out is not a program."""

    brief: str
    meaning: str
    example: str
    way_out: str
    mended: str = ""


_PEOPLE = 'private people = table("people.csv")\n    described by {%s}\n    protecting rows budget epsilon %s\n'

PAGES: dict[str, Page] = {
    "SyntaxError": Page(
        "the text does not parse",
        "The text of the program is not in the form of the language: a bracket without its partner, a word where "
        "another was expected, a tab in the indentation. Nothing has run.",
        "x = 1\nif x = 1:\n    print(x)\n",
        "The caret stands where the text stopped making sense, and the help says what was expected there; the slip is "
        "at that place or just before it. `=` gives a name its value, `==` compares.",
        "x = 1\nif x == 1:\n    print(x)\n",
    ),
    "NameError": Page(
        "an unknown name, column, field, option or module member",
        "A name is used that nothing has defined: a variable, a column that the source does not describe, a field of "
        "a record, a member of a module. Names are looked up before anything runs, also in functions that are never "
        "called. A name in a query that is a column of its table and a variable of the program as well means neither, "
        "nor does one that two modules bring.",
        "total = 1\nprint(totl)\n",
        "Where a known name is close, the help gives it. A column exists only if `described by` names it, even when "
        "the file has it. Of a name with two meanings say which: `t.sex` is the column, `@sex` the variable, `m.f` "
        "what the module `m` has.",
        "total = 1\nprint(total)\n",
    ),
    "TypeError": Page(
        "a value of the wrong kind, or a call that does not fit",
        "An operation met a value of a kind that it is not for: a number added to a text, a call with too many "
        "arguments, a condition that is no true or false, or one in a query that reads no column of its table, `rho` "
        "on a budget counted in epsilon, a join of two private tables without a bound.",
        'x = "a" + 1\n',
        "Values are never converted silently: convert them yourself, or mend the one that is of the wrong kind.",
        "x = 2 + 1\nprint(x)\n",
    ),
    "ValueError": Page(
        "a public operation that has no value",
        "The kinds fit and still there is no answer: a division by zero, the largest of an empty list, a choice "
        "among no options. It is about public values only. Inside a query a row without an answer never stops "
        "anything: it gives `none`, which aggregates leave out. But a constant that the description of its column "
        'rules out (`sex == "male"` where the values are "Male" and "Female", `age > 500` of `0..120`) is refused: it '
        "holds for no row, or for every one.",
        "x = 1 / 0\n",
        "Test for the empty or zero case before the operation. In a query write a constant as the description has it.",
        "d = 0\nx = 1 / d if d != 0 else 0\nprint(x)\n",
    ),
    "ImportError": Page(
        "an unknown module",
        "`use` names a module that is neither in the standard library nor beside the program.",
        "use histogrammes\n",
        "Mind the spelling; the help lists the closest module.",
        "use histograms\n",
    ),
    "AssertionFailed": Page(
        "an assert that does not hold",
        "The program states with `assert` something that turned out false. It can only be about public values: what "
        "was released or paid for, or never private. What was spent until then stays spent.",
        'x = 2\nassert x == 3, "x should be three"\n',
        "Look at what is compared. A noised number is rarely equal to anything: allow for its noise with `error(n)`.",
        "x = 2\nassert abs(x - 3) <= 1\n",
    ),
    "RecursionLimit": Page(
        "recursion or nesting too deep",
        "Functions called one another more than 1,000 deep, or brackets are nested more than 200 deep. Most often a "
        "function calls itself and nothing ever stops it.",
        "def down(n): return down(n + 1)\nx = down(0)\n",
        "Give the function a case in which it does not call itself, or use a `for` loop.",
        "def down(n): return n if n > 9 else down(n + 1)\nx = down(0)\n",
    ),
    "PrivateValue": Page(
        "a private value where only a public one may stand",
        "Rows, tables, cubes and parts of a private source can be named, passed on, transformed and measured. They "
        "cannot be printed, released, compared, branched on, counted with `len`, or put where a number is expected: "
        "any of that would tell something that nobody paid for. A list that holds one is refused likewise.",
        _PEOPLE % ("age: 0..99", "1") + "print(people)\n",
        "Measure it: a query with an amount of epsilon gives a noised public number, with which everything is allowed.",
        _PEOPLE % ("age: 0..99", "1") + "n = {{ select count(*) from people with epsilon 0.1 }}\nprint(n)\n",
    ),
    "NoEpsilon": Page(
        "private data read outside any allotment",
        "A measurement of a private source costs epsilon, and neither the query nor anything around it says how "
        "much. The same goes for calling a chooser on private data.",
        _PEOPLE % ("age: 0..99", "1") + "n = {{ select count(*) from people }}\n",
        "Say the amount at the query or at the call, or open an allotment around several with "
        "`with epsilon e { … }`; a bare query in it spends all that is left of it.",
        _PEOPLE % ("age: 0..99", "1") + "n = {{ select count(*) from people with epsilon 0.1 }}\n",
    ),
    "BadAmount": Page(
        "an amount of epsilon, rho or delta that is none",
        "An amount must be a public, positive, finite number, no smaller than 1e-12 (amounts are counted in whole "
        "multiples of that). Zero, negative and infinite amounts, texts and booleans are refused, before any data "
        "are read.",
        _PEOPLE % ("age: 0..99", "1") + "n = {{ select count(*) from people with epsilon 0 }}\n",
        "Write a positive number. Where it is calculated, print it first: a division or a difference that came out "
        "as zero is the usual cause.",
        _PEOPLE % ("age: 0..99", "1") + "n = {{ select count(*) from people with epsilon 0.1 }}\n",
    ),
    "BudgetExceeded": Page(
        "an allotment or a measurement that does not fit",
        "What is asked for is more than what is left: of the source's budget, or of the allotment around it. It was "
        "refused before any data were read, and nothing of it was charged. The notes say where the earlier charges "
        "were made.",
        _PEOPLE % ("age: 0..99", "1")
        + "a = {{ select count(*) from people with epsilon 0.8 }}\n"
        + "b = {{ select count(*) from people with epsilon 0.3 }}\n",
        "Ask for less, or spend less before. Disjoint groups cost their maximum and not their sum: one `groupby` or "
        "`partition` is cheaper than a query for each value. Several aggregates in one select share its amount. "
        "`left(people)` is what can still be spent.",
        _PEOPLE % ("age: 0..99", "1")
        + "a = {{ select count(*) from people with epsilon 0.8 }}\n"
        + "b = {{ select count(*) from people with epsilon left(people) }}\n",
    ),
    "UnboundedSum": Page(
        "a sum whose terms have no known bound",
        "The noise of a sum is as large as the most that one person can add to it. That has to be known in public, "
        "from the description of the columns, and here it is not: a column described as `real` can hold anything.",
        _PEOPLE % ("gain: real", "1") + "s = {{ select sum(gain) from people with epsilon 0.5 }}\n",
        "Describe the column by a range, or clamp the term to one. Choose the bounds from what you know beforehand "
        "and not by looking at the data: too wide costs noise, too narrow cuts values off.",
        _PEOPLE % ("gain: real", "1") + "s = {{ select sum(clamp(gain, 0, 10)) from people with epsilon 0.5 }}\n",
    ),
    "OpenKeys": Page(
        "group keys that are not public",
        "The keys of a grouped result are shown, so they must be public before anything is measured: that a name "
        "occurs among the rows is itself private. Here the column is open (`text`, `integer` or `real`).",
        _PEOPLE % ("city: text", "1") + "g = {{ select count(*) as n from people groupby city with epsilon 0.5 }}\n",
        "Describe the column by its categories, or list the keys with `over`. With a budget that has a delta, keys "
        "that many people share can be found privately: `with epsilon e delta d`.",
        _PEOPLE % ("city: text", "1")
        + 'g = {{ select count(*) as n from people groupby city over {"Ames", "Cork"} with epsilon 0.5 }}\n',
    ),
    "DataError": Page(
        "a source that cannot be read or is not described",
        "A file is missing, is not of the form its name says, lacks a described column, or is described by a domain "
        "too large to hold; or a private source lacks its description, its unit or its budget. Rows of a private "
        "file never cause this: what does not fit the description is clamped or becomes `none`, row by row.",
        'private people = table("people.csv") protecting rows budget epsilon 1\n',
        "The message names the file and what is wrong with it. The owner of a private file can see how it fits its "
        "description with `jostle data check FILE --schema SCHEMA`.",
        _PEOPLE % ("age: 0..99", "1"),
    ),
    "LedgerError": Page(
        "a ledger that is missing, locked, full or damaged",
        "Data sets that an owner has registered are counted for ever, in a ledger: one file that all programs "
        "share. It could not be read or written, or knows nothing of the data set.",
        'private people = dataset("people")\n',
        "Ask the owner of the data to register the data set, or to look at the ledger. A program that is to be "
        "counted for one run only declares a `table` in place of a `dataset`.",
        _PEOPLE % ("age: 0..99", "1"),
    ),
}


_OF = 'private people = table("people.csv")\n    described by {%s}\n    protecting rows budget epsilon 1\n'
_SCORE, _CITY, _AGE = _OF % "score: 0.0..5.0", _OF % 'city: {"Ames", "Boone"}', _OF % "age: 0..99"
_GERMAN = "\n    described by {score: 0.0..5.0}\n    protecting rows budget epsilon 1\n"

WARNING_PAGES: dict[str, Page] = {
    "narrow-range": Page(
        "integers from a narrow range are averaged",
        "A range without a decimal point, `0..3`, describes integers: a cell with a fraction is taken down, so that a "
        "share of 0.33 counts as 0, and the average of shares is near 0 with a narrow ±. Ranges narrower than ten that "
        "are averaged are often of shares, rates or grades.",
        _OF % "score: 0..5" + "x = {{ select avg(score) from people with epsilon 1 }}\n",
        "Write the ends with a point if cells have fractions. If they are integers, list them.",
        _SCORE + "x = {{ select avg(score) from people with epsilon 1 }}\n",
    ),
    "floored-key": Page(
        "a column described with fractions is a key or an axis",
        "Groups, parts and the cells of a histogram are by integers. Numbers with fractions are taken down: a score of "
        "3.7 is in the group 3, and all shares below 1 are in the group 0.",
        _SCORE + "x = {{ select count(*) from people groupby score with epsilon 1 }}\n",
        "Write `floor(…)` to say that this is meant, or multiply first for finer groups.",
        _SCORE + "x = {{ select count(*) from people groupby floor(score * 10) as tenth with epsilon 1 }}\n",
    ),
    "unlisted-key": Page(
        "a key that the description rules out",
        "A key after `over` that is not among the described values of its column has no row: its group is answered by "
        "noise alone.",
        _CITY + 'x = {{ select count(*) from people groupby city over ["Amse", "Boone"] with epsilon 1 }}\n',
        "Write the key as the description has it, or leave `over` out: described values are keys by themselves.",
        _CITY + "x = {{ select count(*) from people groupby city with epsilon 1 }}\n",
    ),
    "unmatched-pattern": Page(
        "a pattern of `like` that matches no listed value, or not as meant",
        "`like` distinguishes upper and lower case. Where the values of a column are listed, it is known before the "
        "run which ones a pattern matches.",
        _CITY + 'x = {{ select count(*) from people where city like "a%" with epsilon 1 }}\n',
        "Write the pattern as the values are written, or test `lower(…)`.",
        _CITY + 'x = {{ select count(*) from people where lower(city) like "a%" with epsilon 1 }}\n',
    ),
    "idle-clamp": Page(
        "a clamp that changes nothing",
        "The description of the columns bounds the expression already, so a clamp to wider or equal ends changes no "
        "value and no noise.",
        _AGE + "x = {{ select avg(clamp(age, 0, 120)) from people with epsilon 1 }}\n",
        "Leave it out.",
        _AGE + "x = {{ select avg(age) from people with epsilon 1 }}\n",
    ),
    "cutting-clamp": Page(
        "a clamp narrower than the described range",
        "Values beyond the ends of the clamp count as its ends. This lowers the noise, and moves the answer by an "
        "amount of which no ± knows.",
        _AGE + "x = {{ select avg(clamp(age, 20, 60)) from people with epsilon 1 }}\n",
        "Allow it where it is meant, or describe the column by the ends that fit.",
        _AGE + "# jostle: allow cutting-clamp\nx = {{ select avg(clamp(age, 20, 60)) from people with epsilon 1 }}\n",
    ),
    "category-spelling": Page(
        "a category with blanks around it, or two that differ in case alone",
        "A cell is of a category if its text is the same, character by character. One that differs in a blank or in "
        "its case is `none`.",
        _OF % 'city: {"Ames ", "Boone"}',
        "Write categories as the cells have them; `jostle data check` shows an owner which cells are not listed.",
        _OF % 'city: {"Ames", "Boone"}',
    ),
    "csv-decimal": Page(
        "a CSV file with semicolons or tabs and no word on its decimals",
        "Programs write such files where the comma is the decimal point. Read without `decimal`, 12,5 is no number "
        "and counts as `none`.",
        'private people = table("german.csv")' + _GERMAN,
        'Say `decimal = ","`, or `separator = ";"` alone if the numbers have points.',
        'private people = table("german.csv", separator = ";", decimal = ",")' + _GERMAN,
    ),
    "unfit-cells": Page(
        "cells of a column do not fit its description",
        "2 % of the first charge on a column pay for a noisy count of its cells that are unreadable, outside of the "
        "range, with fractions where integers are described, or not listed. It is taken out of the amount of that "
        "charge. Answers that read the column have `± ?*` in the place of an error: how far they are off is not known. "
        "Sources whose owner has registered them are not looked at; `--no-look` switches it off.",
        _OF.replace("1", "9") % "age: 0..9" + "x = {{ select max(age) from people with epsilon 9 }}\n",
        "Describe the column as its cells are. `jostle data check` shows an owner exactly what does not fit.",
        _OF.replace("1", "9") % "age: 0..99" + "x = {{ select max(age) from people with epsilon 9 }}\n",
    ),
    "large-epsilon": Page(
        "an epsilon above 10",
        "What is released may be e^ε times as likely with a person's data as without. From about 10 on this promises "
        "next to nothing.",
        _OF.replace("epsilon 1", "epsilon 50") % "age: 0..99",
        "Amounts of 0.1 to 3 are usual.",
        _AGE,
    ),
    "former-name": Page(
        "a word of the version before",
        "The program uses a name that has changed. It is understood for one version more.",
        "use features\nx = peak(counts([1, 5]))\n",
        "Write today's name.",
        "use features\nx = largest_cell(counts([1, 5]))\n",
    ),
    "first-budget": Page(
        "data declared again with another budget",
        "In a session, data have one budget, that of their first declaration. Another one is not added.",
        _AGE + _OF.replace("epsilon 1", "epsilon 2") % "age: 0..99",
        "Begin a new session for a new budget; data that people share are registered, `jostle data register`.",
    ),
    "unknown-warning": Page(
        "`allow` names no warning",
        "A comment `# jostle: allow NAME` switches a warning off by its name, and there is none of this one.",
        "# jostle: allow narow-range\nx = 1\n",
        "`jostle explain` lists the names.",
        "# jostle: allow narrow-range\nx = 1\n",
    ),
}


ALL = PAGES | WARNING_PAGES

_WIDTH = 88


def page(kind: str) -> str:
    """The page of a kind, as text. Raises `KeyError` for a word that is no kind."""
    this = ALL[kind]
    parts = [kind, "=" * len(kind), "", *_paragraphs(this.meaning), "For example:", "", _program(this.example), ""]
    parts += _paragraphs(this.way_out)
    if this.mended:
        parts += ["Mended:", "", _program(this.mended), ""]
    if kind in WARNINGS:
        parts += _paragraphs(f"It stops nothing. `# jostle: allow {kind}` on a line of its own switches it off in a "
                             f"program, at the end of a line there, and `--allow {kind}` in a run.")  # fmt: skip
    return "\n".join(parts).rstrip() + "\n"


def index() -> str:
    """All kinds of errors and all warnings, a line each."""
    wide = max(map(len, ALL))
    errors, warnings = ([f"  {kind.ljust(wide)}  {ALL[kind].brief}" for kind in of] for of in (KINDS, WARNINGS))
    return "\n".join(["jostle explain KIND shows the page of one of", *errors, "and of the warnings", *warnings]) + "\n"


def _paragraphs(text: str) -> list[str]:
    out = []
    for part in text.strip().split("\n\n"):
        out += [textwrap.fill(" ".join(part.split()), _WIDTH), ""]
    return out


def _program(text: str) -> str:
    return textwrap.indent(text.strip("\n"), "    ")
