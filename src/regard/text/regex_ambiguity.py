"""Ambiguity of a regular expression: the number of ways in which one text can match, from its position automaton.

A backtracking engine tries every way before it gives up, so with more than a few ways for each character a search may
never end (Weideman et al. 2016). What an atom matches is passed in as a set of characters.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from regard.text.regex_parse import Alternatives, Atom, Node, Repeat, Sequence, SlowPatternError

MOST_POSITIONS = 600
MOST_COPIES = 8
"""An atom repeated more often than this is treated as repeated without limit."""
MOST_WAYS = 50_000
"""Ways to match the first characters of a text; the patterns of known models have fewer than 100."""
MOST_PRODUCT = 200_000
"""Steps of the search for ambiguity in the product automaton."""


# --- the position automaton, with the number of ways -----------------------------------------------------


@dataclass(slots=True)
class _Fragment:
    """A part of a pattern: the number of ways in which it is empty, begins and ends; 2 means two or more."""

    empty: int = 0
    first: Counter[int] = field(default_factory=Counter)
    last: Counter[int] = field(default_factory=Counter)


@dataclass(slots=True)
class Automaton:
    """Positions are the atoms, copied where one is repeated a few times; `follow` counts the ways between two."""

    atoms: list[Atom] = field(default_factory=list)
    follow: dict[int, Counter[int]] = field(default_factory=dict)
    first: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, tree: Node) -> "Automaton":
        automaton = cls()
        automaton.first = automaton._fragment(tree).first
        return automaton

    def _fragment(self, node: Node) -> _Fragment:
        match node:
            case Atom():
                if len(self.atoms) >= MOST_POSITIONS:
                    raise SlowPatternError(f"> {MOST_POSITIONS}")
                self.atoms.append(node)
                self.follow[here := len(self.atoms) - 1] = Counter()
                return _Fragment(0, Counter({here: 1}), Counter({here: 1}))
            case Sequence(parts):
                return self._sequence(parts)
            case Alternatives(parts):
                return _alternatives([self._fragment(part) for part in parts])
            case Repeat(part, least, most):
                return self._repeat(part, least, most)
        return _Fragment(1)  # lookaround

    def _sequence(self, parts: Iterable[Node]) -> _Fragment:
        found = _Fragment(1)
        for part in parts:
            found = self._joined(found, self._fragment(part))
        return found

    def _joined(self, one: _Fragment, other: _Fragment) -> _Fragment:
        self._connect(one.last, other.first)
        first = one.first + _scaled(other.first, one.empty)
        last = other.last + _scaled(one.last, other.empty)
        return _Fragment(min(2, one.empty * other.empty), first, last)

    def _connect(self, last: Counter[int], first: Counter[int]) -> None:
        for here, ways in last.items():
            for there, more in first.items():
                self.follow[here][there] = min(2, self.follow[here][there] + ways * more)

    def _repeat(self, part: Node, least: int, most: int | None) -> _Fragment:
        # Copies of an ambiguous part multiply: such a part is treated as repeated without limit.
        copies = MOST_COPIES if isinstance(part, Atom) else 2
        counted = most is not None
        if max(least, most or 0) > copies:
            least, most = min(least, 1), None
        found = _Fragment(1)
        for _ in range(least - (most is None and least > 0)):
            found = self._joined(found, self._fragment(part))
        if most is None:
            body = self._fragment(part)
            if counted and body.empty:  # in (a?){50} any of the fifty may be empty
                raise SlowPatternError("(…?){…}")
            self._connect(body.last, body.first)
            if not least:
                body = _alternatives([_Fragment(1), body])
            return self._joined(found, body)
        rest = _Fragment(1)
        for _ in range(most - least):  # (part (part (…)?)?)?
            rest = _alternatives([_Fragment(1), self._joined(self._fragment(part), rest)])
        return self._joined(found, rest)


def _alternatives(parts: list[_Fragment]) -> _Fragment:
    found = _Fragment()
    for part in parts:
        found = _Fragment(min(2, found.empty + part.empty), found.first + part.first, found.last + part.last)
    return found


def _scaled(counts: Counter[int], ways: int) -> Counter[int]:
    return Counter({place: min(2, count * ways) for place, count in counts.items()}) if ways else Counter()


# --- ambiguity -------------------------------------------------------------------------------------------


def _components(count: int, follow: Callable[[int], Iterable[int]]) -> list[int]:
    """For each node the number of its strongly connected component; −1 where it is not on a cycle (Tarjan)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    found, stack, on_stack, number = [-1] * count, [], set(), 0
    for root in range(count):
        if root in order:
            continue
        work: list[tuple[int, Iterator[int]]] = []

        def enter(node: int, work: list[tuple[int, Iterator[int]]] = work) -> None:
            order[node] = low[node] = len(order)
            stack.append(node)
            on_stack.add(node)
            work.append((node, iter(follow(node))))

        enter(root)
        while work:
            node, rest = work[-1]
            for there in rest:
                if there not in order:
                    enter(there)
                    break
                if there in on_stack:
                    low[node] = min(low[node], order[there])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    members: list[int] = []
                    while not members or members[-1] != node:
                        members.append(stack.pop())
                        on_stack.discard(members[-1])
                    if len(members) > 1 or node in follow(node):
                        for member in members:
                            found[member] = number
                        number += 1
    return found


def is_exponential(automaton: Automaton, matched: list[frozenset[str]]) -> bool:
    """Whether one text can pass through a loop in two ways."""
    loop_of = _components(len(matched), lambda at: automaton.follow[at])
    inside = [
        [there for there in automaton.follow[at] if loop_of[there] == loop_of[at] >= 0] for at in automaton.follow
    ]
    if any(automaton.follow[at][there] > 1 for at, ends in enumerate(inside) for there in ends):
        return True
    pairs: dict[tuple[int, int], int] = {}
    edges: list[list[int]] = []
    todo = [(at, at) for at in range(len(matched)) if loop_of[at] >= 0]
    for pair in todo:
        pairs[pair] = len(pairs)
    work = 0
    for one, other in todo:
        edges.append([])
        for here in inside[one]:
            for there in inside[other]:
                work += 1
                if matched[here] & matched[there]:
                    if (here, there) not in pairs:
                        pairs[here, there] = len(pairs)
                        todo.append((here, there))
                    edges[-1].append(pairs[here, there])
        if work > MOST_PRODUCT:
            raise SlowPatternError(f"> {MOST_PRODUCT:,}")
    found = _components(len(edges), lambda at: edges[at])
    same = {found[number] for (one, other), number in pairs.items() if one == other and found[number] >= 0}
    return any(found[number] in same for (one, other), number in pairs.items() if one != other)


def polynomial_degree(automaton: Automaton, matched: list[frozenset[str]]) -> int:
    """The number of consecutive loops that can share a text, minus one: 0 for none, 1 as in a*a*, 2 as in a*a*a*."""
    loop_of = _components(len(matched), lambda at: automaton.follow[at])
    loops = [at for at in range(len(matched)) if loop_of[at] >= 0]
    after = {at: _reached(automaton, at) for at in loops}
    work = [0]
    shares = {
        one: {
            loop_of[other]
            for other in loops
            if loop_of[one] != loop_of[other]
            and other in after[one]
            and _loops_share_text(automaton, matched, loop_of, one, other, work)
        }
        for one in loops
    }
    by_loop: dict[int, set[int]] = {}
    for one in loops:
        by_loop.setdefault(loop_of[one], set()).update(shares[one])

    def longest(loop: int) -> int:
        return max((1 + longest(other) for other in by_loop[loop]), default=0)

    return max(map(longest, by_loop), default=0)


def count_ways(automaton: Automaton, matched: list[frozenset[str]], characters: list[str]) -> int:
    """The number of ways in which the first characters of a text match; the text is chosen to have many."""
    ways = automaton.first
    most = 0
    for _ in range(40):
        best = max(characters, key=lambda char: sum(count for at, count in ways.items() if char in matched[at]))
        here = {at: count for at, count in ways.items() if best in matched[at]}
        most = max(most, sum(here.values()))
        if not here or most > MOST_WAYS:
            break
        ways = Counter()
        for at, count in here.items():
            for there, more in automaton.follow[at].items():
                ways[there] += count * more
    return most


def _reached(automaton: Automaton, start: int) -> set[int]:
    found: set[int] = set()
    todo = [start]
    while todo:
        new = [there for there in automaton.follow[todo.pop()] if there not in found]
        found.update(new)
        todo += new
    return found


def _loops_share_text(
    automaton: Automaton, matched: list[frozenset[str]], loop_of: list[int], one: int, other: int, work: list[int]
) -> bool:
    """Whether one text leads from `one` to `one`, from `one` to `other`, and from `other` to `other`."""
    seen = {(one, one, other)}
    todo = [(one, one, other)]
    while todo:
        a, b, c = todo.pop()
        for x in automaton.follow[a]:
            if loop_of[x] != loop_of[one]:
                continue
            for z in automaton.follow[c]:
                common = matched[x] & matched[z]
                if loop_of[z] != loop_of[other] or not common:
                    continue
                for y in automaton.follow[b]:
                    work[0] += 1
                    if work[0] > MOST_PRODUCT:
                        raise SlowPatternError(f"> {MOST_PRODUCT:,}")
                    if not matched[y] & common or (x, y, z) in seen:
                        continue
                    if (x, y, z) == (one, other, other):
                        return True
                    seen.add((x, y, z))
                    todo.append((x, y, z))
    return False


def loop_texts(automaton: Automaton, matched: list[frozenset[str]]) -> Iterator[tuple[str, ...]]:
    """Short texts that pass through a loop once, one tuple for each position on a loop."""
    loop_of = _components(len(matched), lambda at: automaton.follow[at])
    for start in range(len(matched)):
        if loop_of[start] < 0 or not matched[start]:
            continue
        cycle = _shortest_cycle(automaton, loop_of, start)
        if len(cycle) == 1:
            yield tuple(sorted(matched[start]))
        elif all(matched[at] for at in cycle):
            yield ("".join(min(matched[at]) for at in cycle), "".join(max(matched[at]) for at in cycle))


def _shortest_cycle(automaton: Automaton, loop_of: list[int], start: int) -> list[int]:
    previous: dict[int, int] = {}
    todo = [start]
    for here in todo:
        for there in automaton.follow[here]:
            if loop_of[there] != loop_of[start] or there in previous:
                continue
            previous[there] = here
            if there == start:
                cycle = [start]
                while (before := previous[cycle[-1]]) != start:
                    cycle.append(before)
                return cycle[::-1]
            todo.append(there)
    return [start]
