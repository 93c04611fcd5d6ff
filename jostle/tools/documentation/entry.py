"""What is said of a name."""

from __future__ import annotations

import re

from msgspec import Struct

from jostle.source import Span


class Documentation(Struct, frozen=True):
    """One meaning of a name.

    `kind`: "function", "constant", "domain", "aggregate", "word", "module", or what a module defines ("function",
    "Option", "value"); `usage`: how it is written; `parameters`: those of a function, as they are written; `price`:
    what it costs, in words; `about`: one sentence; `more`: the rest of what its author says; `example`: lines of a
    program, below `given()` and, for a name of a module, below its `use`; `module`: the module that brings it; `span`:
    where a module defines it.
    """

    name: str
    kind: str
    usage: str
    about: str
    price: str = ""
    example: str = ""
    module: str = ""
    more: str = ""
    parameters: tuple[str, ...] = ()
    span: Span | None = None

    @property
    def shown(self) -> str:
        """The example for people: `assert f(x) == y` is written as `f(x)  # y`."""
        return re.sub(r"^assert (.+) == (.+)$", r"\1  # \2", self.example, flags=re.MULTILINE)

    def text(self, width: int = 100) -> str:
        """The entry for a terminal: usage, sentence, what kind it is, price, example."""
        from textwrap import fill

        home = f", of `use {self.module}`" if self.module else ""
        kind = f"{self.kind}{home}" + (f"; {self.price}" if self.price else "")
        lines = [fill(self.usage, width, subsequent_indent="    ")]
        said = filter(None, (self.about, kind))
        lines += [fill(words, width, initial_indent="  ", subsequent_indent="  ") for words in said]
        return "\n".join([*lines, *(f"    {line}" for line in self.shown.splitlines())])

    @property
    def markdown(self) -> str:
        """The entry as Markdown, for editors and notebooks."""
        home = f", of `use {self.module}`" if self.module else ""
        parts = [f"```jostle\n{self.usage}\n```", f"{self.about}", f"*{self.kind}{home}*" + f"; {self.price}"]
        parts[2] = parts[2] if self.price else parts[2].removesuffix("; ")
        parts += [f"```jostle\n{self.shown}\n```"] if self.example else []
        return "\n\n".join(filter(None, parts))
