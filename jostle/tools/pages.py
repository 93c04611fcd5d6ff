"""The words of `jostle explain`: one page a kind of diagnostic, in the order of `diagnostics.KINDS`.

Text only. Each example meets its kind and each mended program runs, given a file `people.csv` with the columns
`person, age, sex, city, hours, gain`; the tests hold the pages to that.
"""

from __future__ import annotations

from msgspec import Struct


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
