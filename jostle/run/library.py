"""Loads every module of `run` that implements built-ins; those of choices are in `choice`."""

from jostle.run import (  # noqa: F401 (they enter what they implement)
    accuracy,
    builtins,
    classify,
    declared,
    forms,
    gradual,
    measured,
    pictures,
    publictables,
    records,
    regressions,
    rowfunctions,
    rowsums,
    sampled,
    selection,
    shapes,
    simulations,
    splits,
    workloads,
)
