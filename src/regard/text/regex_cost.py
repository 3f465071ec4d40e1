"""The cost of a regular expression of tokenizer.json, found before a text is searched with it.

The engine backtracks. Three things make a search long:

    exponential   two ways around the same loop for the same text, as in (a+)+ or (a|a)*
    polynomial    consecutive loops that can share a text in many ways, as in \\s*\\s*\\s*x
    quadratic     a loop that matches far, fails, and starts again one character later, as in [ab]*c on "aaaa…"

The first two are found in the pattern's structure (Weideman et al. 2016: ambiguity of the position automaton), the
third by searching texts built from the pattern's own loops. Patterns of well-known models are accepted from a list.
"""

import time
from collections.abc import Callable, Iterator
from enum import Enum

from regard.text.regex_ambiguity import (
    MOST_COPIES,
    MOST_WAYS,
    Automaton,
    count_ways,
    is_exponential,
    loop_texts,
    polynomial_degree,
)
from regard.text.regex_parse import (
    Alternatives,
    Atom,
    Lookaround,
    Node,
    Repeat,
    Sequence,
    SlowPatternError,
    parse,
)

LONGEST_PATTERN = 16_384
"""Characters. DeepSeek's longest class of letters takes about 1,500."""
RUN_LENGTH = 4096
"""Characters in one run of a text that is searched."""
SLOW_SECONDS = 0.008
"""Seconds of processor time for such a text: a linear search takes about 1 ms, RUN_LENGTH²/2 steps over 40 ms."""
MOST_TEXTS = 500

KNOWN_PATTERNS = frozenset(
    {
        # GPT-2, RoBERTa, BART, and ByteLevel(use_regex=True)
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


def search_cost(pattern: str, search: Callable[[str], Callable[[str], object]]) -> Cost:
    """The cost of a pattern.

    Raises SlowPatternError where it may take more than quadratic time or is too large to analyse, and PatternError
    where it is malformed or uses an unsupported construct.

    `search(regex)` compiles a pattern and returns a function that removes all its matches from a text. The engine
    itself decides what a character class matches, not this module.
    """
    if pattern in KNOWN_PATTERNS:
        return Cost.LINEAR
    if len(pattern) > LONGEST_PATTERN:
        raise SlowPatternError(f"{len(pattern):,} > {LONGEST_PATTERN:,}")
    tree = parse(pattern)
    automata = [Automaton.of(each) for each in _bodies(tree)]
    characters = Characters(pattern, {atom for each in automata for atom in each.atoms}, search)
    loops: list[tuple[str, ...]] = []
    for automaton in automata:
        matched = [characters.of(atom) for atom in automaton.atoms]
        if is_exponential(automaton, matched):
            raise SlowPatternError("(…)*")
        if polynomial_degree(automaton, matched) > 1 or count_ways(automaton, matched, characters.all) > MOST_WAYS:
            raise SlowPatternError("…*…*…*")
        loops += loop_texts(automaton, matched)
    # The engine skips a text that lacks a character or word which every match needs; the tail has them all.
    tail = "\n" + "".join(characters.all) + "".join(_examples(tree, characters))
    if any(polynomial_degree(each, [characters.of(atom) for atom in each.atoms]) for each in automata) and _is_slow(
        search(pattern), loops, characters.all, tail, RUN_LENGTH // 16
    ):
        raise SlowPatternError("…*…*")  # cubic: slow even at this length
    return Cost.QUADRATIC if _is_slow(search(pattern), loops, characters.all, tail, RUN_LENGTH) else Cost.LINEAR


def shortest_match(pattern: str) -> int:
    """The length of the shortest match.

    >>> shortest_match("a{2,}b?|cdd"), shortest_match(r"\\s*")
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
    """The pattern and the inside of each lookaround: each is matched on its own."""
    yield tree
    todo: list[Node] = [tree]
    while todo:
        match todo.pop():
            case Lookaround(part):
                yield from _bodies(part)
            case Repeat(part, _, _):
                todo.append(part)
            case Sequence(parts) | Alternatives(parts):
                todo.extend(parts)


# --- characters that the pattern distinguishes -----------------------------------------------------------


class Characters:
    """One representative character for each set of characters that the atoms of a pattern do not distinguish."""

    def __init__(self, pattern: str, atoms: set[Atom], search: Callable[[str], Callable[[str], object]]) -> None:
        sample = "".join(dict.fromkeys(_SAMPLE + "".join(_characters_in(pattern))))
        groups: dict[str, list[int]] = {character: [] for character in sample}
        sources = sorted({(atom.source, atom.ignore_case) for atom in atoms})
        for number, (source, ignore_case) in enumerate(sources):
            rest = set(str(search(f"(?i:{source})" if ignore_case else source)(sample)))
            for character in sample:
                if character not in rest:
                    groups[character].append(number)
        by_group: dict[tuple[int, ...], str] = {}
        for character, group in groups.items():
            by_group.setdefault(tuple(group), character)
        self.all = list(by_group.values())
        self._matched = {
            each: frozenset(character for group, character in by_group.items() if number in group)
            for number, each in enumerate(sources)
        }

    def of(self, atom: Atom) -> frozenset[str]:
        """The representatives that the atom matches."""
        return self._matched[atom.source, atom.ignore_case]


def _characters_in(pattern: str) -> Iterator[str]:
    """The characters that occur in a pattern, in both cases, and their neighbours in Unicode."""
    for character in set(pattern):
        if not character.isascii():
            beside = (chr(code) for code in (ord(character) - 1, ord(character) + 1) if not 0xD800 <= code < 0xE000)
            yield from (
                character,
                *character.lower(),
                *character.upper(),
                *(each for each in beside if each <= chr(0x10FFFF)),
            )
    for at in range(len(pattern)):
        if pattern[at : at + 2] in ("\\x", "\\u"):
            digits = pattern[at + 2 : at + 12].strip("{").partition("}")[0]
            for count in (2, 4, len(digits)):
                code = int(digits[:count], 16) if _is_hexadecimal(digits[:count]) else 0
                if 0 < code < 0xD800 or 0xE000 <= code < 0x10FFFF:
                    yield chr(code)


def _is_hexadecimal(digits: str) -> bool:
    return bool(digits) and all(digit in "0123456789abcdefABCDEF" for digit in digits)


# ASCII, then a sample of every script and category of the basic plane, emoji, and the markers of tokenizers.
_SAMPLE = "".join(
    chr(code)
    for code in (*range(1, 256), *range(256, 0xD800, 61), *range(0xE000, 0x10000, 61), 0x2581, 0x120, 0x1F600, 0x20000)
)


# --- texts on which a bad pattern is slow ----------------------------------------------------------------


def _examples(tree: Node, characters: Characters) -> Iterator[str]:
    """The shortest match of each alternative."""

    def example(node: Node) -> str:
        match node:
            case Atom():
                return min(characters.of(node), default="")
            case Sequence(parts):
                return "".join(map(example, parts))
            case Alternatives(parts):
                return min(map(example, parts), key=len)
            case Repeat(part, least, _):
                return example(part) * min(least, MOST_COPIES)
        return ""

    for part in tree.parts if isinstance(tree, Alternatives) else (tree,):
        yield characters.all[0] + example(part) + characters.all[-1]


def _is_slow(
    remove: Callable[[str], object], loops: list[tuple[str, ...]], characters: list[str], tail: str, length: int
) -> bool:
    """Whether a run that a loop matches, followed by another character, takes longer than one linear search."""
    words = list(dict.fromkeys(word for each in loops for word in each))
    # With many words few ends suffice: a loop ends at one of the characters that the pattern distinguishes.
    ends = characters[: max(8, MOST_TEXTS // max(1, len(words)))]
    for word in words[:MOST_TEXTS]:
        run = word * (length // len(word) + 1)
        for text in (run + end + run + end + rest for end in ends for rest in ("", tail)):
            if _seconds(remove, text) > SLOW_SECONDS and min(_seconds(remove, text) for _ in range(2)) > SLOW_SECONDS:
                return True
    return False


def _seconds(remove: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    remove(text)
    return time.process_time() - began
