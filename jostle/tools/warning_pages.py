"""The words of `jostle explain` for the warnings, in the order of `diagnostics.WARNINGS`.

Text only. Each example is warned of by its name and no other, and each mended program of none, given a file
`people.csv` as in `tools.pages` and `german.csv`, whose header is `age;score`; the tests hold the pages to that.
"""

from __future__ import annotations

from jostle.tools.pages import Page

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
