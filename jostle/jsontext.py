"""JSON as text, read where it may have been edited or cut short (a stored model, a trace).

Python's parser recurses in C, without a safe end where the recursion limit is high; so brackets are counted first.
"""

from __future__ import annotations

import json
import re
from typing import Any

Json = Any
"""What JSON says: none, a truth, a number, a text, a list of such values, or such values by name. Who reads one tests
what it takes from it, or was told by whoever wrote it."""

DEEPEST = 100
LONGEST = 300  # digits of a whole number: a double holds it
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(r"[\[\]{}]")


def loads(text: str) -> Json:
    """The value that `text` says.

    `ValueError` where it is no JSON, is nested more than `DEEPEST` deep or has a whole number beyond `LONGEST` digits.
    """
    depth = 0
    for bracket in _BRACKET.findall(_TEXT.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} deep")
    return json.loads(text, parse_int=_whole)


def _whole(digits: str) -> int:
    if len(digits) > LONGEST:
        raise ValueError(f"a whole number of more than {LONGEST} digits")
    return int(digits)
