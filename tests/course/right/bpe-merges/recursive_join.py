def learn_merges(words, n_merges, split=None):
    split = {w: tuple(w) for w in words} if split is None else split
    pairs = [(pair, words[w]) for w, p in split.items() for pair in zip(p, p[1:])]
    if n_merges == 0 or not pairs:
        return []
    names = sorted({pair for pair, _ in pairs})
    best = max(names, key=lambda n: sum(c for pair, c in pairs if pair == n))

    def join(p):
        if len(p) < 2:
            return p
        if p[:2] == best:
            return (p[0] + p[1], *join(p[2:]))
        return (p[0], *join(p[1:]))

    return [best] + learn_merges(words, n_merges - 1, {w: join(p) for w, p in split.items()})
