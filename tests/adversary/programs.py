"""Programs of the neighbours harness: what analysts write, and what somebody would write to make a row show."""

from __future__ import annotations

from hostile import DESCRIBED

ROWS = f'private t = table("t.csv") described by {DESCRIBED} protecting rows budget epsilon 50\n'
PERSONS = f'private t = table("t.csv") described by {DESCRIBED} protecting id up to 3 rows budget epsilon 50\n'
DELTA = f'private t = table("t.csv") described by {DESCRIBED} protecting rows budget epsilon 20, delta 1e-5\n'
RHO = f'private t = table("t.csv") described by {DESCRIBED} protecting rows budget rho 5\n'

WILD = (
    "1 / age", "age / hours", "income / income", "log(income)", "sqrt(income)", "exp(income)", "income ^ income",
    "0 ^ income", "income ^ 0.5", "income % hours", "hours % 0", "income * income * income", "-income",
    "income - income", "abs(income) ^ 300", "floor(income)", "ceil(income / 1e-300)", "round(income * 1e300)",
    "min(income, 1 / hours)", "max(income, log(hours))", "clamp(income, hours, age)", "id * id * id * id",
    "id % age", "age if income > 0 else id", "exp(exp(hours))", "1 / (1 / income)",
)  # fmt: skip

PROGRAMS: dict[str, str] = {
    "counts of every kind": ROWS
    + """
n = {{ select count(*) as a, count(age) as b, count(income) as c, count(distinct note) as d, count(distinct id) as e,
       count(distinct income * 1e300) as f from t with epsilon 5 }}
print(n)
print(error(n.a), spent(t), left(t))
release n
""",
    "averages and spreads": ROWS
    + """
s = {{ select sum(hours) as s, avg(age) as m, var(hours) as v, stddev(age) as d, sum(clamp(income, -10, 1e6)) as c
       from t where age > 10 with epsilon 10 }}
print(s)
release s
""",
    "quantiles and modes": ROWS
    + """
q = {{ select median(age) as a, quantile(hours, 0.25) as b, min(hours) as c, max(age) as d, mode(city) as e,
       mode(age) as f, bounds(income) as i, median(clamp(income, -1e300, 1e300)) as g from t with epsilon 10 }}
print(q)
h = {{ select median(hours) as m, mode(sex) as s from t groupby city with epsilon 2 }}
for row in h: print(row.city, row.m, row.s)
release q
""",
    "groups": ROWS
    + """
g = {{ select count(*) as n, avg(hours) as h from t groupby sex, age / 25 as quarter with epsilon 5 }}
k = {{ select count(*) as n from t groupby note over {"note 1", "Other", "", "'"}, id over 1..4 with epsilon 5 }}
j = {{ select count(*) as n, sum(age) as s from t groupby city == "Ames" as home with epsilon 5 }}
print(g)
print(k)
print(argmax over r in g of r.n)
release j
""",
    "row functions at their edges": ROWS
    + "".join(
        f"w = derive(t, w = ({e}))\nprint({{{{ select count(w) as n, sum(clamp({e}, 0, 9)) as s, "
        f"count(distinct w) as d from w where ({e}) < 1e9 or w != ({e}) with epsilon 1.5 }}}})\n"
        for e in WILD
    ),
    "texts": ROWS
    + """
a = {{ select count(*) from t where note == "note 1" or note == "'); DROP TABLE raw0; --" with epsilon 1 }}
b = {{ select count(*) from t where note in {"é", "e", "NULL", ""} and born < "1970" with epsilon 1 }}
c = {{ select count(note if sex == "Male" else born) from t where not (note > "n") with epsilon 1 }}
release a
release b
release c
""",
    "keys that are found": DELTA
    + """
g = {{ select count(*) as n from t groupby note with epsilon 0.5 delta 1e-6 }}
h = {{ select count(*) as n, avg(age) as a from t groupby id with epsilon 0.5 delta 1e-6 }}
i = {{ select count(*) as n from t groupby income / hours with epsilon 0.5 delta 1e-6 }}
print(len(g), len(h), len(i), g.n)
print(spent(t), left(t))
release h
""",
    "gaussian noise": RHO
    + """
a = {{ select count(*) as n, sum(age) as s from t groupby city with rho 0.5 }}
b = laplace(histogram(t, x = age / 10)) with rho 0.5
print(a)
print(b)
release a
""",
    "persons": PERSONS
    + """
n = {{ select count(*) as n, sum(hours) as s, count(distinct id) as p from t with epsilon 3 }}
d = {{ select count(*) from derive(t, id = 0) groupby id over {0, 1} with epsilon 3 }}
print(n, error(n.n))
release d
""",
    "parts within parts": ROWS
    + """
for key, part in partition(t, sex):
    for city, inner in partition(part, city):
        n = {{ select count(*) from inner with epsilon 1 }}
        print(key, city, n, spent(t), left(inner))
    m = {{ select avg(age) from part with epsilon 1 }}
for key, part in partition(t, age / 40, over = {0, 1, 9}): print(key, {{ select count(*) from part with epsilon 1 }})
x = {{ select count(*) from t[sex = "Male", age = 7] with epsilon 1 }}
""",
    "derived and derived again": ROWS
    + """
a = derive(t, rate = income / hours, age = age * 1000 % 7, city = city if sex == "Male" else "Moon")
b = derive(a, rate = log(rate) ^ 2, flag = age > 3)
c = pick(where(b, rate > 0 or rate <= 0), age, rate, city, flag)
n = {{ select count(rate) as n, sum(clamp(rate, 0, 50)) as s, sum(age) as a, sum(flag) as f, mode(city) as m
       from c with epsilon 5 }}
print(n)
release n
""",
    "histograms": ROWS
    + """
use histograms
h = histogram(t, x = age / 10, y = city)
w = rectangles(h, 20)
print(laplace(h) with epsilon 1)
print(hb(h, w) with epsilon 1)
print(dawa(h, w) with epsilon 1)
print(mwem(h, w, 3) with epsilon 1)
print(uniform(h, w) with epsilon 1)
print({{ select sum(values) as s, count(values) as n, max(values) as m from h groupby x / 3 with epsilon 1 }})
print({{ select count(values) from h where values > 0 and y == 1 with epsilon 1 }})
release spent(t)
""".replace("release spent(t)", "s = spent(t)\nrelease s"),
    "scores and selections": ROWS
    + """
h = histogram(t, x = age)
g = histogram(t, x = hours)
print(laplace(size(h)) with epsilon 1)
print([(laplace(s) with epsilon 1) for s in [nonzero(h), l1_to_uniform(g), largest_cell(h)]])
print(noisy_max([size(p[1]) for p in partition(t, city)]) with epsilon 1)
print(exp_mech(domain = ["a", "b"], utilities = [size(h), nonzero(g)]) with epsilon 1)
""",
    "features": ROWS
    + """
use features
use histograms
h = histogram(t, x = age)
data = {database: h, queries: prefixes(h)}
for f in [cell_count, questions, reach, rows, occupied, unevenness, height]: print(f(data) with epsilon 1)
""",
    "joins": ROWS
    + """
private u = table("t.csv") described by {id: integer, age: 0..99, city: {"Ames", "Cork"}}
    protecting rows budget epsilon 50
cities = table("cities.csv")
a = {{ select count(*) as n, sum(age) as s from t join cities on city with epsilon 2 }}
b = {{ select count(*) from t join u on id up to 2 with epsilon 2 }}
c = {{ select count(*) from t join t on id, age up to 1 where income > 0 with epsilon 2 }}
d = {{ select sum(hours) from t join cities on city groupby region over {"north", "south", "none"} with epsilon 2 }}
print(a, b, c, d)
print(spent(t), spent(u))
""",
    "tables of other shapes": ROWS
    + """
private u = table("t.csv") described by {id: integer, age: 0..99, city: {"Ames", "Cork"}}
    protecting rows budget epsilon 50
cities = table("cities.csv")
both = union(pick(t, age, city), pick(u, city, age))
a = {{ select count(*) as n, sum(age) as s from both groupby city with epsilon 2 }}
b = {{ select count(*) as n, count(region) as r from t left join cities on city with epsilon 2 }}
c = {{ select count(*) as n, sum(age) as s from cities left join t on city groupby region with epsilon 2 }}
d = {{ select count(*) from pick(t, id, hours) full join derive(u, who = id) on id = who up to 2 with epsilon 2 }}
e = explode(t, item = [age, hours, income / hours], what = ["age", "hours", "pay"])
f = {{ select count(*) as n, sum(clamp(item, -9, 99)) as s from e groupby what with epsilon 2 }}
g = {{ select count(*) as n, median(age) as m from t
       groupby (city, sex) over [("Ames", "Female"), ("Cork", "Male"), ("Nowhere", "Male")] with epsilon 2 }}
h = {{ select count(*) as n from t groupby (city, hours > 20) over [("Ames", true), ("Ames", false)] with epsilon 2 }}
print(a, b, c, d, f, g, h, spent(t), spent(u), e.columns)
""",
    "combinations that are found": DELTA
    + """
print({{ select count(*) as n from t groupby city, sex, born with epsilon 0.5 delta 1e-7 }})
print({{ select count(*) as n, avg(age) as a from t groupby note, age with epsilon 0.5 delta 1e-7 }})
""",
    "agents, closures and recursion": ROWS
    + """
use pinq
guest = agent(t, 3)
def ask(d, n) { return [] if n == 0 else [noisyCount(d, 0.5)] + ask(where(d, age > n), n - 1) }
asked = lambda d: noisyMedian(d, "hours", 0.25)
print(ask(guest, 4), asked(guest), left(t), spent(t))
print(noisyAvg(agent(guest, 0.5), "age", 0.5))
""",
    "adaptive questions": ROWS
    + """
low = 0
high = 99
for i in 1..6:
    middle = floor((low + high) / 2)
    n = {{ select count(*) from t where age <= middle with epsilon 0.5 }}
    if n < 2: low = middle
    else: high = middle
    print(i, low, high, n)
release low
""",
    "stopped by the budget": ROWS
    + """
for i in 1..100:
    n = {{ select count(*) from t where income > i * 1e306 with epsilon 7 }}
    print(n)
release n
""",
    "stopped by arithmetic": ROWS
    + """
n = {{ select count(*) from t where income != income with epsilon 1 }}
print(n)
for i in 0..5: print(1 / (n - i))
""",
    "stopped by an assertion": ROWS
    + """
n = {{ select avg(age) from t where hours / age > 1 with epsilon 1 }}
release n
assert n > 1000, "the mean was " + str(n)
""",
    "a choice": ROWS
    + """
use histograms
use features
A = Option (data) { return flat(data.database, data.queries) }
B = Option (data) { return uniform(data.database, data.queries) }
close = Utility (data, answers) { return -rmse(answers, exact(data.queries, data.database)) }
learnt = [counts([if_big(i, k) for i in 0..15]) for k in 1..6]
choose = MkChoiceMaker among {A, B} informed by {rows, height}
    trained on { {database: db, queries: prefixes(db)} for db in learnt } spending 0.2 wrt close
h = histogram(t, x = clamp(age / 6, 0, 15))
print(choose({database: h, queries: prefixes(h)}) with epsilon 2)
print(explain(choose))
""".replace("learnt =", "def if_big(i, k): return i * k * k if i % k == 0 else k\nlearnt ="),
    "mistakes after looking": ROWS
    + """
n = {{ select count(*) from t where note > born with epsilon 1 }}
x = {{ select sum(income) from t with epsilon 1 }}
""",
}
