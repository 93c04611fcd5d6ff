"""Expressions of other languages as Jostle has them: of the rows of a table, of the lines of a result, of values."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypeGuard

from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.mistakes.foreign import (
    Answer,
    Nothing,
    Rows,
    Unread,
    Value,
    arguments_named,
    means,
    measure,
    parts_in,
    place_in,
    plain,
    point,
    unparse,
    unread,
    word_of,
    words,
)  # fmt: skip


class Known:
    """What a program has: tables and results with their columns, other names, truths among the columns; and what a name
    stands for in a function or a pipe. `read` gives the meaning of an expression, None where it has none."""

    def __init__(
        self, tables: Mapping[str, Sequence[str]], answers: Mapping[str, Sequence[str]], names: Sequence[str]
    ) -> None:
        self.tables = {name: Rows(name, tuple(columns)) for name, columns in tables.items()}
        self.answers = {name: Answer(name, tuple(columns)) for name, columns in answers.items()}
        self.names, self.it, self.truths = [*names], dict[str, Value](), set[str]()
        self.listed, self.files, self.wide = frozenset[str](), dict[str, str](), False
        self.busy: dict[ast.AST, Value | None] = {}
        self.read: Callable[[ast.expr], Value | None] = lambda node: None

    def term(self, node: ast.expr, rows: Rows | Answer | None = None, measures: bool = False) -> str:
        return unparse(Terms(self, rows, measures).visit(node))

    def is_module(self, node: ast.expr) -> bool:
        name = point(node)
        return bool(name) and name.partition(".")[0] not in {*self.tables, *self.answers, *self.it, *self.names}


_CASES = ("casewhen", "ifs", "cut", "when", "otherwise")
_TRUTHS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_FORMS = (
    ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.List, ast.Tuple, ast.Set, ast.IfExp, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.JoinedStr,
    ast.ListComp, ast.GeneratorExp, ast.Lambda,
)  # fmt: skip
_FIELDS = re.compile(r"%[-+ 0#]*\d*(?:\.(\d+))?([a-zA-Z])|%(%)")
_PLACES = re.compile(r"\{(\w*)(?::[<>^+ ]*\d*,?(?:\.(\d+))?([a-z%]?))?\}")


def pieces(node: ast.expr) -> list[ast.expr]:
    """The texts and values that a text is put together of, `f"{n:.1f} rows"`, `"%d rows" % n`, `paste(n, "rows")`; no
    piece of another expression."""
    match node:
        case ast.JoinedStr(values=values):
            return [part for value in values for part in _piece(value)]
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod(), right=right):
            return _put(text, _FIELDS, [*right.elts] if isinstance(right, ast.Tuple) else [right], {})
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format"), args=args):
            return _put(text, _PLACES, args, {keyword.arg or "": keyword.value for keyword in node.keywords})
        case ast.Call(func=ast.Name(id="sprintf" | "gettextf"), args=[ast.Constant(value=str(text)), *args]):
            return _put(text, _FIELDS, args, {})
        case ast.Call(func=ast.Name(id="paste" | "paste0" as word), args=[first, *others]) if not node.keywords:
            between: list[ast.expr] = [ast.Constant(" ")] if word == "paste" else []
            return [*_or_itself(first), *(part for arg in others for part in [*between, *_or_itself(arg)])]
    return []


def _or_itself(node: ast.expr) -> list[ast.expr]:
    return pieces(node) or [node]


def _piece(value: ast.expr) -> list[ast.expr]:
    if not isinstance(value, ast.FormattedValue):
        return [value]
    spec = value.format_spec
    text = "".join(str(getattr(part, "value", "")) for part in spec.values) if isinstance(spec, ast.JoinedStr) else ""
    form = _PLACES.fullmatch("{:" + text + "}") or unread()
    return _in_digits(value.value, form[2], form[3])


def _put(text: str, places: re.Pattern[str], args: list[ast.expr], named: Mapping[str, ast.expr]) -> list[ast.expr]:
    """A text with its places filled, by order, number or name."""
    parts, start, at = list[ast.expr](), 0, 0
    for place in places.finditer(text):
        parts.append(ast.Constant(text[start : place.start()]))
        start = place.end()
        if places is _FIELDS and place[3]:
            parts.append(ast.Constant("%"))
            continue
        own = place[1] if places is _PLACES and place[1] else str(at)
        value = named.get(own) or (args[int(own)] if own.isdigit() and int(own) < len(args) else unread())
        parts += _in_digits(value, *(place[1], place[2]) if places is _FIELDS else (place[2], place[3]))
        at += 1
    return [*parts, ast.Constant(text[start:])] if max(at, len(named)) >= len(args) + len(named) else unread()


def _in_digits(value: ast.expr, digits: str | None, kind: str | None) -> list[ast.expr]:
    """A value with as many digits as a format has."""
    if kind == "%":
        value = ast.BinOp(ast.Constant(100), ast.Mult(), value)
    if digits is None and kind not in ("d", "i", "%"):
        return [value]
    more = [ast.Constant(int(digits))] if digits not in (None, "0") else []
    rounded: ast.expr = ast.Call(ast.Name("round"), [value, *more], [])
    return [rounded, ast.Constant("%")] if kind == "%" else [rounded]


def is_text(node: ast.expr) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def together(parts: Sequence[ast.expr]) -> list[ast.expr]:
    """Pieces without empty texts, and neighbouring texts as one."""
    new = list[ast.expr]()
    for part in parts:
        if is_text(part) and new and is_text(last := new[-1]):
            new[-1] = ast.Constant(str(last.value) + str(part.value))
        elif not is_text(part) or part.value:
            new.append(part)
    return new


class Terms(ast.NodeTransformer):
    """An expression of rows, of a result's lines, or of public values, as Jostle has it; where it `measures`, the words
    of aggregates are meant."""

    def __init__(self, program: Known, rows: Rows | Answer | None, measures: bool) -> None:
        self.program, self.rows, self.measures = program, rows, measures

    def visit(self, node: ast.AST) -> ast.expr:
        if self.rows is None and isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
            read = self.program.busy
            if node not in read:
                read[node] = None  # a query, or a row of a result, may be a part of an expression
                names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                read[node] = self.program.read(node) if names & {*self.program.tables, *self.program.answers} else None
            if isinstance(got := read[node], Rows | Answer):
                return ast.Name(got.query if isinstance(got, Rows) else got.text)
        return super().visit(node) if isinstance(node, _FORMS) else unread()  # type: ignore[no-any-return]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        constants = {"true": "true", "false": "false", "null": "none", "na": "none", "none": "none"}
        of = self.program.it.get(node.id)
        if isinstance(of, Rows) and len(of.takes) == 1 and isinstance(self.rows, Rows):
            return ast.Name(of.takes[0])
        if self.rows is not None and node.id in self.rows.columns:
            return ast.Name(node.id if isinstance(self.rows, Rows) else f"r.{node.id}")
        if isinstance(self.rows, Rows) and node.id in self.program.listed and node.id not in self.program.names:
            return ast.Name(f'"{node.id}"')  # a value of a described list, without its quotes
        is_own = node.id in ("missing", *self.program.names, *self.program.answers) or "." in node.id
        return ast.Name(constants.get(node.id.lower(), "") or (node.id if is_own else unread()))

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str) and not re.fullmatch(r"\d{4}-\d\d-\d\d", node.value):
            return ast.Name('"' + node.value.replace('"', '\\"') + '"')
        return ast.Name(str(node.value).lower())

    def _is_rows(self, node: ast.expr) -> bool:
        """Whether this is the table, a result or a pronoun whose columns are meant."""
        if isinstance(node, ast.Name) and (node.id in self.program.it or node.id == "_it"):
            return True
        got = self.program.read(node)
        if isinstance(got, Answer):
            return bool(got.columns) and self.rows is not None
        return isinstance(got, Rows) and not got.asks and not got.takes

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if self.rows is not None and self._is_rows(node.value):
            return self.visit(ast.Name(node.attr))
        if node.attr in ("str", "dt"):
            return self.visit(node.value)
        of, form = self.visit(node.value), means("rows", node.attr)
        return self._filled(form, [of]) if form else ast.Attribute(of, node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if self.rows is not None and (name := word_of(node.slice)) in self.rows.columns and self._is_rows(node.value):
            return self.visit(ast.Name(name))
        if self.rows is not None and self.measures:  # `mean(x[c])`
            return ast.IfExp(self.visit(node.slice), self.visit(node.value), ast.Name("none"))
        if self.rows is not None:
            raise Unread
        of = self.program.answers.get(point(node.value))
        if of is not None and (name := word_of(node.slice)) in of.columns:
            return ast.Attribute(ast.Name(of.text), name)
        return ast.Subscript(self.visit(node.value), self.visit(place_in(node)))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        return ast.UnaryOp(ast.Not() if isinstance(node.op, ast.Invert) else node.op, self.visit(node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        sides = [self.visit(one) for one in (node.left, *node.comparators)]
        value = unparse(sides[1]).strip('"').lower()
        if unparse(sides[0]) in self.program.truths and isinstance(node.ops[0], ast.Eq) and value in _TRUTHS:
            return sides[0] if _TRUTHS[value] else ast.UnaryOp(ast.Not(), sides[0])
        texts = value not in ("missing", "none", "not missing")
        ops = [ast.Eq() if isinstance(op, ast.Is) and texts else op for op in node.ops]  # `x is "A"`
        pairs: list[ast.expr] = [ast.Compare(sides[i], [op], [sides[i + 1]]) for i, op in enumerate(ops)]
        return pairs[0] if len(pairs) == 1 else ast.BoolOp(ast.And(), pairs)

    def visit_List(self, node: ast.List | ast.Tuple) -> ast.expr:
        return ast.List([self.visit(one) for one in node.elts])

    visit_Tuple = visit_List

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        match node:  # `c and "x" or "y"`
            case ast.BoolOp(op=ast.Or(), values=[ast.BoolOp(op=ast.And(), values=[test, ast.Constant() as a]), other]):
                return self.visit(ast.IfExp(test, a, other))
        return ast.BoolOp(node.op, [self.visit(value) for value in node.values])

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return ast.IfExp(self._test(node.test), self.visit(node.body), self.visit(node.orelse))

    def _test(self, node: ast.expr) -> ast.expr:
        """A condition; what is a number is one where it is not 0."""
        if isinstance(node, ast.BinOp | ast.Constant):
            return self.visit(ast.Compare(node, [ast.NotEq()], [ast.Constant(0)]))
        return self.visit(node)

    def visit_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
        """A list of public values, written anew in brackets."""
        walk, target = node.generators[0], node.generators[0].target
        if self.rows is not None or len(node.generators) > 1 or not isinstance(target, ast.Name):
            raise Unread
        over = self.visit(walk.iter)
        self.program.names.append(target.id)
        tests = [self._test(test) for test in walk.ifs]
        return ast.ListComp(self.visit(node.elt), [ast.comprehension(target, over, tests, 0)])

    visit_GeneratorExp = visit_ListComp

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return self._text_of(pieces(node))

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        own = [arg.arg for arg in node.args.args]
        self.program.names += own
        return ast.Name(f"lambda {', '.join(own)}: {unparse(self.visit(node.body))}")

    def _text_of(self, parts: Sequence[ast.expr]) -> ast.expr:
        """Pieces joined by `+`."""
        texts = [self._as_text(part) for part in together(parts)]
        whole = texts[0] if texts else ast.Name('""')
        for text in texts[1:]:
            whole = ast.BinOp(whole, ast.Add(), text)
        return whole

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if self.rows is None and (parts := pieces(node)):
            return self._text_of(parts)
        texts = any(isinstance(getattr(side, "value", None), str) for side in (node.left, node.right))
        if texts and isinstance(node.op, ast.Add) and self.rows is None:
            return ast.BinOp(self._as_text(node.left), node.op, self._as_text(node.right))
        if isinstance(node.op, ast.BitOr | ast.RShift | ast.BitAnd):
            raise Unread
        if isinstance(node.op, ast.FloorDiv):
            return ast.Call(ast.Name("floor"), [self.visit(ast.BinOp(node.left, ast.Div(), node.right))], [])
        return ast.BinOp(self.visit(node.left), node.op, self.visit(node.right))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function, args, word = node.func, [*node.args], point(node.func)
        last = word.rpartition(".")[2] or getattr(function, "attr", "")
        if self.rows is None and (word == "range" or pieces(node)):
            return self._range(node) if word == "range" else self._text_of(pieces(node))
        if means("nothing", last) and not means("aggregates", last):
            raise Nothing(last)
        named = arguments_named(node)
        args += [named.pop(name) for name in ("q", "probs", "prob") if name in named]
        if named.keys() - {"bins", "breaks", "labels", "right", "default", "include_lowest"}:
            raise Unread  # it says more than is understood
        if plain(last) in _CASES:
            return self._cases(last, node)
        if isinstance(function, ast.Attribute) and not self.program.is_module(function.value):
            args.insert(0, function.value)
        return self._call(word, last, args)

    def _call(self, word: str, last: str, args: list[ast.expr]) -> ast.expr:
        measures = means("aggregates", word or last)
        if self.rows is None and len(args) == 1 and measures in words("of_lists"):
            return ast.Call(ast.Name("len" if measures == "count" else measures), [self.visit(args[0])], [])
        measured = self._measured(word or last, measures, args) if self.measures else None
        return measured or self._spelling(last, args) or self._function(word, last, args)

    def _spelling(self, last: str, args: Sequence[ast.expr]) -> ast.expr | None:
        """A column, a list or a condition that is spelt as a call."""
        match "" if last in self.program.names else last, args:
            case (("col" | "Col" | "column"), [first, *_]):
                return self.visit(ast.Name(word_of(first)))
            case (("and_" | "or_"), _):
                return ast.BoolOp(ast.And() if last == "and_" else ast.Or(), [self.visit(arg) for arg in args])
            case (("c" | "list" | "array"), _):
                return ast.List([self.visit(arg) for arg in args])
        return None

    def _function(self, word: str, last: str, args: Sequence[ast.expr]) -> ast.expr:
        """A function of rows or of values, by its form."""
        forms = words("rows")
        form = forms.get(plain(f"{last}{len(args)}")) or forms.get(plain(word)) or means("rows", last)
        if form == "round({0}, {1})" and (len(args) == 1 or unparse(args[1]) == "0"):
            form, args = "round({0})", args[:1]
        args = [args[0], ast.List([*args[1:]])] if form == "{0} in {1}" and len(args) > 2 else args
        form = "{0} == none" if form == "{0} is missing" and self.rows is None else form
        if not form:
            calls = last in ROW_FUNCTIONS or last in self.program.names
            return ast.Call(ast.Name(last), [self.visit(arg) for arg in args], []) if calls else unread()
        used = [int(at) for at in re.findall(r"\{(\d)\}", form)]
        if max(used) >= len(args) or (len(args) > 1 + max(used) and "(" in form):
            raise Unread
        return self._filled(form, [self.visit(arg) if at in used else arg for at, arg in enumerate(args)])

    def _measured(self, word: str, measures: str, args: Sequence[ast.expr]) -> ast.expr | None:
        """`mean(x)`, `F.avg("x")`, `count("*")`, `n()`, `countif(c)`; None of what does not aggregate."""
        if form := words("measures").get(plain(f"{word.rpartition('.')[2]}{len(args)}")):
            return self._filled(form, [self.visit(arg) for arg in args])
        if not measures or (len(args) > 1 and measures != "quantile"):
            return None
        if not args or (isinstance(args[0], ast.Constant) and args[0].value in ("*", 1)):
            return ast.Name(measure(word, ""))
        of = ast.Name(word_of(args[0])) if isinstance(args[0], ast.Constant) else args[0]
        return ast.Name(measure(word, unparse(self.visit(of)), args[1:]))

    def _filled(self, form: str, args: Sequence[ast.expr]) -> ast.expr:
        gives = {f"_{at}": arg for at, arg in enumerate(args)}

        class Put(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.expr:
                return gives.get(node.id, node)

        return Put().visit(ast.parse(re.sub(r"\{(\d)\}", r"_\1", form), mode="eval").body)  # type: ignore[no-any-return]

    def _as_text(self, node: ast.expr) -> ast.expr:
        return self.visit(node) if is_text(node) else ast.Call(ast.Name("str"), [self.visit(node)], [])

    def _range(self, node: ast.Call) -> ast.expr:
        """`range(n)` as `0..n - 1`."""
        first, *others = node.args if len(node.args) > 1 else [ast.Constant(0), *node.args]
        last = others[0] if len(others) == 1 and not node.keywords else unread()
        number = last.value if isinstance(last, ast.Constant) else None
        end = ast.Constant(number - 1) if isinstance(number, int) else ast.BinOp(last, ast.Sub(), ast.Constant(1))
        return ast.Name(f"{unparse(self.visit(first))}..{unparse(self.visit(end))}")

    def _cases(self, word: str, node: ast.Call) -> ast.expr:
        """`case_when(c ~ x, TRUE ~ y)`, `ifs(c, x, …)`, `when(c, x).otherwise(y)`, `cut(x, breaks, labels)`."""
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if word == "cut":
            return self._cut(node)
        last: ast.expr = ast.Name("none")
        if word == "otherwise" and isinstance(node.func, ast.Attribute):
            last, inner = self.visit(node.args[0]), node.func.value
            while isinstance(inner, ast.Call):
                before = inner.func.value if isinstance(inner.func, ast.Attribute) else None
                if isinstance(before, ast.Call) and getattr(inner.func, "attr", "") == "then":
                    inner = ast.Call(before.func, [before.args[0], inner.args[0]], [])
                pairs.insert(0, (inner.args[0], inner.args[1]))
                inner = inner.func.value if isinstance(inner.func, ast.Attribute) else inner.func
        elif word == "when":
            raise Unread
        else:
            node.args += [k.value for k in node.keywords if k.arg == "default"]
            pairs = list(zip(node.args[::2], node.args[1::2], strict=False))
            pairs += [(ast.Name("True"), node.args[-1])] if len(node.args) % 2 else []
        for condition, value in reversed(pairs):
            if unparse(condition).lower() in ("true", "t"):
                last = self.visit(value)
            else:
                last = ast.IfExp(self.visit(condition), self.visit(value), last)
        return last

    def _cut(self, node: ast.Call) -> ast.expr:
        own = {k.arg: k.value for k in node.keywords}
        edges = own.get("bins") or own.get("breaks") or (node.args[-1] if len(node.args) > 1 else None)
        column, edges_of = self.visit(node.args[0]), parts_in(edges) if edges is not None else []
        right = "alse" not in unparse(own.get("right", ast.Name(""))).lower()
        names = [unparse(self.visit(n)) for n in parts_in(own["labels"])] if "labels" in own else []
        names = names or [f'"{unparse(a)} to {unparse(b)}"' for a, b in pairwise(edges_of)]
        if len(edges_of) < 3 or len(names) != len(edges_of) - 1:
            raise Unread
        last: ast.expr = ast.Name(names[-1])
        for edge, name in reversed(list(zip(edges_of[1:-1], names, strict=False))):
            below = ast.Compare(column, [ast.LtE() if right else ast.Lt()], [self.visit(edge)])
            last = ast.IfExp(below, ast.Name(name), last)
        above = ast.Compare(column, [ast.Gt() if right else ast.GtE()], [self.visit(edges_of[0])])
        below = ast.Compare(column, [ast.LtE() if right else ast.Lt()], [self.visit(edges_of[-1])])
        return ast.IfExp(ast.BoolOp(ast.And(), [above, below]), last, ast.Name("none"))
