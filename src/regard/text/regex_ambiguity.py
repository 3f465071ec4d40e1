"""How ambiguous a regular expression is: in how many ways one text can match, read off its position automaton.

A backtracking engine tries them all before it gives up, so more than a few ways for each character mean a search that
does not end (Weideman et al. 2016). What an atom matches is handed over as a set of characters.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from regard.text.regex_parse import Alternatives, Atom, Node, Repeat, Sequence, SlowPatternError

MOST_POSITIONS = 600
MOST_COPIES = 8
"""An atom repeated more often than this counts as repeated without limit."""
MOST_WAYS = 50_000
"""Ways to match the first characters of a text; the patterns of known models have fewer than 100."""
MOST_PRODUCT = 200_000
"""Steps of the automaton that is searched for ambiguity."""


# --- the position automaton, with the number of ways -----------------------------------------------------


@dataclass(slots=True)
class _Part:
    """Of a part of a pattern: in how many ways it is empty, begins and ends; 2 stands for more."""

    empty: int = 0
    first: Counter[int] = field(default_factory=Counter)
    last: Counter[int] = field(default_factory=Counter)


@dataclass(slots=True)
class Automaton:
    """Positions are the atoms, copied where one is repeated a few times; `follow` has the ways from one to another."""

    atoms: list[Atom] = field(default_factory=list)
    follow: dict[int, Counter[int]] = field(default_factory=dict)
    first: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, tree: Node) -> "Automaton":
        made = cls()
        made.first = made._part(tree).first
        return made

    def _part(self, node: Node) -> _Part:
        match node:
            case Atom():
                if len(self.atoms) >= MOST_POSITIONS:
                    raise SlowPatternError(f"> {MOST_POSITIONS}")
                self.atoms.append(node)
                self.follow[here := len(self.atoms) - 1] = Counter()
                return _Part(0, Counter({here: 1}), Counter({here: 1}))
            case Sequence(parts):
                return self._sequence(parts)
            case Alternatives(parts):
                return _either([self._part(part) for part in parts])
            case Repeat(part, least, most):
                return self._repeat(part, least, most)
        return _Part(1)  # lookaround

    def _sequence(self, parts: Iterable[Node]) -> _Part:
        found = _Part(1)
        for part in parts:
            found = self._joined(found, self._part(part))
        return found

    def _joined(self, one: _Part, other: _Part) -> _Part:
        self._connect(one.last, other.first)
        first = one.first + _times(other.first, one.empty)
        last = other.last + _times(one.last, other.empty)
        return _Part(min(2, one.empty * other.empty), first, last)

    def _connect(self, last: Counter[int], first: Counter[int]) -> None:
        for here, ways in last.items():
            for there, more in first.items():
                self.follow[here][there] = min(2, self.follow[here][there] + ways * more)

    def _repeat(self, part: Node, least: int, most: int | None) -> _Part:
        # Copies of what is itself ambiguous multiply: such a part is judged as if it were repeated without limit.
        copies = MOST_COPIES if isinstance(part, Atom) else 2
        counted = most is not None
        if max(least, most or 0) > copies:
            least, most = min(least, 1), None
        found = _Part(1)
        for _ in range(least - (most is None and least > 0)):
            found = self._joined(found, self._part(part))
        if most is None:
            body = self._part(part)
            if counted and body.empty:  # in (a?){50} any of the fifty may be the empty ones
                raise SlowPatternError("(…?){…}")
            self._connect(body.last, body.first)
            if not least:
                body = _either([_Part(1), body])
            return self._joined(found, body)
        rest = _Part(1)
        for _ in range(most - least):  # (part (part (…)?)?)?
            rest = _either([_Part(1), self._joined(self._part(part), rest)])
        return self._joined(found, rest)


def _either(parts: list[_Part]) -> _Part:
    found = _Part()
    for part in parts:
        found = _Part(min(2, found.empty + part.empty), found.first + part.first, found.last + part.last)
    return found


def _times(counts: Counter[int], ways: int) -> Counter[int]:
    return Counter({place: min(2, count * ways) for place, count in counts.items()}) if ways else Counter()


# --- ambiguity -------------------------------------------------------------------------------------------


def _components(count: int, follow: Callable[[int], Iterable[int]]) -> list[int]:
    """For each node the number of its strongly connected component; −1 where it is on no cycle (Tarjan)."""
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
    """Whether some text leads around a loop in two ways."""
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


def degree(automaton: Automaton, matched: list[frozenset[str]]) -> int:
    """How many times over loops in a row can share a text: 0 for none, 1 for pairs as in a*a*, 2 for a*a*a*."""
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
            and _share(automaton, matched, loop_of, one, other, work)
        }
        for one in loops
    }
    by_loop: dict[int, set[int]] = {}
    for one in loops:
        by_loop.setdefault(loop_of[one], set()).update(shares[one])

    def longest(loop: int) -> int:
        return max((1 + longest(other) for other in by_loop[loop]), default=0)

    return max(map(longest, by_loop), default=0)


def count_ways(automaton: Automaton, matched: list[frozenset[str]], signs: list[str]) -> int:
    """In how many ways the first characters of a text can match, of a text chosen to make them many."""
    ways = automaton.first
    most = 0
    for _ in range(40):
        best = max(signs, key=lambda sign: sum(count for at, count in ways.items() if sign in matched[at]))
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


def _share(
    automaton: Automaton, matched: list[frozenset[str]], loop_of: list[int], one: int, other: int, work: list[int]
) -> bool:
    """Whether some text leads from `one` back to it, from `one` to `other`, and from `other` back to it."""
    seen = {(one, one, other)}
    todo = [(one, one, other)]
    while todo:
        a, b, c = todo.pop()
        for x in automaton.follow[a]:
            if loop_of[x] != loop_of[one]:
                continue
            for z in automaton.follow[c]:
                signs = matched[x] & matched[z]
                if loop_of[z] != loop_of[other] or not signs:
                    continue
                for y in automaton.follow[b]:
                    work[0] += 1
                    if work[0] > MOST_PRODUCT:
                        raise SlowPatternError(f"> {MOST_PRODUCT:,}")
                    if not matched[y] & signs or (x, y, z) in seen:
                        continue
                    if (x, y, z) == (one, other, other):
                        return True
                    seen.add((x, y, z))
                    todo.append((x, y, z))
    return False


def words_around(automaton: Automaton, matched: list[frozenset[str]]) -> Iterator[tuple[str, ...]]:
    """Short texts that lead once around a loop, as one tuple for each loop's position."""
    loop_of = _components(len(matched), lambda at: automaton.follow[at])
    for start in range(len(matched)):
        if loop_of[start] < 0 or not matched[start]:
            continue
        way = _shortest_cycle(automaton, loop_of, start)
        if len(way) == 1:
            yield tuple(sorted(matched[start]))
        elif all(matched[at] for at in way):
            yield ("".join(min(matched[at]) for at in way), "".join(max(matched[at]) for at in way))


def _shortest_cycle(automaton: Automaton, loop_of: list[int], start: int) -> list[int]:
    came: dict[int, int] = {}
    todo = [start]
    for here in todo:
        for there in automaton.follow[here]:
            if loop_of[there] != loop_of[start] or there in came:
                continue
            came[there] = here
            if there == start:
                way = [start]
                while (before := came[way[-1]]) != start:
                    way.append(before)
                return way[::-1]
            todo.append(there)
    return [start]
