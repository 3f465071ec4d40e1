"""Calls and known mistakes of `bpe-merges`: word tables on which each wrong rule learns other merges.

The letters of a table are replaced by random letters in the same alphabetical order, so that ties are decided alike.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call

# Table: words with their counts.
PLAIN = {"cdb": 5, "cdba": 2, "eabab": 6, "fcdb": 3, "dabe": 4}
TIED = {"ba": 3, "ab": 3, "dc": 3, "cd": 2}  # three pairs three times each; the first seen is not the smallest
SPLIT_TIE = {"abd": 4, "abc": 4, "da": 5, "abcc": 1}
NESTED = {"abc": 2, "abb": 2, "ab": 5, "b": 1}  # after ab: ("ab", "b") and ("ab", "c") tie
CONCATENATED = {"ab": 5, "abc": 3, "ad": 3}  # ("a", "d") is smaller than ("ab", "c"), but ad is not smaller than abc
RUNS = {"aaa": 2, "aaaaa": 3, "ba": 5, "ab": 4}  # overlapping pairs
COUNTED = {"aaab": 2, "cd": 3}  # a a: four times if overlapping pairs count, twice if not
INSIDE = {"ca": 9, "cab": 2, "ab": 5}  # ca is joined first; then the pair a b must not be found in ca b
TWICE = {"abab": 4, "cdcdcd": 3, "cd": 1, "eab": 2}
APART = {"ab": 1, "ba": 1, "cb": 2, "bc": 2}
SHORT = {"ab": 2, "c": 7}  # one merge is possible
RARE = {"abc": 1, "de": 1}  # each pair occurs once


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def learned(words: Mapping[str, int], n_merges: int, about: str) -> Call:
        letters = sorted(set("".join(words)))
        chosen = np.sort(rng.choice(26, len(letters), replace=False))
        table = str.maketrans({old: chr(ord("a") + int(new)) for old, new in zip(letters, chosen, strict=True)})
        return call(
            "learn_merges", {word.translate(table): count for word, count in words.items()}, n_merges, about=about
        )

    def drawn() -> dict[str, int]:
        """Random words of the letters a, b, c with random counts."""
        lengths = rng.integers(2, 7, 6)
        return {"".join(rng.choice(list("abc"), n)): int(rng.integers(1, 9)) for n in lengths}

    return [
        learned(PLAIN, 4, "plain"),
        learned(TIED, 4, "tied"),
        learned(SPLIT_TIE, 3, "tied"),
        learned(NESTED, 3, "tied"),
        learned(CONCATENATED, 4, "tied"),
        learned(RUNS, 4, "runs"),
        learned(COUNTED, 2, "runs"),
        learned(INSIDE, 4, "inside"),
        learned(TWICE, 4, "twice"),
        learned(APART, 2, "boundary"),
        learned(SHORT, 5, "used-up"),
        learned(RARE, 3, "once"),
        learned({"a": 3, "b": 1}, 2, "letters"),
        learned(PLAIN, 0, "no-merge"),
        learned({}, 2, "no-words"),
        learned(drawn(), 6, "drawn"),
        learned(drawn(), 6, "drawn"),
    ]


ADD = "counts[pair] += count"
PAIRS = "pairwise(pieces)"
BEST = "min(counts, key=lambda pair: (-counts[pair], pair))"
STOP = "        if not counts:\n            break\n"
SPLIT = "split = {word: list(word) for word in words}"
MERGE = "split = {word: merge(pieces, best) for word, pieces in split.items()}"
JOIN = "joined.append(pair[0] + pair[1])\n            place += 2"
LEARNED = "merges.append(best)"
RETURN = "return merges"
APPLY = f"        {MERGE}\n"

TEXT = '" ".join(pieces).replace(" ".join(best), "".join(best)).split()'
BACKWARDS = (
    "[piece[::-1] for piece in merge([piece[::-1] for piece in pieces[::-1]], (best[1][::-1], best[0][::-1]))[::-1]]"
)
APART_COUNT = """taken = -1
            for place, pair in enumerate(pairwise(pieces)):
                if taken == place - 1 and place and pair == (pieces[place - 1], pieces[place]):
                    continue
                taken = place"""
COUNT = f"""        for word, count in words.items():
            pieces = split[word]
            for pair in {PAIRS}:
                {ADD}
"""
TOGETHER = """        pieces = [piece for word, count in words.items() for piece in split[word] * count]
        counts.update(pairwise(pieces))
"""

MISTAKES = (
    Mistake("counts-ignored", ((ADD, "counts[pair] += 1"),)),
    Mistake("once-per-word", ((PAIRS, f"set({PAIRS})"),)),
    Mistake("tie-first-seen", ((BEST, "max(counts, key=counts.get)"),)),
    Mistake("tie-last-seen", ((BEST, "max(reversed(counts), key=counts.get)"),)),
    Mistake("tie-largest", ((BEST, "max(counts, key=lambda pair: (counts[pair], pair))"),)),
    Mistake("tie-by-text", ((BEST, 'min(counts, key=lambda pair: (-counts[pair], "".join(pair), len(pair[0])))'),)),
    Mistake("tie-by-right", ((BEST, "min(counts, key=lambda pair: (-counts[pair], pair[::-1]))"),)),
    Mistake("rarest-first", ((BEST, "min(counts, key=lambda pair: (counts[pair], pair))"),)),
    Mistake(
        "not-recounted",
        (
            (APPLY, ""),
            (BEST, BEST.replace("min(counts,", "min(counts.keys() - set(merges),")),
            (STOP, "        if not counts.keys() - set(merges):\n            break\n"),
        ),
    ),
    Mistake("same-pair-again", ((APPLY, ""),)),
    Mistake("text-replaced", ((MERGE, MERGE.replace("merge(pieces, best)", TEXT)),)),
    Mistake("first-occurrence-only", ((JOIN, "return [*joined, pair[0] + pair[1], *pieces[place + 2 :]]"),)),
    Mistake("overlapping-merges", ((JOIN, JOIN.replace("+= 2", "+= 1")),)),
    Mistake("merged-from-the-right", ((MERGE, MERGE.replace("merge(pieces, best)", BACKWARDS)),)),
    Mistake("overlap-not-counted", ((f"for pair in {PAIRS}:", APART_COUNT),)),
    Mistake("across-words", ((COUNT, TOGETHER),)),
    Mistake("end-of-word", ((SPLIT, 'split = {word: [*word, "</w>"] for word in words}'),)),
    Mistake("end-of-word", ((SPLIT, 'split = {word: [*word[:-1], word[-1:] + "</w>"] for word in words}'),)),
    Mistake("start-of-word", ((SPLIT, 'split = {word: ["▁", *word] for word in words}'),)),
    Mistake("stops-early", ((STOP, "        if not counts or max(counts.values()) < 2:\n            break\n"),)),
    Mistake("never-stops", ((STOP, ""),)),
    Mistake("never-stops", ((STOP, ""), (BEST, "max(sorted(counts), key=counts.get)"))),
    Mistake("one-too-few", (("range(n_merges)", "range(n_merges - 1)"),)),
    Mistake("one-too-many", (("range(n_merges)", "range(n_merges + 1)"),)),
    Mistake("joined-texts", ((RETURN, "return [left + right for left, right in merges]"),)),
    Mistake("with-counts", ((LEARNED, "merges.append((best, counts[best]))"),)),
    Mistake("sorted-at-the-end", ((RETURN, "return sorted(merges)"),)),
    Mistake("pair-reversed", ((RETURN, "return [(right, left) for left, right in merges]"),)),
    Mistake("vocabulary", ((RETURN, "return sorted({*''.join(words), *(left + right for left, right in merges)})"),)),
    Mistake("tie-by-length", ((BEST, 'min(counts, key=lambda pair: (-counts[pair], len("".join(pair)), pair))'),)),
    Mistake(
        "tie-first-seen", ((BEST, "max(counts, key=counts.get)"), ("in words.items()", "in sorted(words.items())"))
    ),
)

GRADER = Grader(cases, MISTAKES)
