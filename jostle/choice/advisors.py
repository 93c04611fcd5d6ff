"""Advisors: choices that are called like functions, and whose policies ship with the library.

`advisor(choice, call)` is a ChoiceMaker with a face: `call(choice, …)` makes the record that the choice takes from what
a person gives, and may finish what it answers. Its policy stands in `stdlib/policies`, a readable file that
`python -m jostle.train` writes. The key of that file is deliberate: what the choice is among, what it looks at, its
model and a version, and no digest of code. So an edit which cannot change what was learned leaves it valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

from jostle import resources
from jostle.choice.explain import explain
from jostle.choice.learning import rounded, training_setting
from jostle.choice.maker import ChoiceMaker
from jostle.choice.policy import Policy, read_policy, write_policy
from jostle.choice.table import RunTable
from jostle.choice.training import train
from jostle.diagnostics import refuse
from jostle.records import replace
from jostle.run.evaluator import At, Evaluator, builtin
from jostle.run.operators import bound
from jostle.run.values import Builtin, Function, is_number, is_sequence, kind_name
from jostle.source import Span
from jostle.syntax.nodes import FEATURES
from jostle.version import __version__


class Advisor:
    """The value of `advisor(…)`: a ChoiceMaker, called with the arguments of `call` after its first.

    What a training draws is seeded from `seeds`, which stay while features and models are compared; "": from the key.
    `steady`: the place of an option and a margin, by which others have to be predicted to be better to be run; what is
    learned at a call, or anew from a person's own data, keeps it.
    """

    def __init__(
        self, choice: ChoiceMaker, call: object, version: int, epsilons: tuple[float, ...], seeds: str, ships: bool,
        steady: tuple[int, float] | None = None,
    ) -> None:  # fmt: skip
        self.choice, self.call, self.version, self.epsilons, self.seeds = choice, call, version, epsilons, seeds
        self.steady = choice.steady = steady
        if ships:
            choice.shipped = self.policy

    @property
    def name(self) -> str:
        """The name of the choice, which is the variable's that the advisor was first assigned to."""
        return self.choice.name

    @name.setter
    def name(self, name: str) -> None:
        self.choice.name = name

    def jostle_call(
        self, interp: Evaluator, args: Sequence[object], keywords: dict[str, object], span: Span | None
    ) -> object:
        """`best_histogram(cube, queries)`: what the choice answers."""
        if isinstance(self.call, Function):
            bound(self.name, self.call.params[1:], args, keywords)  # refuses too few, and too many
        return interp.call(self.call, [self.choice, *args], keywords, span)

    @property
    def jostle_fields(self) -> dict[str, object]:
        return self.choice.jostle_fields

    @property
    def jostle_parts(self) -> list[object]:
        return [self.call, *self.choice.jostle_parts]

    def jostle_explain(self) -> str:
        return self.choice.jostle_explain()

    # What ships ------------------------------------------------------------------------------------

    @property
    def key(self) -> str:
        """What the policy that ships was trained for."""
        choice = self.choice
        options, features = ", ".join(choice.parts.option_names), ", ".join(choice.parts.feature_names)
        at = f" at epsilon {', '.join(f'{e:g}' for e in self.epsilons)}" if self.epsilons else ""
        return f"{self.name} {self.version}: {options}; by {features}; {choice.model}{at}"

    @property
    def path(self) -> Path:
        return resources.folder("stdlib") / "policies" / f"{self.name}.json"

    def policy(self) -> Policy | None:
        """The policy that ships with the library, if one does for these options, features and model."""
        return _policy(self.path, self.key, self.steady)

    def train(self, interp: Evaluator, workers: int | None = None, progress: Any = None) -> Policy:
        """Trains the policy anew, for all amounts that it is to serve. All is drawn from `seeds`.

        Returns the same policy whatever the number of `workers` is.
        """
        from jostle.choice.policies import decide

        choice = self.choice
        bench, epsilon = training_setting(choice.bench(interp), choice.model, 1.0)
        table = train(
            bench, epsilon, choice.share, progress, key=self.seeds or self.key, workers=choice.workers or workers,
            epsilons=self.epsilons, thorough=True,
        )  # fmt: skip
        return decide(_rounded(table), choice.model, bench.predicts)

    def write(self, policy: Policy, path: Path) -> Path | None:
        """Writes a policy as it ships, with the version of the library, how it is made, and what `explain` shows."""
        about = {
            "library": __version__, "made": f"python -m jostle.train {self.name}",
            "seeds": f"drawn from {self.seeds or 'the key'}",
            "explained": explain(policy).splitlines(),
        }  # fmt: skip
        return write_policy(path, self.key, policy, about)


def _rounded(table: RunTable) -> RunTable:
    """The table with five digits of each number."""
    return replace(table, runs=tuple(
        replace(run, utilities=_digits(run.utilities), features=_digits(run.features))
        for run in table.runs
    ))  # fmt: skip


def _digits(value: Any) -> object:
    return tuple(map(_digits, value)) if isinstance(value, tuple) else rounded(value)


@cache
def _policy(path: Path, key: str, steady: tuple[int, float] | None) -> Policy | None:
    policy = read_policy(path, key)
    return policy if policy is None or steady is None else replace(policy, steady=steady)


@builtin
def _advisor(
    choice: Any, call: Any, *, version: Any = 1.0, epsilons: Any = None, seeds: Any = "", over: Any = None,
    margin: Any = 0.0,
) -> Advisor:  # fmt: skip
    _check_choice("advisor", choice)
    if choice.way != FEATURES:
        raise refuse("TypeError", f"an advisor learns, and a choice by {choice.way} does not", help="call the choice")
    if not isinstance(call, (Function, Builtin)):
        raise refuse(
            "TypeError", f"an advisor is called by a function, not {kind_name(call)}",
            help="such as `lambda choice, cube: choice({database: cube})`",
        )  # fmt: skip
    amounts = tuple(map(float, epsilons)) if is_sequence(epsilons) and all(map(is_number, epsilons)) else ()
    if not is_number(version) or (epsilons is not None and not (amounts and min(amounts) > 0)):
        raise refuse("ValueError", "the version of an advisor is a number, and its epsilons are a list of amounts")
    if over is not None and (over not in choice.parts.option_names or not is_number(margin) or not margin >= 0):
        raise refuse("ValueError", "`over` is the name of an Option of the choice, and `margin` a number from 0",
                     help="`over = \"Majority\", margin = 0.03`")  # fmt: skip
    steady = None if over is None else (choice.parts.option_names.index(over), float(margin))
    choice = copy(choice)  # a hidden run may make an advisor, and who has the choice sees nothing of it
    choice._policies, choice._benches, choice._steadied = [], dict(choice._benches), {}
    return Advisor(choice, call, int(version), amounts, str(seeds), True, steady)


@builtin
def _retrained(choice: Any, on: Any, *, at: At) -> Advisor | ChoiceMaker:
    """`retrained(best_histogram, on = mine)`: the same choice, which learns from `mine` at its first call."""
    interp, _ = at
    if isinstance(choice, Advisor):
        again = choice.choice.retrained(interp, on)
        return Advisor(again, choice.call, choice.version, choice.epsilons, choice.seeds, False, choice.steady)
    _check_choice("retrained", choice)
    alone: ChoiceMaker = choice.retrained(interp, on)
    return alone


def _check_choice(what: str, choice: object) -> None:
    if not isinstance(choice, ChoiceMaker):
        raise refuse("TypeError", f"`{what}` takes a ChoiceMaker, not {kind_name(choice)}")
