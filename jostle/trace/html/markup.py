"""HTML as values: `tag("p", "a < b", id="x")`. What is no `Html` is escaped, so that nothing is markup by chance."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


class Html(str):
    """Markup that is safe to stand in a page as it is."""

    __slots__ = ()


_VOID = frozenset({"br", "hr", "input", "meta", "wbr"})


def tag(element: str, *children: str | Html | Iterable[str | Html | None] | None, **attributes: object) -> Html:
    """An element. `class_` loses its underscore, inner ones turn to `-`; None and False leave an attribute out."""
    words = [element]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        words.append(attribute if value is True else f'{attribute}="{escape(str(value))}"')
    opened = f"<{' '.join(words)}>"
    return Html(opened if element in _VOID else f"{opened}{join(*children)}</{element}>")


def join(*children: str | Html | Iterable[str | Html | None] | None) -> Html:
    """Children one after the other, escaped where they are plain text."""
    out: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            out.append(child)
        elif isinstance(child, str):
            out.append(escape(child, quote=False))
        else:
            out.append(join(*child))
    return Html("".join(out))
