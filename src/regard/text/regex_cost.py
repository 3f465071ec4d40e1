"""How long a regular expression of tokenizer.json may search: judged before a text is searched with it.

The engine backtracks. Three things make that long:

    exponential   two ways around the same loop for the same text, as in (a+)+ or (a|a)*
    polynomial    loops one after the other that can share a text in many ways, as in \\s*\\s*\\s*x
    quadratic     a loop that runs far, fails, and begins anew one character later, as in [ab]*c on "aaaa…"

The first two are found in the pattern's structure (Weideman et al. 2016: ambiguity of the position automaton), the
third by searching texts made from the pattern's own loops. Patterns of well-known models are accepted by name.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from regard.text.regex_parse import (
    Alternatives,
    Atom,
    Look,
    Node,
    Repeat,
    Sequence,
    SlowPatternError,
    parse,
)

LONGEST_PATTERN = 16_384
"""Characters. DeepSeek's longest class of letters takes about 1,500."""
MOST_POSITIONS = 600
MOST_COPIES = 8
"""An atom repeated more often than this counts as repeated without limit."""
MOST_WAYS = 50_000
"""Ways to match the first characters of a text; the patterns of known models have fewer than 100."""
MOST_PRODUCT = 200_000
"""Steps of the automaton that is searched for ambiguity."""
RUN = 2048
"""Characters of a run in a text that is searched."""
SLOW = 0.008
"""Seconds of processor time for such a text: one search along it takes under 1 ms, RUN²/2 steps over 10 ms."""
MOST_TEXTS = 500

KNOWN = frozenset(
    {
        # GPT-2, RoBERTa, BART, and what ByteLevel(use_regex=True) does
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        # GPT-4 (cl100k), Llama 3, Phi-4, OLMo 2
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+",
        # Qwen 1.5, 2, 2.5 and 3
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+",
        # GPT-4o (o200k), GPT-OSS, Llama 4
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        # DeepSeek V3 and R1
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        # GPT-4 as tiktoken writes it
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
        r"|\s*[\r\n]|\s+(?!\S)|\s",
        # CLIP
        r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    }
)


class Cost(Enum):
    """How the time of a search grows with the length of the text."""

    LINEAR = "linear"
    QUADRATIC = "quadratic"


def judge(pattern: str, search: Callable[[str], Callable[[str], object]]) -> Cost:
    """The cost of a pattern; SlowPatternError where it may take more than quadratic time, or is too large to judge.

    PatternError where it is malformed, or uses what is not supported.

    `search(regex)` compiles, and gives a function that removes all matches from a text and returns the rest: the
    engine itself, so that nothing depends on our reading of its classes.
    """
    if pattern in KNOWN:
        return Cost.LINEAR
    if len(pattern) > LONGEST_PATTERN:
        raise SlowPatternError(f"{len(pattern):,} > {LONGEST_PATTERN:,}")
    tree = parse(pattern)
    automata = [Automaton.of(each) for each in _bodies(tree)]
    signs = Signs(pattern, {atom for each in automata for atom in each.atoms}, search)
    loops: list[tuple[str, ...]] = []
    for automaton in automata:
        matched = [signs.of(atom) for atom in automaton.atoms]
        if _is_exponential(automaton, matched):
            raise SlowPatternError("(…)*")
        if _degree(automaton, matched) > 1 or _ways(automaton, matched, signs.all) > MOST_WAYS:
            raise SlowPatternError("…*…*…*")
        loops += _around(automaton, matched)
    # The engine skips a text without a character or word that every match needs; the tail has them all.
    tail = "\n" + "".join(signs.all) + "".join(_examples(tree, signs))
    if any(_degree(each, [signs.of(atom) for atom in each.atoms]) for each in automata) and _slow(
        search(pattern), loops, signs.all, tail, RUN // 8
    ):
        raise SlowPatternError("…*…*")  # cubic: already long at this length
    return Cost.QUADRATIC if _slow(search(pattern), loops, signs.all, tail, RUN) else Cost.LINEAR


def shortest(pattern: str) -> int:
    """The fewest characters that a match has.

    >>> shortest("a{2,}b?|cdd"), shortest(r"\\s*")
    (2, 0)
    """

    def least(node: Node) -> int:
        match node:
            case Atom():
                return 1
            case Sequence(parts):
                return sum(map(least, parts))
            case Alternatives(parts):
                return min(map(least, parts))
            case Repeat(part, count, _):
                return count * least(part)
        return 0

    return least(parse(pattern))


def _bodies(tree: Node) -> Iterator[Node]:
    """The pattern and the inside of each lookaround: each is matched by itself."""
    yield tree
    todo: list[Node] = [tree]
    while todo:
        match todo.pop():
            case Look(part):
                yield from _bodies(part)
            case Repeat(part, _, _):
                todo.append(part)
            case Sequence(parts) | Alternatives(parts):
                todo.extend(parts)


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


# --- characters that the pattern tells apart -------------------------------------------------------------


class Signs:
    """One character for each set of atoms that match the same: all that a text can be to the pattern."""

    def __init__(self, pattern: str, atoms: set[Atom], search: Callable[[str], Callable[[str], object]]) -> None:
        sample = "".join(dict.fromkeys(_SAMPLE + "".join(_named(pattern))))
        groups: dict[str, list[int]] = {sign: [] for sign in sample}
        sources = sorted({(atom.source, atom.ignore_case) for atom in atoms})
        for number, (source, ignore_case) in enumerate(sources):
            rest = set(str(search(f"(?i:{source})" if ignore_case else source)(sample)))
            for sign in sample:
                if sign not in rest:
                    groups[sign].append(number)
        by_group: dict[tuple[int, ...], str] = {}
        for sign, group in groups.items():
            by_group.setdefault(tuple(group), sign)
        self.all = list(by_group.values())
        self._matched = {
            each: frozenset(sign for group, sign in by_group.items() if number in group)
            for number, each in enumerate(sources)
        }

    def of(self, atom: Atom) -> frozenset[str]:
        """Those that the atom matches."""
        return self._matched[atom.source, atom.ignore_case]


def _named(pattern: str) -> Iterator[str]:
    """The characters that a pattern names itself, both cases, and those beside them."""
    for sign in set(pattern):
        if not sign.isascii():
            beside = (chr(code) for code in (ord(sign) - 1, ord(sign) + 1) if not 0xD800 <= code < 0xE000)
            yield from (sign, *sign.lower(), *sign.upper(), *(each for each in beside if each <= chr(0x10FFFF)))
    for at in range(len(pattern)):
        if pattern[at : at + 2] in ("\\x", "\\u"):
            digits = pattern[at + 2 : at + 12].strip("{").partition("}")[0]
            for count in (2, 4, len(digits)):
                code = int(digits[:count], 16) if _is_hexadecimal(digits[:count]) else 0
                if 0 < code < 0xD800 or 0xE000 <= code < 0x10FFFF:
                    yield chr(code)


def _is_hexadecimal(digits: str) -> bool:
    return bool(digits) and all(digit in "0123456789abcdefABCDEF" for digit in digits)


# ASCII, then some of every script and category of the basic plane, emoji, and signs that tokenizers care about.
_SAMPLE = "".join(
    chr(code)
    for code in (*range(1, 256), *range(256, 0xD800, 61), *range(0xE000, 0x10000, 61), 0x2581, 0x120, 0x1F600, 0x20000)
)


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


def _is_exponential(automaton: Automaton, matched: list[frozenset[str]]) -> bool:
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


def _degree(automaton: Automaton, matched: list[frozenset[str]]) -> int:
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


def _ways(automaton: Automaton, matched: list[frozenset[str]], signs: list[str]) -> int:
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


# --- texts that a bad pattern takes long over ------------------------------------------------------------


def _around(automaton: Automaton, matched: list[frozenset[str]]) -> Iterator[tuple[str, ...]]:
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


def _examples(tree: Node, signs: Signs) -> Iterator[str]:
    """A match of each alternative, as short as it can be."""

    def example(node: Node) -> str:
        match node:
            case Atom():
                return min(signs.of(node), default="")
            case Sequence(parts):
                return "".join(map(example, parts))
            case Alternatives(parts):
                return min(map(example, parts), key=len)
            case Repeat(part, least, _):
                return example(part) * min(least, MOST_COPIES)
        return ""

    for part in tree.parts if isinstance(tree, Alternatives) else (tree,):
        yield signs.all[0] + example(part) + signs.all[-1]


def _slow(
    remove: Callable[[str], object], loops: list[tuple[str, ...]], signs: list[str], tail: str, length: int
) -> bool:
    """Whether a run of what a loop takes, then any other character, takes longer than one walk along it."""
    words = list(dict.fromkeys(word for each in loops for word in each))
    # Few ends are needed for many words: what ends a loop is one of the characters that the pattern tells apart.
    ends = signs[: max(8, MOST_TEXTS // max(1, len(words)))]
    for word in words[:MOST_TEXTS]:
        run = word * (length // len(word) + 1)
        for text in (run + end + run + end + rest for end in ends for rest in ("", tail)):
            if _seconds(remove, text) > SLOW and min(_seconds(remove, text) for _ in range(2)) > SLOW:
                return True
    return False


def _seconds(remove: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    remove(text)
    return time.process_time() - began
