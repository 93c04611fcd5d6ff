"""Programs of other languages in several lines: loops over rows, functions, files that are opened, `while`.

A block is parsed by `ast` and read statement by statement; what it works out of rows is a line of Jostle for each
name, and what only gives columns a name stands in the lines that use it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from textwrap import dedent

from jostle.mistakes.foreign import Nothing, Rows, Unread, parse, parsed, unread
from jostle.mistakes.foreign.declarations import DECLARES
from jostle.mistakes.foreign.statements import Meanings, lines_of
from jostle.records import replace

_MOST = 12  # lines of a program that are read


def blocks_at(lines: Sequence[str], row: int) -> list[tuple[int, int]]:
    """The parts of a program that a line may be one of, each as its first line and the one after the last: blocks that
    are open there, and the statement with those below."""
    parts, begin = list[tuple[int, int]](), row - 1
    while begin and _depth(lines[begin]):
        begin -= 1
        if _depth(lines[begin]) < _depth(lines[row - 1]):
            parts.append((begin, _end(lines, begin)))
    begin = parts[-1][0] if parts else row - 1
    parts.append((begin, _end(lines, begin)))
    last = next((at for at in range(begin, len(lines)) if not lines[at].strip()), len(lines))
    return [*dict.fromkeys(parts), (begin, min(last, begin + _MOST))]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else 99


def _end(lines: Sequence[str], begin: int) -> int:
    end = begin + 1
    while end < len(lines) and (_depth(lines[end]) > _depth(lines[begin]) or _GOES_ON.match(lines[end].strip())):
        end += 1
    while end > begin + 1 and not lines[end - 1].strip():
        end -= 1
    return end


_GOES_ON = re.compile(r"(?:else|elif|except|finally)\b|[})]|$")


def block(lines: Sequence[str], reader: Meanings, mistake: int) -> list[str]:
    """The lines that a part of a program means; `Unread` where none of its statements is read.

    Of what nothing here does only that counts in which the `mistake` is, a line from 0 on.
    """
    new, at, reads = list[str](), 0, False
    while at < len(lines):
        begin, at = at, _end(lines, at)
        try:
            new += statement("\n".join(lines[begin:at]), reader)
            reads = True
        except (Unread, Nothing) as fault:
            if isinstance(fault, Nothing) and begin <= mistake < at:
                raise
            new += lines[begin:at]  # it may be right as it stands
    return new if reads else unread()


def statement(text: str, reader: Meanings) -> list[str]:
    """The lines that one statement means, none where it only gives columns a name."""
    head = text.strip()
    if re.match(r"(?:import|library|require|using)\b|from .* import\b", head):
        return []
    if DECLARES.match(head):
        return lines_of(" ".join(head.split()), reader)
    if rounds := _ROUNDS.fullmatch(head):
        sign, amounts = _NOT[rounds[3]], [float(amount) for amount in re.findall(r"with epsilon ([\d.]+)", rounds[5])]
        first = f"run with epsilon {sum(amounts):g} until budget of {rounds[2]}"
        head = f"{first} or {rounds[1]}({rounds[2]}) {sign} {rounds[4]}:"
        return [head, *rounds[5].strip("\n").split("\n")] if amounts else unread()
    if tried := _TRIED.fullmatch(head):
        return dedent(tried[1]).strip("\n").split("\n")
    if "\n" in head or re.match("(?:for|def|with) .*:", head):
        return Block(reader).of(parsed(dedent(text))[0])
    if named := re.fullmatch(r"(\w+) *(?:=(?!=)|<-) *(?!\{\{)(.+)", head):
        if file := _OPENED.fullmatch(named[2]):
            reader.it[named[1]] = reader.tables[reader.files.get(file[1]) or unread()]
            return []
        of = reader.argument(parse(named[2]))
        if isinstance(of, Rows) and not (of.asks or of.keys or of.picks or (of.where and not of.takes)):
            reader.it[named[1]] = of
            return []
    return lines_of(head, reader)


_ROUNDS = re.compile(r"(?s)while +(left|spent)\((\w+)\) *([<>]=?) *([\d.]+) *:(\n.*)")
_NOT = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
_TRIED = re.compile(r"(?s)try *:\n(.*)\nexcept\b[^\n]*:\s*(?:[^\n]*)")
_OPENED = re.compile(r"(?:\w+\.)?(?:read|scan|load|fread)\w*\((?:\w+ *= *)?[\"']([^\"']*)[\"'].*\)")


class Block:
    """A block of Python: what it adds up of rows, each under its name."""

    def __init__(self, reader: Meanings) -> None:
        self.reader, self.sums = reader, dict[str, Rows]()

    def of(self, node: ast.stmt) -> list[str]:
        match node:
            case ast.For(target=target, iter=over, body=body, orelse=[]):
                name = target.elts[-1] if isinstance(target, ast.Tuple) else target
                self.body(self.reader.of_each(self.reader.walked(over) or unread(), target, [], name), body)
                self.reader.it |= {name: rows for name, rows in self.sums.items() if not rows.asks}
                return [f"{name} = {rows.query}" for name, rows in self.sums.items() if rows.asks]
            case ast.With(
                items=[ast.withitem(ast.Call(ast.Name("open"), [ast.Constant(value=file), *_]), ast.Name(id=name))],
                body=body,
            ):
                self.reader.it[name] = self.reader.tables[self.reader.files.get(str(file)) or unread()]
                return [line for one in body for line in statement(ast.unparse(one), self.reader)]
            case ast.FunctionDef(name=name, args=args, body=body, decorator_list=[]):
                own = [arg.arg for arg in args.args]
                called = re.search(rf"(?<!def )\b{name}\(([^()]*)\)", self.reader.text) or unread()
                for arg, value in zip(own, called[1].split(","), strict=False):
                    if value.strip() in self.reader.tables:
                        self.reader.it[arg] = replace(self.reader.tables[value.strip()], source=arg)
                self.reader.names += own
                inside = [line for one in body for line in statement(ast.unparse(one), self.reader)]
                return [f"def {name}({', '.join(own)}):", *(f"    {line}" for line in inside)]
        raise Unread

    def body(self, of: Rows, body: Sequence[ast.stmt]) -> None:
        """What the statements of a loop add to its names."""
        whole = replace(of, takes=())
        for node in body:
            match node:
                case ast.If(test=test, body=then, orelse=orelse):
                    sure = self.reader.term(test, whole)
                    self.body(replace(of, where=(*of.where, sure)), then)
                    self.body(replace(of, where=(*of.where, f"not ({sure})")), orelse)
                case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                    self.give(name, replace(of, asks=((self.added(value, whole), ""),)))
                case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=name), slice=key), op=ast.Add(), value=value):
                    text = self.added(value, whole)
                    asks = ((text, "n" if text == "count(*)" else "total"),)
                    self.give(name, replace(of, keys=(self.reader.key(key, whole),), asks=asks))
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value])):
                    is_row = isinstance(value, ast.Name) and value.id in self.reader.it
                    self.give(name, of if is_row else replace(of, takes=(self.reader.term(value, whole),)))
                case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
                    raise Nothing("head")
                case _:
                    raise Unread

    def added(self, value: ast.expr, of: Rows) -> str:
        is_one = isinstance(value, ast.Constant) and value.value == 1
        return "count(*)" if is_one else f"sum({self.reader.term(value, of)})"

    def give(self, name: str, rows: Rows) -> None:
        self.sums[name] = rows if name not in self.sums else unread()
