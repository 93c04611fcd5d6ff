"""Selects a policy: the candidates, their cross-validation by data set, and the choice among them.

"Spend nothing, take the single best option" always competes; a policy that pays for features is judged with what is
left of epsilon, while the best possible is judged with all of it. All from the table of runs. Rows come in groups (one
instance: its epsilons and draws), which a bootstrap takes whole; bootstraps are drawn by hashing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from msgspec import Struct

from jostle.choice import models
from jostle.choice.policy import SINGLE_BEST, Policy, Standing
from jostle.choice.table import EPSILON, OTHERS, Predict, RunTable, Setting, UtilityScale, finite
from jostle.lazy import NDArray, np
from jostle.records import field_names, replace


def _bootstraps(groups: models.Groups, count: int) -> list[NDArray[np.intp]]:
    """The rows of as many groups as there are, drawn with replacement, so many times."""
    names, many = np.unique(groups, return_counts=True)
    order, begins = np.argsort(groups, kind="stable"), np.cumsum(many) - many
    samples = []
    for number in range(count):
        bytes_ = hashlib.shake_256(f"bootstrap {number}".encode()).digest(8 * len(names))
        sample = np.frombuffer(bytes_, dtype="<u8") % np.uint64(len(names))
        sizes = many[sample]
        places = np.arange(sizes.sum()) + np.repeat(begins[sample] - (np.cumsum(sizes) - sizes), sizes)
        samples.append(order[places])
    return samples


Predicts = tuple[Predict | None, ...]
CHEAP = 0.003
"""A share of epsilon that costs less than anyone would notice: 0.3 % of the error."""

EXPENSIVE = 0.03
"""A share from which on a cheaper look decides first whether it pays, where the program names no share."""

TIMES = 2.9, 11.0
"""Between which the share of a second look is in units of that of the first: three to ten times."""

NO_WORSE = 0.01
"""A policy that pays may be worse than the single best option, at a size of data, by what it is better on the whole and
1 % of the error or twice its share, whichever is more; beyond that only within a standard error, since of a dozen data
sets one size is often worse by chance. A look whose cost is lost where rows are few must not be forgone where it saves
much."""

ONE_ERROR = 0.8413
"""How likely a normal number is at most one standard deviation above its mean."""

FOLDS = 24
"""Of more data sets several are left out at a time: a fit without each of a hundred tells hardly more."""

FALLBACK_SHARE = 0.03
"""The share taken where nothing can be cross-validated and nothing is free."""


class Candidate(Struct, frozen=True):
    """A policy before it is fitted: which features it reads, under which setting of the table, and what is public
    besides (`extra`: epsilon, as its logarithm). `further`: a second look at the same features, whose share is that of
    both."""

    name: str
    share: float
    setting: int
    features: tuple[str, ...]
    extra: tuple[str, ...] = ()
    further: Candidate | None = None

    @property
    def most(self) -> float:
        """The share that it may spend in all."""
        return self.share if self.further is None else self.further.share

    @property
    def columns(self) -> tuple[str, ...]:
        return self.features + self.extra

    @property
    def learned(self) -> bool:
        return self.name != SINGLE_BEST


class View(Struct, frozen=True):
    """The rows that a candidate learns from: one for each run and draw.

    `x` (n, columns) features as measured; `y` (n, options) scores with what the candidate leaves of epsilon;
    `best` (n,) the best score with all of it; `database`, `instance` (n,) where a row comes from; `size` (n,) the
    multiple of the given data. `again` and `less`: `x` and `y` of a second look, without columns where there is none.
    """

    x: models.Array
    y: models.Array
    best: models.Array
    database: NDArray[np.intp]
    instance: NDArray[np.intp]
    size: models.Array
    again: models.Array
    less: models.Array

    def __getitem__(self, rows: NDArray[np.bool_]) -> View:
        return View(*(getattr(self, column)[rows] for column in field_names(View)))


def candidates(table: RunTable, predicts: Predicts) -> list[Candidate]:
    """All policies that compete, the cheapest first."""
    own = any(predicts)
    public = tuple(n for n, free in zip(table.features, table.public, strict=True) if free or table.exact)
    extra = (EPSILON,) if len(table.epsilons) > 1 and EPSILON not in table.features else ()
    policies = [Candidate(SINGLE_BEST, 0.0, 0, ())]
    reads_all = len(public) == len(table.features)
    if (public or extra or own) and (reads_all or not own):
        policies.append(Candidate("exact features" if table.exact else "free features", 0.0, 0, public, extra))
    for number, setting in enumerate(table.settings):
        if setting.paid:
            name = f"{_what(table, setting)} at {setting.share * 100:g} %"
            policies.append(Candidate(name, setting.share, number, table.read(setting), extra))
    return sorted(policies, key=lambda c: c.share)


def _what(table: RunTable, setting: Setting) -> str:
    return "features" if table.read(setting) == table.features else ", ".join(setting.paid)


def candidate_of(name: str, table: RunTable, predicts: Predicts) -> Candidate:
    plain = candidates(table, predicts)
    twice = (one for large in plain if large.share >= EXPENSIVE for one in second_looks(table, large))
    return next(one for one in (*plain, *twice) if one.name == name)


def second_looks(table: RunTable, large: Candidate) -> list[Candidate]:
    """Policies that look at the features of `large` at a small share of epsilon, and at a larger one where that is
    predicted to pay: so a price that few rows are worth is not paid where there are many."""
    of_these = [one for one in table.settings if one.paid == table.settings[large.setting].paid]
    return [
        replace(
            large,
            name=f"{_what(table, few)} at {few.share * 100:g} %, and at {many.share * 100:g} % where that pays",
            share=few.share,
            setting=table.settings.index(few),
            further=replace(large, share=few.share + many.share, setting=table.settings.index(many)),
        )
        for few in of_these
        for many in of_these
        if many.share >= EXPENSIVE and TIMES[0] < many.share / few.share < TIMES[1]
    ]


def view_of(table: RunTable, candidate: Candidate, scale: UtilityScale) -> View:
    x, y, best, where = [], [], [], []
    instances: dict[tuple[int, float], int] = {}
    for run in table.runs:
        scores = table.scores(run, candidate.share, scale)
        top = max(table.scores(run, 0.0, scale))
        instance = instances.setdefault((run.database, run.scale), len(instances))
        for values in run.features[candidate.setting] if candidate.learned else run.features[0][:1]:
            features = dict(zip(table.features, values, strict=True))
            if EPSILON not in features and run.epsilon is not None:
                features[EPSILON] = float(np.log10(run.epsilon))
            x.append([features[c] for c in candidate.columns])
            y.append(scores)
            best.append(top)
            where.append((run.database, instance, run.scale))
    further = view_of(table, candidate.further, scale) if candidate.further is not None else None
    nothing = np.zeros((len(x), 0))
    return View(
        np.array(x, dtype=np.float64).reshape(len(x), len(candidate.columns)),
        np.array(y, dtype=np.float64),
        np.array(best, dtype=np.float64),
        np.array([w[0] for w in where], dtype=np.intp),
        np.array([w[1] for w in where], dtype=np.intp),
        np.array([w[2] for w in where], dtype=np.float64),
        further.x if further is not None else nothing,
        further.y if further is not None else nothing,
    )


class Learner(Struct, frozen=True):
    """How predictors are made: by which model, and on which scale; options with a function in `predicts` value
    themselves, and are not learned."""

    model: models.AnyModel
    predicts: Predicts
    scale: UtilityScale

    @property
    def prunes(self) -> bool:
        """Whether a leaf departs from the single best option only beyond one standard error (`models.prune_leaves`)."""
        return isinstance(self.model, models.Model) and self.model.kind != "tree" and not any(self.predicts)

    def fit(self, candidate: Candidate, view: View) -> tuple[models.Predictor, models.Predictor | None]:
        """A predictor by the first look, and one by the second where there is one."""
        if not candidate.learned:
            return best_on_average(view, self.scale), None
        if candidate.further is None:
            return self._fit_one(candidate, view, self.predicts), None
        second = self._fit_one(candidate.further, replace(view, x=view.again, y=view.less), self.predicts)
        return self._fit_one(candidate, replace(view, y=with_second(view, second)), (*self.predicts, None)), second

    def _fit_one(self, candidate: Candidate, view: View, predicts: Predicts) -> models.Predictor:
        """A predictor of every option's utility from the features."""
        model, columns, x, y = self.model, candidate.columns, view.x, view.y
        if isinstance(model, models.UserModel):
            records = [dict(zip(columns, row.tolist(), strict=True)) for row in x]
            functions: list[Predict | None] = []
            for predict, scores in zip(predicts, y.T.tolist(), strict=True):
                pairs = [(features, self.scale.utility(score)) for features, score in zip(records, scores, strict=True)]
                functions.append(None if predict else model.fit(pairs))
            return models.Functions(columns, tuple(functions))
        instances = max(len(np.unique(view.instance)), 1)
        least = max(1, round(model.least(instances) * len(x) / instances))
        if model.kind == "tree":
            alone = (
                () if p else (models.grow(x, y[:, k : k + 1], model.depth, least),) for k, p in enumerate(predicts)
            )
            return models.TreeEnsembles(self.scale, columns, y.shape[1], tuple(alone), False)
        samples = _bootstraps(view.instance, model.trees) if model.kind == "forest" else [np.arange(len(x))]
        trees = tuple(models.grow(x[rows], y[rows], model.depth, least, model.by) for rows in samples)
        return models.prune_leaves(
            models.TreeEnsembles(self.scale, columns, y.shape[1], (trees,), True), x, y, view.database
        )

    def valued(self, candidate: Candidate, predictor: models.Predictor, view: View) -> models.Array:
        """The utility that each option is predicted to have, or that it predicts itself: shape (n, options)."""
        utilities = predictor.rows(view.x)
        for k, predict in enumerate(self.predicts):
            if predict is not None and candidate.learned:
                records = (dict(zip(candidate.features, row.tolist(), strict=False)) for row in view.x)  # no `extra`
                utilities[:, k] = [finite(predict(features)) for features in records]
        return utilities

    def regrets(self, candidate: Candidate, learn: View, judge: View) -> models.Array:
        """For each row that judges, the best score with all of epsilon less that of what the policy takes, paid for.
        The policy is fitted on the rows to learn from."""
        first, second = self.fit(candidate, learn)
        scores = judge if second is None else replace(judge, y=with_second(judge, second))
        return losses_of(scores, self.valued(candidate, first, judge))

    def cross_validate(self, candidate: Candidate, table: RunTable) -> tuple[View, models.Array]:
        """Each row's regret when the policy was fitted without its data set, beside the rows.

        Data sets are left out one by one, or where there are more than `FOLDS` of them in so many groups, dealt in
        turn.

        The single best option is the one exception: it is judged where it was found. Between options that are about
        as often the best, leaving a data set out always tips the balance against it, and features of pure noise would
        win.
        """
        view = view_of(table, candidate, self.scale)
        if not candidate.learned:
            return view, self.regrets(candidate, view, view)
        losses = np.zeros(len(view.y))
        for mine in folds_of(view):
            losses[mine] = self.regrets(candidate, view[~mine], view[mine])
        return view, losses


def with_second(view: View, second: models.Predictor) -> models.Array:
    """The scores with what the first look leaves, and that of the option which the second look would take."""
    picks = np.argmax(second.rows(view.again), axis=1)
    return np.column_stack([view.y, view.less[np.arange(len(picks)), picks]])


def best_on_average(view: View, scale: UtilityScale) -> models.TreeEnsembles:
    """The predictor that looks at nothing: each option's mean over data sets."""
    means = np.mean([view.y[view.database == d].mean(axis=0) for d in np.unique(view.database)], axis=0)
    return models.constant(scale, means.tolist(), view.y.std(axis=0).tolist(), len(view.y))


def losses_of(view: View, values: models.Array) -> models.Array:
    """The regret of each row where the option of the largest value is taken; `values` (n, options)."""
    choices = np.argmax(values, axis=1)
    return np.asarray(view.best - view.y[np.arange(len(choices)), choices])


def folds_of(view: View) -> list[NDArray[np.bool_]]:
    """The rows that are left out together: those of one data set, or of one of `FOLDS` groups of them."""
    fold = np.unique(view.database, return_inverse=True)[1] % FOLDS
    return [fold == number for number in np.unique(fold)]


def by_database(view: View, losses: models.Array) -> models.Array:
    return np.array([losses[view.database == d].mean() for d in np.unique(view.database)])


def by_size(table: RunTable, view: View, losses: models.Array) -> list[models.Array]:
    """The means of the data sets at each order of magnitude of rows, rising.

    Of the multiple of the given data where rows are not known.
    """
    rows = np.array(table.rows) if all(table.rows) and table.rows else np.ones(len(table.databases))
    decade = np.rint(np.log10(view.size * rows[view.database]))
    return [by_database(view[decade == d], losses[decade == d]) for d in np.unique(decade)]


def decide(table: RunTable, model: models.AnyModel, predicts: Predicts) -> Policy:
    """The policy with the least mean regret by cross-validation over data sets, fitted on all of them.

    One that costs nothing is preferred unless the other's gain is significant (`is_significant_gain`); this is not
    required of a model whose leaves are pruned. One data set leaves nothing to validate on: the model is used, with
    features that are free or whose share the program names, else with a share of 0.03.
    """
    learner, all_ = Learner(model, predicts, table.scale), candidates(table, predicts)
    is_learned = isinstance(model, models.Model) and not any(predicts)
    judged: dict[str, tuple[models.Array, list[models.Array]]] = {}

    def judge(some: list[Candidate]) -> None:
        """The mean regret in cross-validation: of each data set, and of each at each order of magnitude of rows."""
        for candidate in some:
            view, regret = learner.cross_validate(candidate, table)
            judged[candidate.name] = by_database(view, regret), by_size(table, view, regret)

    if len({run.database for run in table.runs}) > 1:
        judge(all_)
        expensive = [c for c in all_ if c.share >= EXPENSIVE]
        if expensive and is_learned:
            more = second_looks(table, min(expensive, key=lambda c: float(judged[c.name][0].mean())))
            judge(more)
            all_ = sorted([*all_, *more], key=lambda c: c.most)
        losses, sized = zip(*(judged[c.name] for c in all_), strict=True)
        number, why, unsettled = _winner(all_, losses, sized, table.scale, learner.prunes)
    else:
        (number, why), unsettled = _unvalidated(all_), 0
    standings = [
        Standing(c.name, c.share, float(per.mean()), float(per.std(ddof=1) / np.sqrt(len(per))))
        for c in all_ if c.name in judged for per in [judged[c.name][0]]
    ]  # fmt: skip
    winner = all_[number]
    first, second = learner.fit(winner, view_of(table, winner, table.scale))
    others = {}  # at half and at twice the amount, from the features as they are measured
    for word, times in OTHERS.items():
        if is_learned and times in table.levels:
            others[word] = learner.fit(winner, view_of(table.at_level(times), winner, table.scale))
    policy = Policy(
        name=winner.name,
        model=str(model) if winner.learned else SINGLE_BEST,
        share=winner.share,
        needs=tuple(c for c in winner.columns if c in table.features),
        columns=winner.columns,
        predictor=first,
        table=table.keeping(winner.setting),
        standings=tuple(standings),
        why=why,
        predicts=predicts if any(predicts) else (),
        unsettled=unsettled,
        others={word: one for word, (one, _) in others.items()},
    )
    if winner.further is None:
        return policy
    further = replace(
        policy, share=winner.further.share - winner.share, table=table.keeping(winner.further.setting), standings=(),
        predictor=second, others={word: one for word, (_, one) in others.items() if one is not None},
    )  # fmt: skip
    return replace(policy, further=further)


def _winner(
    all_: list[Candidate], losses: Sequence[models.Array], sized: Sequence[list[models.Array]], scale: UtilityScale,
    pruned: bool = False,
) -> tuple[int, str, int]:  # fmt: skip
    """Returns the best policy, what decided it, and about how many more data sets would settle it (0: it is settled).

    `losses` by data set, `sized` by size of data, for each policy. Looks that cost next to nothing are compared by
    their mean loss alone, since a price that nobody notices needs no proof; so are all policies
    of `pruned` models, which take the single best option wherever another is not better beyond chance.
    """
    loss = [_loss(float(one.mean()), scale) for one in losses]
    score = f"its {'error' if scale.logarithmic else 'regret'}"
    free = [k for k, candidate in enumerate(all_) if candidate.share == 0]
    gains = [max(0.0, float((losses[0] - one).mean())) for one in losses]
    bars = [gain + max(NO_WORSE, 2 * c.share) for c, gain in zip(all_, gains, strict=True)]
    safe = [k for k, c in enumerate(all_) if c.share > 0 and not _is_worse(sized[0], sized[k], bars[k])]
    left, cheap = [*free, *safe], [k for k in safe if all_[k].most <= CHEAP]
    best = min(left, key=lambda k: (float(losses[k].mean()), k))
    for k in (k for k in free if k < best and not pruned):
        if not is_significant_gain(losses[k], losses[best]):
            more, chance = _proof(losses[k], losses[best])
            look = min([k, *cheap], key=lambda one: (float(losses[one].mean()), one))
            named = all_[k].name if all_[k].learned else f"the {SINGLE_BEST} option"
            if look != k:
                why = f"{score} is {loss[look]}; with {named} it is {loss[k]}, and looking costs "
                return look, f"{why}next to nothing, and is hardly worse at any size of data", more
            than = "and costs more" if all_[k].most < all_[best].most else "and is less simple"
            why = f"{score} is {loss[k]}; with {all_[best].name} it is {loss[best]}, which is {chance}, {than}"
            return k, why, more
    why = f"{score} on data sets left out is {loss[best]}; with the {SINGLE_BEST} option it is {loss[0]}, "
    more, chance = _proof(losses[0], losses[best])
    why += f"and that is {chance}"
    if best == 0:
        why = f"{score} is {loss[0]}, and no way of looking has less"
        why = why if len(all_) > 1 else "there is nothing to look at"
    first = min(range(len(all_)), key=lambda k: (float(losses[k].mean()), k))
    if first not in left:
        why = f"{score} is {loss[best]}; with {all_[first].name} it is {loss[first]}, but worse at some size of data"
    return best, why, more


def _proof(plain: models.Array, better: models.Array) -> tuple[int, str]:
    """About how many more data sets would settle a gain (0: it is settled), and what it is."""
    if is_significant_gain(plain, better):
        return 0, "more than chance"
    more = data_sets_to_settle(plain, better)
    would = f" (about {more:,} more would settle it)" if more else ""
    return more, f"within chance on {len(plain)} data sets{would}"


def _is_worse(plain: list[models.Array], other: list[models.Array], bar: float) -> bool:
    """Whether there is a size of data at which `other` loses more by the bar, and by one standard error besides."""
    excess = (_gain(here, alone) for alone, here in zip(plain, other, strict=True))
    return any(mean - bar > error for mean, error in excess)


def _loss(regret: float, scale: UtilityScale) -> str:
    return f"{math.exp(regret):.3g} times the least" if scale.logarithmic else f"{regret:.3g}"


def is_significant_gain(plain: models.Array, better: models.Array) -> bool:
    """Whether less mean regret, one number a data set, is reason enough to leave the plainer policy.

    Beyond one standard error of the paired difference, by Student's t for the number of data sets. The best of many
    policies is ahead by about as much where all are equal; to ask for more loses what is gained on most data.
    """
    gain, error = _gain(plain, better)
    return gain > error + 1e-12


def data_sets_to_settle(plain: models.Array, better: models.Array) -> int:
    """About how many more data sets like these would show that the gain is more than chance; 0 where there is none."""
    gain, error = _gain(plain, better)
    return max(1, math.ceil(len(plain) * ((error / gain) ** 2 - 1))) if gain > 1e-12 else 0


def _gain(plain: models.Array, better: models.Array) -> tuple[float, float]:
    """The mean gain, and what it has to be above."""
    from scipy.special import stdtrit

    gap = plain - better
    if len(gap) == 1:
        return float(gap[0]), 0.0
    return float(gap.mean()), float(stdtrit(len(gap) - 1, ONE_ERROR) * gap.std(ddof=1) / np.sqrt(len(gap)))


def _unvalidated(all_: list[Candidate]) -> tuple[int, str]:
    """With one data set: the model, at the share that the program names, else free, else at `FALLBACK_SHARE`."""
    learned = [k for k, c in enumerate(all_) if c.learned]
    if not learned:
        return 0, "there is no feature to choose by"
    paid = [k for k in learned if all_[k].share > 0]
    free = [k for k in learned if all_[k].share == 0]
    usual = [k for k in paid if all_[k].share == FALLBACK_SHARE]
    eligible = paid if len(paid) == 1 else free or usual or paid
    return eligible[-1], "one training data set leaves nothing to cross-validate on, so the model is used"
