"""Room for calls within calls."""

from __future__ import annotations

import resource
import sys

import pytest

from jostle.run.faults import with_room


def leaf(number: int) -> int:
    return number


def down(depth: int, calls: int) -> int:
    """`calls` calls at every depth up to `depth`: at an edge of a chunk of frames each of them costs a page."""
    for number in range(calls):
        leaf(number)
    return depth if depth == 0 else down(depth - 1, calls)


@with_room
def down_with_room(depth: int, *, calls: int) -> int:
    """The same."""
    return down(depth, calls)


def pages(function: object, *args: int, **keywords: int) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    assert function(*args, **keywords) == 0  # type: ignore[operator]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pages are counted by Linux")
def test_calls_at_every_depth_take_no_memory_again_and_again() -> None:
    assert pages(down_with_room, 400, calls=2000) < 500


def test_what_has_room_is_what_it_was() -> None:
    assert down_with_room.__name__ == "down_with_room"
    assert down_with_room.__doc__ == "The same."
    with pytest.raises(TypeError, match="calls"):
        down_with_room(1)  # type: ignore[call-arg]
