"""Decides where a space stands between two tokens of one line."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.syntax.layout import ENDS_AN_EXPRESSION
from jostle.syntax.tokens import Piece

_TIGHT = {"DOT", "CARET"}  # with neither side
_CLOSES_TIGHT = {"COMMA", "RPAR", "COLON"}
_OPENS_TIGHT = {"LPAR", "LSQB"}


def space_between(left: Piece, right: Piece, every: Sequence[Piece]) -> bool:
    """Whether `left` and `right` are apart. `every`: all tokens, in which `mate` is a place."""
    if left.share or right.share:
        return False
    if left.unary and right.text == "-" == left.text:
        return True  # `--` is no sign
    if left.opens == "block" or left.unary or left.kind == "MARK" or left.kind in _TIGHT or right.kind in _TIGHT:
        return False
    if right.kind == "RSQB":
        return left.kind == "COMMA"  # the comma of `D[a = v, ]` is seen
    if right.kind in _CLOSES_TIGHT or left.kind in _OPENS_TIGHT:
        return False
    if "_DOTS" in (left.kind, right.kind):
        return right.text.startswith(".") and left.kind == "_DOTS"  # `0.. .5`
    if right.kind in _OPENS_TIGHT:
        return left.kind not in ENDS_AN_EXPRESSION
    if left.opens == "set":
        return right.text.startswith("{")  # `{{` would open a query
    if right.closes == "set":
        return every[right.mate + 1].text.startswith("{")
    return True
