"""Published analyses as programs: what each answers beside the truth on the same rows, and beside the published error.

    python -m tests.experiments.ports [NAME …] [--write]

Programs stand in `tests/programs/ports/`, their tables in `ports_data.py`. A function here has the name of its program
and gives its answers, each with the truth that NumPy and pandas calculate of the rows; `ports_reference.py` has the
errors of the methods that were published. `--write` puts the table into `docs/experiments/ports.md`.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from jostle.tools.session import Result
from tests.experiments.ports_frame import PORTS, ROOT, Answer, Answers, Port, Tables, column, counts, one, port, terms
from tests.experiments.ports_reference import (
    analyze_gauss,
    apart,
    best_bound,
    by_policy,
    explained,
    greenwood,
    honaker,
    k_marginal,
    lasting,
    log_odds,
    mantel,
    opendp_theil_sen,
)  # fmt: skip

PAGE = ROOT / "docs" / "experiments" / "ports.md"


# Of the 158 ---------------------------------------------------------------------------------------


def takings(bids: Any, price: float) -> float:
    return float(price * (bids["bid"] >= price).sum())


@port("candidates of one's own in a selection", "158 awkward",
      "at most 2,157 less than the best with 95 % (McSherry and Talwar, 2Δ ln(11 · 20)/ε)")  # fmt: skip
def own_candidates(t: Tables, r: Result) -> Answers:
    prices, bids = [5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100], t["bids"]
    yield one(r, "takes", takings(bids, r["price"]))
    best = max(takings(bids, price) for price in prices)
    yield Answer("best price's takings", takings(bids, r["price"]), best, 2 * 100 / 0.5 * math.log(11 * 20), False)
    yield Answer("`middle`", r["middle"], min(p for p in prices if p >= bids["bid"].median()))


def pairs(points: Any) -> Any:
    x, y = (points[name].to_numpy().reshape(-1, 2) for name in "xy")
    slopes = (y[:, 1] - y[:, 0]) / (x[:, 1] - x[:, 0])
    low, high = (np.median((y[:, 0] + slopes * (at - x[:, 0])).clip(-20, 60)) for at in (2.5, 7.5))
    return (high - low) / 5, low - (high - low) / 2


@port("Theil–Sen", "158 awkward", opendp_theil_sen, now="awkward")
def theil_sen(t: Tables, r: Result) -> Answers:
    slope, intercept = pairs(t["points"])
    yield one(r, "slope", slope)
    yield one(r, "intercept", intercept)


@port(
    "logistic regression (both lists)",
    "158 awkward, 56 wrong",
    "0.017, 0.016, 0.022 root mean square, ten fits of diffprivlib 0.6.6 (objective perturbation)",
)
def logistic(t: Tables, r: Result) -> Answers:
    yield from terms(r["fit"], log_odds(t["loans"]))


def wakes(packets: Any) -> dict[int, set[int]]:
    first = packets.assign(slot=packets["at"] // 500).groupby(["flow", "slot"])["at"].min()
    seen = set(first.index)
    return {
        flow: {at // 40 for (f, slot), at in first.items() if f == flow and (f, slot - 1) not in seen}
        for flow in (1, 2, 3)
    }


@port(
    "stepping stones by time windows", "158 awkward", "the same plan in PINQ has the same 16 rows for one packet: ± 48"
)
def stepping_stones(t: Tables, r: Result) -> Answers:
    moments = wakes(t["packets"])
    for row, margin in zip(r["shared"], r.margins()["shared"], strict=True):
        both = moments[int(row["a"])] & moments[int(row["b"])]
        yield Answer(f"flows {row['a']:g}, {row['b']:g}", row["n"], len(both), margin["n"]["error"])


@port("restricted top-k; a top-k of an unknown domain", "158 awkward, 56 awkward",
      "± 30: Laplace noise on five counts with half of ε (peeling)")  # fmt: skip
def top_k(t: Tables, r: Result) -> Answers:
    persons = t["visits"].drop_duplicates().groupby("page").size()
    yield from column(r, "pages", "persons", persons[r["pages"]["page"]])
    yield Answer("pages shown", len(r["pages"]), 5)
    yield Answer("the most visited", float(r["among"]["page"][0] == "home"), 1)


@port("contingency tables with margins", "158 awkward", "± 18 a cell: three tables with a third of ε each (Laplace)")
def contingency(t: Tables, r: Result) -> Answers:
    people, cross = t["people"], r["cross"]
    cells = pd.crosstab(people["city"], people["age"])[["young", "middle", "old"]]
    for ours, true, error in zip(cross.cells, cells.to_numpy(), cross.errors, strict=True):
        yield from (Answer("a cell", *each) for each in zip(ours, true, error, strict=True))
    for total, city in zip(cross.row_totals, cells.sum(axis=1), strict=True):
        yield Answer("a margin", total, city, max(cross.row_errors))
    yield from column(r, "cities", "n", counts(people, "city"))
    yield Answer("cells less margins", sum(r["cells"]["n"]) - sum(r["cities"]["n"]), 0, 1e-6, False)


@port("custom combiners", "158 awkward", "the same: PipelineDP's compound combiner shares ε among its sums")
def combiners(t: Tables, r: Result) -> Answers:
    films = t["ratings"].groupby("film")["stars"]
    yield from column(r, "films", "geometric", films.agg(lambda stars: np.exp(np.log(stars).mean())))
    yield from column(r, "films", "raves", films.agg(lambda stars: (stars == 5).mean()))
    yield from column(r, "films", "weighted", films.agg(lambda stars: (stars**2).sum() / stars.sum()))


@port(
    "invariants",
    "158 awkward",
    "0 for what is invariant (Census 2020); ± 9 a block without: a third of ε for each table",
)
def invariants(t: Tables, r: Result) -> Answers:
    homes = t["homes"]
    yield from column(r, "towns", "n", [812, 1604, 391, 1193])
    yield from column(r, "blocks", "n", counts(homes, "block"))
    yield Answer("all uses", sum(r["uses"]["n"]), 4000)


@port("GANs", "158 impossible", "no bound is known; `single_gaussian` is nearer for less", now="awkward")
def gan(t: Tables, r: Result) -> Answers:
    made, points = np.array(r["made_up"]), t["points"]
    for at, name in enumerate("xy"):
        yield Answer(f"mean of {name}", made[:, at].mean(), points[name].mean(), 0.15, False)
        yield Answer(f"deviation of {name}", made[:, at].std(), points[name].std(), 0.1, False)


@port("bounds tuned by utility analysis", "158 impossible", best_bound)
def tuned_bounds(t: Tables, r: Result) -> Answers:
    orders = t["orders"]
    left = (orders.groupby("customer").cumcount() >= r["rows"]).mean()
    yield one(r, "left_out", left) if "left_out" in r.margins() else Answer("`left_out`", r["left_out"], left, 0.005)
    total = one(r, "total", orders["amount"].sum())
    yield replace(total, error=total.error + left * total.truth / 6)


def weeks(t: Tables, r: Result) -> Answers:
    visits = t["visits"]
    for week, name in enumerate(("first", "second", "third")):
        own = visits[(visits["day"] - pd.Timestamp("2026-01-05")).dt.days // 7 == week]
        yield from column(r, name, "n", counts(own, "page")[["home", "shop", "help"]])
    yield Answer("`left_in_fourth`", r["left_in_fourth"], 0.5)


port("weekly budgets; a budget refilled each week", "158 impossible, 56 impossible",
     "± 5.9 by formula with ρ 0.5 for each week; ± 20 where 12 weeks divide it")(weeks)  # fmt: skip
PORTS["weekly_budget"] = replace(PORTS.pop("weeks"), name="weekly_budget", tables="weekly_budget")


@port("order within a group: loss rate, packets out of order", "158 impossible",
      "no figure for whole flows (McSherry and Mahajan protect packets)")  # fmt: skip
def packet_order(t: Tables, r: Result) -> Answers:
    sent = t["packets"].sort_values(["flow", "at"])
    before = sent.groupby("flow")["number"].transform(lambda numbers: numbers.cummax().shift())
    yield one(r, "loss", sent.duplicated(["flow", "number"]).mean())
    yield one(r, "out_of_order", (sent["number"] < before).mean())


@port("sampled gradients; DP-SGD", "158 impossible, 56 impossible",
      "[within 0.2 points](learning.md) of a plain DP-SGD with the best of twelve paces")  # fmt: skip
def sampled_gradients(t: Tables, r: Result) -> Answers:
    for name, value, true in zip(("intercept", "income", "debt"), r["odds"], log_odds(t["loans"]), strict=True):
        yield Answer(name, value, true, 0.08, False)


@port("DP-FTRL", "56 impossible", "[figures](correlated.md) beside independent noise", tables="logistic")
def dp_ftrl(t: Tables, r: Result) -> Answers:
    yield from sampled_gradients(t, r)


PORTS["sampled_gradients"] = replace(PORTS["sampled_gradients"], tables="logistic")


# Of the 56 ----------------------------------------------------------------------------------------


@port("Census totals that are public; whole numbers", "56 awkward or impossible",
      "2.7 to 3.1 times [our squared error](joint.md#a-hierarchy-beside-top-down-least-squares)")  # fmt: skip
def census(t: Tables, r: Result) -> Answers:
    people = t["people"]
    yield from column(r, "states", "n", counts(people.assign(state=people["block"] // 40), "state"))
    yield from column(r, "counties", "n", counts(people.assign(county=people["block"] // 10), "county", "sex"))
    yield from column(r, "blocks", "n", counts(people, "block").reindex(range(80), fill_value=0))
    yield Answer("all cells", sum(r["cells"]["n"]), len(people))


@port("a deviation of one's own, from a private 99th percentile", "56 impossible",
      "1.96 σ, σ as asked for: 4, 2 and 1 times the percentile")  # fmt: skip
def own_sigma(t: Tables, r: Result) -> Answers:
    users = t["acts"].groupby(["action", "user"]).size()
    for row, margin, sigma in zip(r["actions"], r.margins()["actions"], (4, 2, 1), strict=True):
        own = users[row["action"]]
        error = margin["n"]["error"]
        yield Answer(f"{row['action']}s", row["n"], own.clip(upper=row["most"]).sum(), error)
        yield Answer("half-width over 1.96 σ", error / (1.96 * sigma * row["most"]), 1, 0.02, False)
        yield Answer("users below the percentile", (own < row["most"]).mean(), 0.99, 0.01, False)


@port("budgets of analysts", "56 awkward", "± 30 a title: Laplace noise on ten counts with half of ε 2 (peeling)")
def analysts(t: Tables, r: Result) -> Answers:
    members = t["members"]
    titles = members.drop_duplicates().groupby("title").size()
    yield from column(r, "titles", "n", titles[r["titles"]["title"]])
    yield from column(r, "regions", "n", [3000] * 3)
    yield Answer("`left_for_places`", r["left_for_places"], 0.1)


@port(
    "retry until accepted (Israel's births)",
    "56 awkward",
    "the price: 2 runs for any number of them (Liu and Talwar), as here",
)
def births(t: Tables, r: Result) -> Answers:
    if r["passed"] is None:  # all runs failed, or there was none
        return
    made, true = r["passed"]["made"].frame(), t["births"]
    gaps = counts(made, "month", "parity").sub(counts(true, "month", "parity"), fill_value=0)
    margin = r.margins()["passed"]["score"]
    yield Answer("`score`", margin["value"], -math.sqrt((gaps**2).sum() / 48), margin["error"])
    yield Answer("passed", float(margin["value"] >= -12), 1)


@port("TPC-H Q12 (a join along a key); Q1 (a ± without the bound's bias)", "56 awkward",
      "± 3,900 for `quantity`: Laplace noise for 21 rows of 50, a fifth of ε 4")  # fmt: skip
def tpch(t: Tables, r: Result) -> Answers:
    lines = t["lines"]
    paid = lines.assign(paid=lines["price"] * (1 - lines["discount"]))
    flags = paid.groupby("flag")
    for name in ("quantity", "price", "paid"):
        for answer in column(r, "pricing", name, flags[name].sum()):
            yield replace(answer, error=answer.error + 0.01 * answer.truth / 6)  # what is left out, with 95 %
    yield from column(r, "pricing", "mean", flags["quantity"].mean())
    late = lines.merge(t["orders"], on="orderkey").query("late")
    yield from column(r, "modes", "n", counts(late, "mode", "priority").reindex(["MAIL", "SHIP", "RAIL"], level=0))
    yield Answer("marks of what is cut", float(r["pricing"]["price_cut"].str.contains("up to").all()), 1)


@port("NIST's k-marginal score: made-up rows as a table", "56 awkward", apart)
def nist(t: Tables, r: Result) -> Answers:
    made = r["made"].frame()
    yield Answer("score of 1,000", k_marginal(made, t["survey"]), 1000, 25, False)
    by = r["by_county"].set_index("county")
    yield Answer("mean of a table of them", by["income"][3], made[made["county"] == 3]["income"].mean())


@port("heavy hitters without empty parts; bigrams; TrieHH", "56 awkward",
      "TrieHH keeps what θ persons of a sample share, and gives no counts (Zhu and others 2020)")  # fmt: skip
def heavy_hitters(t: Tables, r: Result) -> Answers:
    parts = t["notes"].assign(word=t["notes"]["text"].str.split(" ")).explode("word", ignore_index=True)
    beside = parts.assign(after=parts.groupby("person")["word"].shift(-1)).dropna().query("word != '' and after != ''")
    words = parts.query("word != ''")
    persons = words.drop_duplicates(["person", "word"]).groupby("word").size()
    yield from column(r, "words", "n", persons[r["words"]["word"]])
    grams = beside.assign(gram=beside["word"] + " " + beside["after"]).drop_duplicates(["person", "gram"])
    yield from column(r, "pairs", "n", counts(grams, "gram")[r["pairs"]["gram"]])
    for length, level in enumerate(r["starts"], 1):
        begins = words[words["word"].str.len() >= length].assign(start=words["word"].str[:length])
        true = begins.drop_duplicates(["person", "start"]).groupby("start").size()
        yield from column(r, level, "n", true[level["prefix"]])


@port("set union", "56 direct (39 for 157)", by_policy)
def set_union(t: Tables, r: Result) -> Answers:
    yield Answer("words", len(r["words"]), 197, 6, False)  # the mean of five draws in docs/privacy/mechanisms.md
    yield Answer("of persons", len(set(r["words"]["word"]) - set(t["known"]["word"])), 0)


@port("Kaplan–Meier with its interval; log-rank; Cox", "56 awkward", greenwood)
def survival(t: Tables, r: Result) -> Answers:
    patients = t["patients"]
    own = patients[patients["arm"] == "drug"]
    for row, true in zip(r["drug"].rows, lasting(own), strict=True):
        yield Answer(f"beyond month {row['time']:g}", row["value"], true, row["error"])
    expected, beta = mantel(patients)
    yield Answer("expected deaths, drug", r["test"].rows[1]["expected"], expected, 12, False)
    ratio = r["ratios"].rows[0]
    yield Answer("log of the hazard ratio", ratio["value"], beta, ratio["error"])


@port("PCA under (ε, δ)", "56 direct (with Laplace noise)", analyze_gauss)
def pca(t: Tables, r: Result) -> Answers:
    yield Answer("Gaussian noise", float(r["mechanism"] == "gaussian"), 1)
    yield Answer("variance of two components", explained(t, np.array(r["components"]["vectors"])), 1, 0.001, False)


@port("continual counts; a sliding window", "56 awkward",
      honaker)  # fmt: skip
def running(t: Tables, r: Result) -> Answers:
    days = counts(t["logins"], "day").reindex(range(182), fill_value=0)
    yield from column(r, "so_far", "n", days.cumsum())
    for margin, true in zip(r.margins()["week"], days.rolling(7, min_periods=1).sum(), strict=True):
        yield Answer("last seven days", margin["value"], true, margin["error"])


@port("private tuning (Liu–Talwar; Papernot–Steinke)", "56 impossible",
      "3 ε of a run for a mean of 10 runs (Papernot and Steinke, geometric), as here")  # fmt: skip
def tuning(t: Tables, r: Result) -> Answers:
    if r["best"] is None:  # no run was drawn
        return
    loans, margin = t["loans"], r.margins()["best"]["score"]
    bins = {name: np.searchsorted([-1, 0, 1], loans[name], side="right") for name in ("income", "debt")}
    tree = r["best"]["tree"]
    said = np.array(tree.predict({**bins, "age": loans["age"].to_numpy()}))
    yield Answer("right of half of the rows", margin["value"], (said == loans["fails"]).sum() / 2, margin["error"] + 60)


@port(
    "recommender: covariances of items by person",
    "56 direct, noisier",
    "the same: an L2 bound on all that a user adds (McSherry and Mironov)",
)
def recommender(t: Tables, r: Result) -> Answers:
    users = t["ratings"].assign(liked=t["ratings"]["stars"] - 3).pivot(index="user", columns="film", values="liked")
    rows = users.fillna(0).to_numpy()
    rows = rows * np.minimum(1, 4 / np.maximum(np.linalg.norm(rows, axis=1), 1e-9))[:, None]
    for name, ours, true in zip(("A", "B"), np.array(r["covariance"])[0], (rows.T @ rows / len(rows))[0], strict=False):
        yield Answer(f"A with {name}", ours, true, 0.06, False)


@port("weighted medians", "56 awkward", "none known to us")
def weighted_medians(t: Tables, r: Result) -> Answers:
    rows = t["survey"].sort_values("income")
    below = rows["weight"].cumsum() / rows["weight"].sum()
    for row in r["quartiles"].rows:
        true = rows["income"][below >= row["quantile"]].iloc[0]
        yield Answer(
            f"quantile {row['quantile']}",
            row["value"],
            true,
            max(row["high"] - row["value"], row["value"] - row["low"]),
        )


@port(
    "± of medians in values (College Scorecard)",
    "56 direct (± in ranks)",
    "the exponential mechanism alone: no interval",
)
def medians(t: Tables, r: Result) -> Answers:
    yield from column(r, "earnings", "middle", t["students"].groupby(["college", "pell"])["earnings"].median())


@port(
    "budgets by date of a row",
    "56 impossible",
    "± 3 by formula: three groups at ε 2.64 (Google's: ± 3.4, ε 0.88 for each place)",
)
def dated_budget(t: Tables, r: Result) -> Answers:
    moves = t["moves"].drop_duplicates()
    for week, frame in enumerate(r["mondays"]):
        own = moves[moves["day"] == pd.Timestamp("2026-02-02") + pd.Timedelta(days=7 * week)]
        yield from column(r, frame, "n", counts(own, "place")[["work", "shop", "park"]])
    yield Answer("`left_on_tuesday`", r["left_on_tuesday"], 2.64)


def row(port: Port) -> str:
    """Runs a port: its line of the table on the page. What is too far from the truth is printed."""
    start = time.process_time()
    tables, result = port.run()
    answers = list(port.answers(tables, result))
    print(f"{port.name}: {time.process_time() - start:.1f} s", *(a for a in answers if not a.held()), flush=True)
    noisy = [a for a in answers if a.reported and a.error]
    held = sum(abs(a.value - a.truth) <= a.error for a in noisy)
    first = [str(a) for at, a in enumerate(answers) if a.what not in [b.what for b in answers[:at]]][:3]
    said = "; ".join([*first, *[f"{held} of {len(noisy)} within ±"][: len(noisy) > 2]])
    return f"| {port.of} | {port.was} | {port.now} | `{port.name}` | {said} | {port.published(tables)} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="programs; all where none is named")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    head = ["| analysis | was | is | program | answer ± for truth | published |", "|---|---|---|---|---|---|"]
    table = "\n".join([*head, *(row(PORTS[name]) for name in arguments.names or PORTS)])
    print(table)
    if arguments.write:
        between = re.compile("(?<=<!-- ports -->\n).*(?=\n<!-- end of ports -->)", re.DOTALL)
        PAGE.write_text(between.sub(lambda _: table, PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
