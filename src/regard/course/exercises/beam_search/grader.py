"""Calls and known mistakes of `beam-search`: small tables on which greedy search, exact search and each mistake fail.

The structure of the tables is fixed (which path wins under which rule); token ids and last digits are random.
"""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call

# Probabilities in percent, row = current token, column = next; 0 is start, 3 is eos.
MISLEADING = ((3, 65, 18, 14), (4, 43, 29, 24), (12, 15, 21, 52), (78, 2, 2, 18))  # the most likely first step is wrong
CROWDED = ((12, 2, 71, 15), (42, 4, 5, 49), (40, 30, 12, 18), (8, 84, 3, 5))  # the best sequence ends on rank three
HIDDEN = ((34, 42, 22, 2), (20, 20, 45, 15), (3, 4, 3, 90), (25, 25, 25, 25))  # the best sequence begins on rank three
SHORT = ((23, 27, 21, 29), (45, 15, 28, 12), (15, 63, 6, 16), (52, 3, 32, 13))  # ending at once is best
LONG = ((6, 61, 31, 2), (24, 29, 26, 21), (45, 9, 2, 44), (17, 14, 53, 16))  # the best is not finished in time
PRUNED = ((13, 55, 12, 20), (14, 12, 68, 6), (47, 46, 4, 3), (25, 25, 25, 25))  # the same; ranking by mean prunes it
CHAIN = ((5, 46, 20, 29), (6, 5, 82, 7), (5, 80, 7, 8), (25, 25, 25, 25))  # ending at once is best, but not by length
SIX = (  # a larger vocabulary
    *((4, 30, 24, 6, 20, 16), (9, 7, 33, 11, 22, 18), (12, 6, 8, 41, 19, 14)),
    *((16, 17, 17, 16, 17, 17), (21, 13, 5, 28, 10, 23), (8, 26, 15, 20, 24, 7)),
)
EVEN = ((13, 27, 56, 4), (40, 22, 18, 20), (21, 24, 29, 26), (55, 33, 5, 7))


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def search(percent: Sequence[Sequence[int]], beams: int, max_len: int, about: str) -> Call:
        V = len(percent)
        named = rng.permutation(V)  # random token ids
        if V > 4:  # eos is the last token: code that assumes four tokens never reaches it
            named = np.insert(rng.permutation(V - 1), 3, V - 1)
        log_probs = np.empty((V, V))
        log_probs[np.ix_(named, named)] = np.log(np.array(percent) / 100) + rng.uniform(-0.02, 0.02, (V, V))
        return call("beam_search", log_probs.round(5), int(named[0]), int(named[3]), beams, max_len, about=about)

    return [
        search(MISLEADING, 2, 4, "misleading"),
        search(MISLEADING, 1, 4, "one-beam"),
        search(CROWDED, 2, 4, "losing"),
        search(HIDDEN, 2, 4, "losing"),
        search(SHORT, 2, 4, "short"),
        search(CHAIN, 2, 4, "short"),
        search(PRUNED, 2, 3, "short"),
        search(LONG, 3, 3, "cut-short"),
        search(EVEN, 6, 3, "many-beams"),
        search(EVEN, 2, 1, "one-step"),
        search(SIX, 3, 4, "six-tokens"),
    ]


END = "if tokens[-1] == eos:"
WAITS = "candidates.append((tokens, score))"
EXTENDED = "candidates.append(([*tokens, token]"
EACH = "        for tokens, score in kept:\n"
SCORE = "score + float(log_prob)"
RANKED = "sorted(candidates, key=lambda beam: beam[1], reverse=True)"
KEPT = f"        kept = {RANKED}[:beams]\n"
RETURN = "return kept[0]"
HIGHEST = "return max(kept, key=lambda beam: beam[1])"
AVERAGE = "beam[1] / (len(beam[0]) - 1)"
PENALISED = ("beam[1] / ((5 + len(beam[0])) / 6) ** 0.6", "beam[1] / len(beam[0]) ** 0.7", "beam[1] / len(beam[0])")
FINISHED = "next((beam for beam in kept if beam[0][-1] == eos), kept[0])"

ALONE = (  # after the first step every beam keeps its own best continuation
    (EACH, f"        n = beams if len(kept[0][0]) == 1 else 1\n{EACH}            following = []\n"),
    (EXTENDED, EXTENDED.replace("candidates", "following")),
    (KEPT, f"            candidates += {RANKED.replace('candidates', 'following')}[:n]\n        kept = {RANKED}\n"),
)
DONE = ("kept = [([start], 0.0)]", "kept, done = [([start], 0.0)], []")
ASIDE = (  # every finished candidate, however unlikely, frees its place
    KEPT,
    "        done += [beam for beam in candidates if beam[0][-1] == eos]\n"
    f"        candidates = [beam for beam in candidates if beam[0][-1] != eos]\n{KEPT}",
)
MOVED = (  # a kept beam that finishes frees its place
    KEPT,
    f"{KEPT}        done += [beam for beam in kept if beam[0][-1] == eos]\n"
    "        kept = [beam for beam in kept if beam[0][-1] != eos]\n",
)
BEST = (RETURN, "return max(done + kept, key=lambda beam: beam[1])")
BEST_DONE = (RETURN, "return max(done or kept, key=lambda beam: beam[1])")
HURRIED = (KEPT, f"{KEPT}        if any(beam[0][-1] == eos for beam in kept):\n            break\n")

MISTAKES = (
    Mistake("greedy", (("[:beams]", "[:1]"),)),
    Mistake("exhaustive", (("[:beams]", ""),)),
    Mistake("each-beam-alone", ALONE),
    Mistake("never-ends", ((END, "if False:"),)),
    Mistake("finished-lost", ((WAITS, "pass"),)),
    Mistake("finished-set-aside", (DONE, ASIDE, BEST)),
    Mistake("finished-set-aside", (DONE, MOVED, BEST)),
    Mistake("finished-apart", (DONE, ASIDE, BEST_DONE)),
    Mistake("finished-apart", (DONE, MOVED, BEST_DONE)),
    Mistake("first-to-finish", (HURRIED, (RETURN, f"return {FINISHED}"))),
    Mistake("first-to-finish", (HURRIED,)),
    Mistake("finished-preferred", ((RETURN, f"return {FINISHED}"),)),
    Mistake("mean-for-sum", ((RANKED, RANKED.replace("beam[1]", AVERAGE)),)),
    Mistake("mean-at-the-end", ((RETURN, f"return max(kept, key=lambda beam: {AVERAGE})"),)),
    *(Mistake("length-counts", ((RANKED, RANKED.replace("beam[1]", value)),)) for value in PENALISED),
    *(Mistake("length-counts", ((RANKED, RANKED.replace("beam[1]", value)), (RETURN, HIGHEST))) for value in PENALISED),
    *(Mistake("length-counts", ((RETURN, f"return max(kept, key=lambda beam: {value})"),)) for value in PENALISED),
    Mistake("mean-returned", ((RETURN, "return kept[0][0], kept[0][1] / (len(kept[0][0]) - 1)"),)),
    Mistake("last-step-only", ((SCORE, "float(log_prob)"),)),
    Mistake("probabilities-added", ((SCORE, "score + float(np.exp(log_prob))"),)),
    Mistake("probability-returned", ((RETURN, "return kept[0][0], float(np.exp(kept[0][1]))"),)),
    Mistake("lowest-first", ((", reverse=True", ""),)),
    Mistake("table-transposed", (("log_probs[tokens[-1]]", "log_probs[:, tokens[-1]]"),)),
    Mistake("score-missing", ((RETURN, "return kept[0][0]"),)),
    Mistake("score-first", ((RETURN, "return kept[0][::-1]"),)),
    Mistake("wrong-sign", ((RETURN, "return kept[0][0], -kept[0][1]"),)),
    Mistake("start-left-out", ((RETURN, "return kept[0][0][1:], kept[0][1]"),)),
    Mistake("eos-left-out", ((RETURN, "return [token for token in kept[0][0] if token != eos], kept[0][1]"),)),
    Mistake("start-counted", (("range(max_len)", "range(max_len - 1)"),)),
    Mistake("one-too-many", (("range(max_len)", "range(max_len + 1)"),)),
)

GRADER = Grader(cases, MISTAKES)
