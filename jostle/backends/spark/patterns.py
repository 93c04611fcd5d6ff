r"""Patterns for Java's regular expressions, which otherwise fail, or do not end, on a long text.

Java tries one way after another, and comes back: it needs a part of the stack for each turn of a loop that it may come
back to, and `(a*)*b` takes it longer than anybody lives. So a pattern is compiled to a finite automaton, which has one
way for each text, and the automaton is written as an expression that follows this way: of the branches of a state one
character decides, and its loops are possessive, `(?:…)*+`, which Java runs in place. No text needs more stack than the
expression is deep, nor more time than some steps a character. What does not come back there loses nothing: where a loop
has taken all its turns, the automaton was last in the state that the loop is of, and goes on from there.

Other servers of the protocol read `*+` as `*` once more, which means the same.

A cycle goes through a state, its hub; without the hub the cycles of the rest are fewer. So the ways from the hub back
to it are the loop's body, and the ways from it that do not come back follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

from jostle.diagnostics import Refusal, refuse
from jostle.language import patterns

MOST_STATES = 256
_LONGEST = 20_000  # characters of an expression
_DEEPEST = 1_200  # characters that an expression reads one after another, each a call within the last
_MOST_WALKS = 4_000
_LAST = 0x10FFFF
_SURROGATES = 0xD800, 0xDFFF  # no characters of texts
_FEW = 1_000
_NEVER = "\\A\\z[a]"

State = int
_End = -1  # what the end of the text is, beside the classes of characters
_FOUND: State = -1  # the state in which the pattern has matched, whatever follows


@lru_cache(256)
def spelling(pattern: str) -> str:
    """A pattern in Java's syntax, which is RE2's; a `DataError` where its automaton is too large to be written down."""
    tree = patterns.parse(pattern)
    if _ways(tree) <= _FEW:
        return patterns.spelling(tree)
    if in_order := _in_order(tree):
        return in_order
    classes, moves = _automaton(pattern)
    if 0 not in moves:
        return "\\A" if moves is _ALL else _NEVER
    return "\\A" + _Writer(classes, moves).walk(0, frozenset(moves), _FOUND)


# Patterns that need no automaton ----------------------------------------------------------------------


def _ways(pattern: patterns.Pattern) -> float:
    """How many ways Java may try from one place of a text, at most; infinitely many of what repeats without an end."""
    match pattern:
        case patterns.Sequence(parts=parts):
            return math.prod(map(_ways, parts))
        case patterns.Either(ways=ways):
            return sum(map(_ways, ways))
        case patterns.Repeat(part=part, least=least, most=most):
            one = _ways(part)
            return math.inf if most is None or one > _FEW else sum(one**many for many in range(least, most + 1))
    return 1


def _size(pattern: patterns.Pattern) -> int | None:
    """How many characters it reads, where these are always as many."""
    match pattern:
        case patterns.Characters():
            return 1
        case patterns.Sequence(parts=parts):
            sizes = [_size(part) for part in parts]
            return None if None in sizes else sum(size or 0 for size in sizes)
        case patterns.Either(ways=ways):
            different = {_size(way) for way in ways}
            return different.pop() if len(different) == 1 else None
        case patterns.Repeat(part=part, least=least, most=most) if least == most:
            size = _size(part)
            return None if size is None else size * least
    return None


def _in_order(pattern: patterns.Pattern) -> str:
    """Pieces of a fixed length each, with one character after another of a class between: each is looked for behind the
    one before, where it first stands, and that is not come back to. Empty where the pattern is another.

    A piece that stands further on is no better: what may stand behind it may stand before it too. So each class has the
    characters of the one before it, and of the pieces before it. `{1}+` is once, for good. To RE2 it is once or more,
    which is the same where what is between may hold the piece.
    """
    parts = list(pattern.parts) if isinstance(pattern, patterns.Sequence) else [pattern]
    start, end = patterns.Edge(True) in parts[:1], patterns.Edge(False) in parts[-1:]
    pieces: list[list[patterns.Pattern]] = [[]]
    between: list[patterns.Characters] = []
    if not start:
        pieces.append([])
        between.append(_ANY)
    for part in parts[start : len(parts) - end]:
        if isinstance(part, patterns.Repeat) and isinstance(part.part, patterns.Characters) and part.most is None:
            pieces[-1] += [part.part] * part.least
            pieces.append([])
            between.append(part.part)
        else:
            pieces[-1].append(part)
    if not end:
        pieces.append([])
        between.append(_ANY)
    wholes = [patterns.Sequence(tuple(piece)) for piece in pieces]
    if not between or any(_size(piece) is None or _ways(piece) > _FEW for piece in wholes):
        return ""
    for i in range(1, len(between)):
        inside = [between[i - 1], *_read(wholes[i])]
        if not all(_holds(between[i], characters) for characters in inside):
            return ""
    first, *middle, last = map(patterns.spelling, wholes)
    gaps = [_class(characters) for characters in between]
    spelled = "\\A" + first + "".join(f"(?:{gap}*?{p}){{1}}+" for gap, p in zip(gaps, middle, strict=False) if p)
    return spelled + (f"{gaps[-1]}*{last}\\z" if end else "")


_ANY = patterns.Characters((), outside=True)


def _class(characters: patterns.Characters) -> str:
    return f"[\\x{{0}}-\\x{{{_LAST:X}}}]" if characters == _ANY else patterns.spelling(characters)


def _read(pattern: patterns.Pattern) -> list[patterns.Characters]:
    """The classes of characters that a pattern reads."""
    match pattern:
        case patterns.Sequence(parts=parts) | patterns.Either(ways=parts):
            return [characters for part in parts for characters in _read(part)]
        case patterns.Repeat(part=part):
            return _read(part)
        case patterns.Characters():
            return [pattern]
    return []


def _holds(one: patterns.Characters, other: patterns.Characters) -> bool:
    """Whether a class has all characters of another."""
    cuts = {0, *(cut for characters in (one, other) for a, b in characters.ranges for cut in (a, b + 1))}
    return all(one.holds(cut) or not other.holds(cut) for cut in cuts if cut <= _LAST)


Moves = Mapping[State, Mapping[State, tuple[int, ...]]]
"""For each state the next ones, each with the classes of characters that lead there."""
_ALL: Moves = {}


def _too_large() -> Refusal:
    message = "Spark cannot search for this pattern: its repetitions have too many ways"
    return refuse("DataError", message, help="use a simpler pattern, or two; or calculate it in the data before")


# Characters -----------------------------------------------------------------------------------------


def _classes(read: Iterable[patterns.Characters]) -> list[list[tuple[int, int]]]:
    """The characters in classes of which each step of a pattern reads all or none."""
    read = list(read)
    cuts = {0, _SURROGATES[0], _SURROGATES[1] + 1, _LAST + 1}
    for characters in read:
        for first, last in characters.ranges:
            cuts |= {first, last + 1}
    classes: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
    ordered = sorted(cuts)
    for first, after in pairwise(ordered):
        if first != _SURROGATES[0]:
            ranges = classes.setdefault(tuple(characters.holds(first) for characters in read), [])
            if ranges and ranges[-1][1] == first - 1:
                ranges[-1] = ranges[-1][0], after - 1
            else:
                ranges.append((first, after - 1))
    return list(classes.values())


# The automaton --------------------------------------------------------------------------------------


def _automaton(pattern: str) -> tuple[list[list[tuple[int, int]]], Moves]:
    """The classes of characters, and the moves of the least automaton that says whether a text has a match: from state
    0, of states from which there is a way to `_FOUND`. Without state 0 none is found, or in `_ALL` always."""
    program = patterns.program_of(pattern)
    classes = _classes({characters for _, characters, _ in program if characters is not None})
    states: dict[tuple[frozenset[int], bool], int] = {}
    steps: list[dict[int, int]] = []
    waiting = [(frozenset({0}), True)]
    states[waiting[0]] = 0
    while waiting:
        here, start = waiting.pop()
        moves: dict[int, int] = {}
        while len(steps) < len(states):
            steps.append({})
        steps[states[here, start]] = moves
        if len(program) in patterns.reached_of(program, set(here), (start, False)):
            moves.update(dict.fromkeys((*range(len(classes)), _End), _FOUND))
            continue
        if len(program) in patterns.reached_of(program, set(here), (start, True)):
            moves[_End] = _FOUND
        reached = patterns.reached_of(program, set(here), (start, False))
        reads = [program[i] for i in reached if i < len(program)]
        for i, ranges in enumerate(classes):
            code = ranges[0][0]
            then = {after[0] for _, characters, after in reads if characters is not None and characters.holds(code)}
            place = frozenset(then | {0}), False
            if place not in states:
                if len(states) > 2 * MOST_STATES:
                    raise _too_large()
                states[place] = len(states)
                waiting.append(place)
            moves[i] = states[place]
    return classes, _least(steps)


def _blocks(steps: list[dict[int, int]]) -> list[int]:
    """For each state its class of those that find the same texts, by splitting what a step tells apart (Moore)."""
    block = [int(set(moves.values()) == {_FOUND}) for moves in steps]
    while True:
        facts = [
            (block[i], tuple(sorted((c, -1 if t == _FOUND else block[t]) for c, t in moves.items())))
            for i, moves in enumerate(steps)
        ]
        numbers = {fact: n for n, fact in enumerate(dict.fromkeys(facts))}
        again = [numbers[fact] for fact in facts]
        if len(numbers) == len(set(block)):
            return block
        block = again


def _least(steps: list[dict[int, int]]) -> Moves:
    """The moves of the automaton with as few states as can be, without those from which no way leads to `_FOUND`."""
    block = _blocks(steps)
    done = {block[i] for i, moves in enumerate(steps) if set(moves.values()) == {_FOUND} and len(moves) > 1}
    if block[0] in done:
        return _ALL
    moves: dict[int, dict[int, list[int]]] = {}
    for i, step in enumerate(steps):
        if block[i] not in moves and block[i] not in done:
            nexts: dict[int, list[int]] = moves.setdefault(block[i], {})
            for c, t in sorted(step.items()):
                nexts.setdefault(_FOUND if t == _FOUND or block[t] in done else block[t], []).append(c)
    alive = {_FOUND}
    while more := {i for i, nexts in moves.items() if i not in alive and nexts.keys() & alive}:
        alive |= more
    order = {block[0]: 0}
    for i in moves:
        if i in alive:
            order.setdefault(i, len(order))
    if block[0] not in alive:
        return {}
    if len(order) > MOST_STATES:
        raise _too_large()
    order[_FOUND] = _FOUND
    return {
        order[i]: {order[t]: tuple(some) for t, some in nexts.items() if t in alive}
        for i, nexts in moves.items()
        if i in alive
    }


# The expression -------------------------------------------------------------------------------------


class _Writer:
    def __init__(self, classes: list[list[tuple[int, int]]], moves: Moves) -> None:
        self._classes, self._moves = classes, moves
        self._walks: dict[tuple[State, frozenset[State], State], tuple[str, int]] = {}

    def walk(self, at: State, inside: frozenset[State], goal: State) -> str:
        return self._walk(at, inside, goal)[0]

    def _walk(self, at: State, inside: frozenset[State], goal: State) -> tuple[str, int]:
        """What the ways through states `inside` from one of them read until they come to the goal, which is none, and
        how deep that is; nothing where there is no way."""
        inside = self._from(at, inside)
        place = at, inside, goal
        if place not in self._walks:
            if len(self._walks) > _MOST_WALKS:
                raise _too_large()
            self._walks[place] = "", 0
            self._walks[place] = self._expression(at, inside, goal)
        return self._walks[place]

    def _expression(self, at: State, inside: frozenset[State], goal: State) -> tuple[str, int]:
        cycle = self._cycle(at, inside)
        if not cycle:
            return self._step(at, inside - {at}, goal)
        hub = min(cycle, key=lambda state: (self._cyclic(cycle - {state}), state))
        if at != hub:
            direct = self._walk(at, inside - {hub}, goal)
            first = self._walk(at, cycle - {hub}, hub)
            then = self._walk(hub, inside, goal)
            return _either([_after(first, then) if first[0] and then[0] else ("", 0), direct])
        body = self._step(hub, cycle - {hub}, hub)
        leave = self._step(hub, inside - {hub}, goal)
        return _after((f"(?:{body[0]})*+", body[1] + 1), leave) if leave[0] else ("", 0)

    def _step(self, at: State, inside: frozenset[State], goal: State) -> tuple[str, int]:
        """The same from a state that is left at once and not entered again."""
        ways = []
        for then, classes in self._moves[at].items():
            rest = ("", 0) if then == goal else self._walk(then, inside, goal) if then in inside else None
            if rest is not None and (then == goal or rest[0]):
                ways.append(_after((self._spelled(classes), 1), rest))
        return _either(ways)

    def _spelled(self, classes: tuple[int, ...]) -> str:
        ranges = sorted(r for c in classes if c != _End for r in self._classes[c])
        joined: list[tuple[int, int]] = []
        for first, last in ranges:
            if joined and (joined[-1][1] + 1 == first or (joined[-1][1] + 1, first - 1) == _SURROGATES):
                joined[-1] = joined[-1][0], last
            else:
                joined.append((first, last))
        one = len(joined) == 1 and joined[0][0] == joined[0][1]
        spelling = "".join(f"\\x{{{a:X}}}" if a == b else f"\\x{{{a:X}}}-\\x{{{b:X}}}" for a, b in joined)
        spelling = spelling if one or not spelling else f"[{spelling}]"
        if _End not in classes:
            return spelling
        return f"(?:{spelling}|\\z)" if spelling else "\\z"

    def _from(self, at: State, inside: frozenset[State]) -> frozenset[State]:
        """The states that a state has ways to, and itself."""
        reached, waiting = {at}, [at]
        while waiting:
            more = self._moves[waiting.pop()].keys() & inside - reached
            reached |= more
            waiting += more
        return frozenset(reached)

    def _cycle(self, at: State, inside: frozenset[State]) -> frozenset[State]:
        """The states that a state has ways to and back; none where there is no way back to itself."""
        forward = self._from(at, inside)
        back, waiting = set[State](), [at]
        while waiting:
            state = waiting.pop()
            more = {other for other in forward - back if state in self._moves[other]}
            back |= more
            waiting += more
        return frozenset(back)

    def _cyclic(self, states: frozenset[State]) -> int:
        """How many of these are in cycles of them."""
        return sum(bool(self._cycle(state, states)) for state in states)


def _after(first: tuple[str, int], then: tuple[str, int]) -> tuple[str, int]:
    text, depth = first[0] + then[0], first[1] + then[1]
    if len(text) > _LONGEST or depth > _DEEPEST:
        raise _too_large()
    return text, depth


def _either(ways: list[tuple[str, int]]) -> tuple[str, int]:
    ways = [way for way in ways if way[0]]
    if len(ways) < 2:
        return ways[0] if ways else ("", 0)
    text = f"(?:{'|'.join(way for way, _ in ways)})"
    if len(text) > _LONGEST:
        raise _too_large()
    return text, 1 + max(depth for _, depth in ways)
