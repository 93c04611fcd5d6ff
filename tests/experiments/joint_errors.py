"""Wanted errors of `jointly` blocks: how often they hold, and how much less would do.

    python -m tests.experiments.joint_errors --blocks 1000 --drawn 36 --write

Generated blocks run on a table of 2,000 simulated rows, and their answers are compared with the exact ones. Of the
worst answer of the first blocks, as many as are to be `drawn`, the noise is drawn 100,000 times at the amount that was
found, and at 1 % less.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jostle.error_laws import sum_quantile
from jostle.noise_laws import Gaussian
from jostle.privacy.mechanisms.additive import Additive
from jostle.records import replace
from jostle.run.jointplan import JointPlan
from jostle.source import Source
from jostle.tools.session import Session

PAGE = Path(__file__).resolve().parents[2] / "docs" / "experiments" / "joint.md"
SCHEMA = '{v: 0..19, town: {"A1", "A2", "A3", "B1", "B2", "C1"}, sex: {"F", "M"}}'
KEYS = ["", "town", "sex", "v / 5", "town, sex", "v / 5, sex", "substring(town,1,1)", "substring(town,1,1), sex",
        "v / 10, v / 5", "sex, town, v / 10"]  # fmt: skip
WHERE = ["", "", 'where town == "A1"', "where v > 9", 'where sex == "F" and v < 15', "where v > 4 and town != sex"]
BUDGETS = {"epsilon": "epsilon 1e5", "rho": "rho 1e5", "delta": "epsilon 1e4, delta 1e-4"}
SESSION = 20  # blocks of a budget that are asked in one session
DRAWS = 100_000


def block(rng: random.Random, unit: str) -> str:
    """A block, with errors of counts from 4 to 300 and of sums from 100 to 3,000."""

    def select(i: int) -> str:
        keys = rng.choice(KEYS)
        by = ", ".join(f"{part} as k{j}" for j, part in enumerate(keys.split(", "))) if keys else ""
        term, error = rng.choice([("count(*)", ""), ("count(*)", ""), ("count(v)", ""), ("sum(v)", "sums")])
        if error:
            error = f"with error {rng.choice([100, 250.5, 800, 3000])}"
        elif rng.random() < 0.3:
            error = f"with error {rng.choice([4, 9.5, 33, 120, 300])}"
        grouped = f"groupby {by}" if by else ""
        return f"    a{i} = {{{{ select {term} as n from known {rng.choice(WHERE)} {grouped} {error} }}}}"

    wanted = f"{rng.choice([5, 10, 12.9, 25, 60.5, 200])}{' delta 1e-6' if unit == 'delta' else ''}"
    body = [select(i) for i in range(rng.randrange(1, 7))]
    return "\n".join([f"jointly with error {wanted} {{", *body, "}", *(f"release a{i}" for i in range(len(body)))])


@dataclass
class Tally:
    """What is counted: answers within their wish, of all and of those whose error is just their wish."""

    answers: int = 0
    inside: int = 0
    just: int = 0
    just_inside: int = 0
    blocks: int = 0
    drawn: int = 0  # blocks of whose worst answers noise is drawn
    least: float = 1.0  # the smallest share of draws of a worst answer that keeps its wish
    too_little: int = 0  # blocks for which 1 % less is too little


def flat(value: Any) -> list[float]:
    return [float(x) for x in value.columns["n"]] if hasattr(value, "columns") else [float(value)]


def wished(text: str) -> Iterator[float]:
    lines = text.split("\n")
    whole = float(lines[0].split()[3])
    for line in lines[1:]:
        if "select" in line:
            yield float(line.split("with error ")[1].split()[0]) if "with error" in line else whole


def noise(rng: np.random.Generator, gaussian: bool, scale: float, weights: Any, factors: Any) -> Any:
    """Draws of a weighted sum of the numbers of a block, discrete as they are drawn; a Gaussian one from σ = 1 on."""
    total = np.zeros(DRAWS)
    for weight, factor in zip(weights, factors, strict=True):
        if gaussian:
            drawn = np.rint(rng.normal(0, np.sqrt((scale * factor) ** 2 - 1 / 12), DRAWS))
        else:
            p = -np.expm1(-1 / scale)
            drawn = rng.geometric(p, DRAWS) - rng.geometric(p, DRAWS)
        total += weight / factor * drawn
    return total


def worst(rng: np.random.Generator, plan: JointPlan) -> tuple[float, float]:
    """Of the answers that are widest for their wishes, the smallest share of draws that keep them: at the amount, and
    at 1 % less.
    """
    kind, measurement = plan.measurement.how.kind, plan.measurement
    answers: list[tuple[float, Any, int, float]] = []
    for one, queries, deviations in zip(plan.asked, plan.queries, plan.deviations, strict=True):
        for query in queries:
            variances, wanted = plan.strategy.variances(query), one.wanted or 0.0
            for where in np.ndindex(*(len(query.factors[axis].alike[0]) for axis in sorted(query.factors))):
                at = tuple(
                    query.factors[axis].alike[0][i] for axis, i in zip(sorted(query.factors), where, strict=True)
                )
                unit = float(deviations[0].max() / np.sqrt(variances.max()))
                place = int(np.ravel_multi_index(at, variances.shape)) if at else 0
                answers.append((float(np.sqrt(variances[at])) * unit / wanted, query, place, wanted))
    answers.sort(key=lambda one: -one[0])
    widest = [one for one in answers if one[0] > answers[0][0] / (1.09 if kind is not Gaussian else 1.03)][:3]
    amount = replace(measurement.how.amount, value=int(measurement.how.amount.value * 0.99))
    finer = Additive.of(amount, None, measurement.table.measures).law(1, 1).scale / measurement.how.law(1, 1).scale
    shares = []
    for factor in (1.0, finer):
        kept = 1.0
        for _, query, place, wanted in widest:
            total: Any = 0.0
            for at, weights in plan.strategy.coefficients(query, place):
                numbers, used = measurement.blocks[at], weights != 0
                unit = 2.0 ** -getattr(numbers.term, "bits", 0)
                factors = np.ones(weights.shape) if not numbers.residual else measurement.widths()[at].ravel()
                scale = measurement.scale(numbers) * factor
                total = total + unit * noise(rng, kind is Gaussian, scale, weights[used], factors[used])
            kept = min(kept, float((np.abs(total) <= wanted * (1 + 1e-12)).mean()))
        shares.append(kept)
    return shares[0], shares[1]


def _released(session: Session, text: str) -> dict[str, Any]:
    """What a block releases, by name."""
    session.execute(Source("block", text))
    names = [line.split()[1] for line in text.split("\n") if line.startswith("release ")]
    return {name: session.names()[name] for name in names}


def run(blocks: int, drawn: int) -> dict[str, Tally]:
    rng, numbers = random.Random(11), np.random.default_rng(12)
    rows = ["v,town,sex", *(f"{rng.randrange(20)},{rng.choice(['A1', 'A2', 'A3', 'B1', 'B2', 'C1'])},{rng.choice('FM')}"
                            for _ in range(2000))]  # fmt: skip
    plans: list[JointPlan] = []
    found = JointPlan.within.__func__  # type: ignore[attr-defined]

    def kept(cls: type[JointPlan], *facts: Any) -> JointPlan:
        plans.append(found(cls, *facts))
        return plans[-1]

    JointPlan.within = classmethod(kept)  # type: ignore[assignment, method-assign]
    tallies = {unit: Tally() for unit in BUDGETS}
    derived = 'known = derive(t, town = coalesce(town, "A1"), sex = coalesce(sex, "F"))\n'
    sessions: dict[str, Session] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
        for at in range(blocks):
            unit = list(BUDGETS)[at % len(BUDGETS)]
            text, tally = block(rng, unit), tallies[unit]
            base = f'table("{path}") described by {SCHEMA}'
            if tally.blocks % SESSION == 0:
                sessions[unit] = Session()
                declared = f"private t = {base} protecting rows budget {BUDGETS[unit]}\n{derived}"
                sessions[unit].execute(Source("private", declared))
            if at == 0:
                sessions["truth"] = Session()
                sessions["truth"].execute(Source("public", f"t = {base}\n{derived}"))
            told, truth = (_released(sessions[name], text) for name in (unit, "truth"))
            plan = plans[-1]
            tally.blocks += 1
            for name, wanted, deviations in zip(told, wished(text), plan.deviations, strict=True):
                wide = deviations[0] * sum_quantile(plan.measurement.how.kind)
                pairs = zip(flat(told[name]), flat(truth[name]), wide, strict=True)
                for answer, exact, width in pairs:
                    inside = abs(answer - exact) <= wanted
                    tally.answers += 1
                    tally.inside += inside
                    tally.just += width > 0.97 * wanted
                    tally.just_inside += inside and width > 0.97 * wanted
            if at >= drawn:
                continue
            here, less = worst(numbers, plan)
            tally.drawn += 1
            tally.least = min(tally.least, here)
            tally.too_little += less < 0.951
    return tallies


def _drawn(tally: Tally) -> str:
    if not tally.drawn:
        return "– | –"
    return f"{tally.least:.2%} at least | {tally.too_little} of {tally.drawn} blocks"


def page(tallies: dict[str, Tally], blocks: int) -> str:
    """The part of the page that this writes."""
    names = {"epsilon": "ε (Laplace)", "rho": "ρ (Gaussian)", "delta": "ε and δ (Gaussian)"}
    lines = ["| budget | blocks | answers within their wish | of those with no room | worst answer, by draws "
             "| 1 % less is too little |", "|---|---|---|---|---|---|"]  # fmt: skip
    lines += [
        f"| {names[unit]} | {t.blocks} | {t.inside / t.answers:.2%} of {t.answers:,} | {t.just_inside / t.just:.2%} of "
        f"{t.just:,} | {_drawn(t)} |"
        for unit, t in tallies.items()
    ]
    return "\n".join(lines)


def write(part: str, text: str, page: Path = PAGE) -> None:
    """Puts a text between the marks of a part of a page; all else of it stays."""
    before, rest = page.read_text(encoding="utf-8").split(f"<!-- {part} -->\n", 1)
    after = rest.split(f"<!-- end of {part} -->", 1)[1]
    page.write_text(f"{before}<!-- {part} -->\n{text}\n<!-- end of {part} -->{after}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--drawn", type=int, default=30)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    told = page(run(options.blocks, options.drawn), options.blocks)
    print(told)
    if options.write:
        write("errors", told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
