"""Steps that calls of ChoiceMakers and of choice points share: the record, its features, and the Option that runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.privacy.kernel.exposures import Handle, handles_in
from jostle.privacy.kernel.handles import Table, Vectors
from jostle.run.evaluator import Evaluator
from jostle.run.values import JSet, is_number, kind_name
from jostle.source import Span

if TYPE_CHECKING:
    from jostle.privacy.reading.public_data import PublicData


class ChoiceParts(Struct, frozen=True):
    """The parts of a ChoiceMaker, as the program wrote them."""

    options: tuple[Any, ...]
    option_names: tuple[str, ...]
    features: tuple[Any, ...]
    feature_names: tuple[str, ...]
    utility: Any
    databases: tuple[Any, ...]


def only_record(args: Sequence[Any]) -> Any:
    """The one record that a choice is called with."""
    if len(args) != 1:
        raise refuse("TypeError", f"a choice takes its data, one record, and {len(args)} were given")
    return args[0]


def number_from(value: Any, what: str) -> float:
    """The number that `what` (a Feature, a Utility) gives."""
    if not is_number(value):
        raise refuse("TypeError", f"{what} gives {kind_name(value)}, and a number is needed")
    return float(value)


def run(interp: Evaluator, option: object, data: object) -> Any:
    """Runs an Option; on public data, outside every allotment."""
    if handles_in(data):
        return interp.call(option, [data])
    with interp.kernel.allot(None, None):
        return interp.call(option, [data])


def public_answers(
    interp: Evaluator, option: object, name: str, data: object, span: Span | None, help: str = ""
) -> Any:
    """Runs an Option within an event of its own; refuses answers that hold private data."""
    with interp.kernel.events.within("option", name, span):
        answers = run(interp, option, data)
    for handle in handles_in(answers):
        source = handle.exposures[0].source.name
        raise refuse("PrivateValue", f"the answers of `{name}` hold private data of `{source}`", help=help)
    return answers


def all_handles(value: object) -> list[Handle]:
    """Every handle in nested containers, public ones too."""
    if isinstance(value, Handle):
        return [value]
    items: Sequence[Any] = list(value.values()) if isinstance(value, dict) else ()
    if isinstance(value, (JSet, list, tuple)):
        items = list(value)
    return [handle for item in items for handle in all_handles(item)]


def workers_for(databases: Sequence[Any], public: PublicData) -> int | None:
    """1 where data hold tables of an engine that answers in its own process only. None: any number."""
    handles = [handle for data in databases for handle in all_handles(data)]
    alone = not public.forks and any(isinstance(handle, (Table, Vectors)) for handle in handles)
    return 1 if alone else None
