"""Each `external` of the standard library is declared as its function of Python is, and may be called by its names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.check.warnings import number_in
from jostle.diagnostics import Refusal
from jostle.kernels import KernelError
from jostle.run.externals import KERNELS, external, kernel, of_kernel
from jostle.run.operators import guarded
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax import parse

STDLIB = sorted((Path(__file__).resolve().parents[2] / "stdlib").glob("*.jst"))


def declared(text: str, name: str = "module.jst") -> list[n.External]:
    return [node for node in parse(Source(name, text)).body if isinstance(node, n.External)]


def externals(path: Path) -> list[n.External]:
    """Of a module of the library, of which only the declarations are read: all tests wait for this."""
    text = path.read_text(encoding="utf-8")
    return declared("".join(re.findall(r"(?m)^external\b.*\n(?:[ )].*\n)*", text)), path.name)


ALL = [node for path in STDLIB for node in externals(path)]


def test_there_are_many() -> None:
    assert len(ALL) > 100 and {node.name for node in ALL} <= KERNELS.keys()


@pytest.mark.parametrize("node", ALL, ids=lambda node: f"{node.span.source.name}:{node.name}")
def test_a_declaration_matches_its_function(node: n.External) -> None:
    import inspect

    params = inspect.signature(kernel(node)).parameters
    for param in node.params:
        if param.default is not None:
            value = number_in(param.default)
            if value is None and isinstance(param.default, n.ListOf):
                assert not param.default.items and not params[param.name].default
                continue
            value = param.default.value if value is None else value  # type: ignore[attr-defined]
            assert value == params[param.name].default


def test_a_kernel_writes_to_no_value_of_a_program() -> None:
    """It had the arrays themselves: what one wrote to was another number wherever the program had it, and its error."""
    array = np.zeros(3)
    for values in (array, [array], {"of": [array, 1.0]}):

        def writes(values: Any) -> None:
            at = values["of"] if isinstance(values, dict) else values
            (at if isinstance(at, np.ndarray) else at[0])[0] = 1.0

        with pytest.raises(Refusal):
            of_kernel("writes", writes).body(values)
        assert not array.any() and array.flags.writeable
    assert of_kernel("reads", lambda values: values).body(array) is array and array.flags.writeable


WRONG = (
    "nonnegative(cells, queries)", "nonnegative(cells)", "nonnegative(cells, workload, more)",
    "nonnegative(cells, workload = none)",
)  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_another_declaration_is_refused_when_it_is_loaded(wrong: str) -> None:
    (node,) = declared(f"external {wrong}\n")
    with pytest.raises(Refusal) as refusal:
        kernel(node)
    assert refusal.value.diagnostics[0].kind == "ImportError"
    assert refusal.value.diagnostics[0].help == "write `external nonnegative(cells, workload)`"


def test_a_kernel_is_called_by_the_names_of_its_declaration() -> None:
    (node,) = declared("external ring_with_chords(variables, strength, seed)\n")
    body = external(node).body
    assert str(body(variables=4.0, strength=0.5, seed=1.0)) == str(body(4.0, 0.5, 1.0))
    with pytest.raises(Refusal, match="no parameter `chords`"):
        body(4.0, 0.5, chords=1.0)
    with pytest.raises(Refusal, match="`seed` is missing"):
        body(4.0, 0.5)


def test_only_what_a_kernel_says_is_quoted() -> None:
    def fails(error: Exception) -> str:
        def body() -> None:
            raise error

        with pytest.raises(Refusal) as refusal:
            guarded("f", body, (), {})
        return refusal.value.diagnostics[0].message

    assert fails(KernelError("the shape is wrong")) == "the shape is wrong"
    assert fails(ValueError("could not broadcast (3,)")) == "`f` has no value here"
