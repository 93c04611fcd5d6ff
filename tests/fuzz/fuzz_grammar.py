# ruff: noqa: E501 (a form or a program stands on one line)
"""The grammar of synthetic programs: for each kind of expression its forms, in which `<kind>` stands for another one.

`<known kind>` is a name that the program has bound to a value of that kind. At depth 0 only the forms without a
`<kind>` are used.
"""

from __future__ import annotations

NUMBERS = "0 | 1 | 2 | 3 | 0.5 | 7 | 10 | -1 | 1.5 | -0.0 | 40 | 100 | n"
EDGES = "1e308 | -1e308 | 1e-300 | 1e400 | (1e400 - 1e400) | -0 | 1e12 | 9007199254740993 | 5e-324 | (1e15 + 0.5) | 1e9"

FORMS: dict[str, list[str]] = {
    kind: [form.strip() for form in forms.replace("\n", " ").split(" | ")]
    for kind, forms in {
        "number": f"""{NUMBERS} | <edge> | <known number> | <known number> | <known noisy> | (<number> <operator> <number>)
            | (<number> <operator> <number>) | <function1>(<number>) | (<number> if <truth> else <number>)
            | <fold>(<items>) | (<over> over i in <items> of <body>) | <items>[<number>] | <known function>(<number>)
            | error(<known noisy>) | error(<number>) | left(<known table>) | spent(<known cube>) | left(<name>)
            | quantile(<items>, <number>) | clamp(<number>, <number>, <number>) | number(<text>)
            | rmse(<items>, <items>) | <known record>.a | <known record>.nothing | round(<number>, <number>)
            | -<number> | scaled_error(<items>, <items>, <number>) | <anything> | len(<anything>)""",
        "edge": EDGES,
        "operator": "+ | - | * | / | % | ^",
        "function1": "abs | sqrt | exp | log | floor | ceil | round | str | number",
        "fold": "sum | min | max | avg | median | len | stddev | var | idxmax | idxmin",
        "over": "max | min | sum | argmax | argmin",
        "body": "i | i * 2 | -i | len(i) | <number>",
        "compare": "< | <= | > | >= | == | !=",
        "truth": """true | false | 1 < 2 | (<number> <compare> <number>) | (<truth> and <truth>) | (<truth> or <truth>)
            | not (<truth>) | (<anything> == <anything>) | (<anything> != <anything>) | (<anything> in <items>)
            | (<anything> not in <items>) | (<text> < <text>) | <anything>""",
        "text": """"Female" | "Male" | "" | "age" | "ü×\\n" | "gain" | "x" | "1e5" | "nan" | <known text> | str(<anything>)
            | (<text> + <text>) | <text>[0] | str(<name>) | explain(<name>)""",
        "items": """[] | [1, 2, 3] | {1, 2} | 1..4 | {} | [0.5, 1e308, 1e308] | ["a", "b"] | 1..0 | 0.5..2
            | [[1, 2], [3, 4]] | 1..1e12 | sqrt([4, 9]) | sqrt([]) | <known items> | <known items> | <known noisy>
            | [<anything>, <number>] | {<number>, <anything>} | [i for i in <items>] | {i for i in <items> if <truth>}
            | (<items> + <items>) | (<items> - <items>) | append(<items>, <anything>) | sorted(<items>)
            | reversed(<items>) | set(<items>) | list(<items>) | zip(<items>, <items>) | enumerate(<items>)
            | (<number>..<number>) | sqrt(<items>) | keys(<anything>) | values(<anything>) | (<items> * <number>)
            | (<items> <operator> <items>) | [i + j for i in <items> for j in <items>] | (<number>, <anything>)
            | [[i, <number>] for i in <items>] | abs(<items>) | record(<items>) | -<items> | (<number>..1e5)""",
        "anything": """none | <number> | <number> | <text> | <items> | <truth> | <name> | <name> | <name>[<anything>]
            | {a: <number>, b: <name>} | (lambda i: <number>) | <name>.<field> | <name>(<anything>) | <query>
            | <measured> | <table> | <cube> | <name>[<number>]""",
        "field": "a | b | name | columns | size | x_range | domain_size | categories | jostle_call | values | kind | pick",
        "name": "n | s | t | <known number> | <known text> | <known items> | <known table> | <known cube> | <known record>"
        " | <known noisy> | <known any> | <known function> | <known public table> | <known public cube> | <known choice>"
        " | <known option> | nowhere | epsilon",
        "record": "{a: <number>, b: <anything>, n: <name>} | {} | {a: 1} | {\"a b\": <items>}",
        "function": "lambda i: i | lambda i: i + 1 | lambda i: -i | lambda i, j: i | lambda i: <number> | lambda i: <query>",
        # Data
        "base": "<known table> | <known table> | <known table> | <known public table> | t",
        "table": """<base> | <base> | <base> | where(<base>, <condition>) | <base>[sex = <text>] | <base>[age = <number>, hours = 3]
            | <base>[<condition>, ] | derive(<base>, age = <row>) | derive(<base>, big = <condition>) | pick(<base>, age, sex)
            | partition(<base>, <part>)[0][1] | agent(<base>, <amount>) | limited(<table>, <amount>) | <base>[s = "Male", ]
            | partition(<base>, sex)[1][1] | derive(<base>, note = <row>, extra = age + <number>)""",
        "cubes": "<known cube> | <known cube> | <known public cube> | t",
        "cube": """<cubes> | <cubes> | <cubes> | histogram(<base>, x = <row>) | histogram(<base>, age / 20, sex)
            | where(<cubes>, x < 3) | <cubes>[x = <number>] | <cubes>[x > 1, ] | partition(<cubes>, x)[1][1]
            | histogram(<table>, age, gain / 1e3, hours) | limited(<cubes>, <amount>) | histogram(<base>, age / 10)""",
        "row": """age | age | gain | hours | age / 10 | age * 2 - 1 | gain / hours | clamp(gain, 0, 10) | min(age, hours)
            | age if sex == "Male" else hours | sqrt(gain) | log(hours) | -age | exp(gain) | 1e308 * gain | age % 7 | age ^ 2
            | floor(gain / 100) | clamp(free, -5.0, 5.0) | free | 3 | note | values | clamp(age, <number>, <number>)
            | age * <number> | gain ^ <number> | age % <number> | s | abs(free) | round(gain / 7)""",
        "condition": """age > 40 | sex == "Male" | age in 10..20 | sex in {"Female"} | not (age < 3 or hours > 4) | true
            | gain / hours > 2 | age in [1, 2, 3] | note == "x" | age > n | age == none | hours | 1 == 1 | s == sex
            | age < (1e400 - 1e400) | 1 / 0 > age | values > 3 | age in <items> | <row> < <number> | <truth> | <row> == <row>""",
        "key": """sex | sex | age / 10 | age | age / 1000 | hours over {1, 2, 3} | note | note over {"x", "y"} | gain | gain / 1e4
            | sex as who | floor(age / 30) as decade | s | age * 1e9 | free over 1..5 | sex over {} | age over {1, 1.5}
            | hours over 1..1e12 | age > 3 | exp(age) | age over <items> | <row>""",
        "part": "sex | sex | age / 10 | age | hours over {1, 2, 3} | note | gain / 1e4 | sex == \"Male\" | age over <items> | <row>",
        "call": """count(*) | count(*) | count(<row>) | count(distinct <row>) | sum(<row>) | avg(<row>) | var(<row>) | stddev(<row>)
            | median(<row>) | quantile(<row>, 0.9) | quantile(<row>, <number>) | min(<row>) | max(<row>) | bounds(<row>) | mode(sex) | mode(<row>)
            | covariance(<row>, <row>) | covariance(age, <row>) | sum(<row>) / count(*) | count() | sum(*) | <row> | avg(<row>, <row>) | max(<row>) - min(<row>)""",
        "column": "<call> | <call> as c<fresh> | <call> as c<fresh>",
        "columns": "<column> | <column> | <column>, <column> | <column>, <column>, <column>",
        "join": "<nothing> | <nothing> | <nothing> | <nothing> | join <base> on <on> | join <base> on <on> up to <most>",
        "on": "age | sex | note | age, sex | nowhere",
        "most": "1 | 2 | 3 | 0 | 1e12 | -1 | <number>",
        "where": "<nothing> | <nothing> | where <condition>",
        "groupby": "<nothing> | <nothing> | groupby <key> | groupby <key> | groupby <key>, <key>",
        "cells call": "sum(values) | sum(values) | count(values) | max(values) | count(*) | sum(x) | min(values) | avg(values)",
        "cells where": "<nothing> | <nothing> | where values > 0 | where x > 1 | where x in 1..2 | where values | where <truth>",
        "cells key": "<nothing> | <nothing> | groupby x | groupby x / 2 | groupby y | groupby values | groupby x, y"
        " | groupby x over 0..2",
        "select": """select <columns> from <table> <join> <where> <groupby> <spend>
            | select <columns> from <table> <where> <groupby> <spend>
            | select <cells call> from <cube> <cells where> <cells key> <spend>""",
        "query": """{{ <select> }} | {{ <select> }} | {{ <select> }} | {{ <fold>(<select>) }} | {{ print(<select>) }}
            | {{ (<select>) / (<select>) }} | {{ <select> }} | {{ <select> }} | {{ <select> }} | {{ <select> }} | {{ <select> }} | {{ <select> }} | {{ <select> }} | {{ <select> }} | {{ <number> }}""",
        "amount": "0.1 | 0.1 | 0.01 | 0.01 | 0.2 | 0.1 | 0.05 | 0.02 | 0.1 | 1 / 3 | 0.5 | epsilon / 2 | epsilon | 1 | <bad amount>",
        "bad amount": """0 | -1 | 1e400 | 1e-300 | (1e400 - 1e400) | "0.1" | true | 1e-12 | 1e308 | none | [0.1] | t | <number>""",
        "spend": "<spending> | <spending> | <spending> | <spending> | <nothing>",
        "spending": "with epsilon <amount> | with epsilon <amount> | with epsilon <amount> | with epsilon <amount>"
        " | with epsilon <amount> | with rho <amount> | with epsilon <amount> delta 1e-7 | with epsilon <amount> via <mechanism>",
        "mechanism": "laplace | gaussian | nothing | exponential",
        "score": "nonzero(<cube>) | largest_cell(<cube>) | l1_to_uniform(<cube>) | l2(<cube>) | size(<cube>) | size(<table>)"
        " | total_variation(<cube>) | entropy(<cube>)",
        "queries": "prefixes(<cubes>) | prefixes(<cubes>) | identity(<cubes>) | ranges(<cubes>) | rectangles(<cubes>)"
        " | ranges(<cube>, <number>, <number>) | prefixes(<cube>) | <anything>",
        "measured": """laplace(<cube>) <spend> | gaussian(<cube>) <spend> | laplace(<score>) <spend> | noisy_max([<score>, <score>]) <spend>
            | exp_mech([1, 2], [<score>, <score>]) <spend> | exp_mech(<items>, <items>) <spend> | noisy_max(<items>) <spend>
            | least_cost_partition(<cube>) <spend> | noisy_max(misfit(<cubes>, <queries>, <items>)) <spend>
            | exact(<queries>, <cube>) | answer(<queries>, laplace(<cube>)) <spend> | answer(<queries>, <items>)
            | <algorithm>(<cubes>, <queries>) <spend> | mwem(<cubes>, <queries>, <number>) <spend>
            | noisyCount(<table>, <amount>) | noisySum(<table>, "age", <amount>) | noisyAvg(<table>, <text>, <amount>)
            | noisyMedian(<table>, "hours", <amount>) | cells(<cube>) | laplace(<cube>, <items>) <spend>
            | laplace(<cube>, epsilon = <amount>) | laplace(<cubes>, [{kind: "boxes", lows: [<number>], highs: [2], weight: <number>}]) <spend>
            | laplace(<cubes>, [{kind: "groups", labels: <items>, size: <number>, weight: 1}]) <spend>
            | laplace(<cubes>, hb_strategy(<cubes>)) <spend> | laplace(<cubes>, bucket_strategy(<items>, <queries>)) <spend>
            | least_cost_partition(<cube>, theta = <number>) <spend> | least_cost_partition(<cube>, decay = <number>) <spend>
            | <feature>({database: <cubes>, queries: <queries>}) <spend> | estimate(hb_strategy(<cubes>), <items>, <queries>)
            | estimate(identity_strategy(<cubes>), [laplace(<cubes>)], <queries>) <spend>
            | uniform_estimate(<cube>, <number>) | mwem_update(<items>, <items>, <items>, <items>, <number>)
            | argmax over a in columns(<table>) of len(a) | columns(<table>)[0].<field> | vectors_in(<text>)
            | laplace(<score>, epsilon = <amount>, via = "gaussian") | histograms.flat(<cube>, <queries>) <spend>""",
        "algorithm": "flat | uniform | hb | dawa | mwem | hdmm",
        "feature": "cells | rows | occupied | unevenness | height | reach | questions",
        # Sources
        "private table": """private <new table> = table("rows<fresh>.csv") described by {age: 0..99, sex: {"Female", "Male"},
            gain: 0.0..100000.0, hours: 0..60, note: text, free: real} protecting <protecting> budget <budget>""",
        "private cube": """private <new cube> = counts("cells<fresh>.npy") protecting rows budget <budget>
            | private <new cube> = counts("square<fresh>.npy") protecting rows budget <budget>""",
        "public table": """<new public table> = table("public.csv") | <new public table> = table("public.csv") described by
            {age: 0..99, sex: {"Female", "Male"}, gain: 0.0..100000.0, hours: 0..60}""",
        "public cube": "<new public cube> = counts([3, 0, 4, 90, 2, 0, 0, 1])"
        " | <new public cube> = counts([[3, 0, 4, 90], [2, 0, 0, 1]])",
        "source": "<private table> | <private table> | <private table> | <private table> | <private cube> | <private cube>"
        " | <public table> | <public cube>",
        "protecting": "rows | rows | rows | rows | rows | rows | rows | rows, public size | rows, at most 100 rows"
        " | rows, at most 100 rows | sex up to 2 rows | note up to 3 rows | note, sex up to 1 rows | note up to 2 rows weighted | sex up to 3 rows weighted | <bad unit>",
        "bad unit": "rows, at most 0 rows | nowhere up to 2 rows | note up to 1e12 rows",
        "budget": "epsilon 1 | epsilon 1.0 | epsilon 10 | epsilon 1000 | epsilon 3, delta 1e-6 | rho 0.5 | epsilon 100 | epsilon 8"
        " | epsilon 1, delta 1e-5 counted by basic | epsilon 20 | epsilon 5 | epsilon 50 | epsilon 4 | epsilon 2 | rho 3 | epsilon 1 | <bad budget>",
        "bad budget": "epsilon 1e-300 | epsilon 0 | epsilon 1, delta 2 | rho 1 counted by magic | epsilon <bad amount>",
        # Choices
        "option": "1 | 2 | laplace(data.database) | <number> | {{ select sum(values) from data.database }} | data | <name>",
        "featured": "1 | size(data.database) | {{ select sum(values) from data.database }} | laplace(size(data.database))"
        " | <number> | \"many\" | log(data.database.domain_size)",
        "utility": "1 | answers | -abs(answers - 3) | <number> | len(answers)",
        "trained": "{database: counts([1, 2])}, {database: counts([9, 9])} | {database: counts([1, 2])} | {database: <cubes>}"
        " | <name>",
        "share": "<nothing> | <nothing> | spending 0.2 | spending 2 | spending <number>",
    }.items()
}  # fmt: skip
