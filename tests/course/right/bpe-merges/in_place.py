def learn_merges(words, n_merges):
    pieces = [(list(w), c) for w, c in words.items()]
    merges = []
    for _ in range(n_merges):
        counts = {}
        for p, c in pieces:
            for i in range(len(p) - 1):
                counts.setdefault((p[i], p[i + 1]), 0)
                counts[p[i], p[i + 1]] += c
        if len(counts) == 0:
            break
        a, b = min(counts.items(), key=lambda kv: (-kv[1], kv[0]))[0]
        merges.append((a, b))
        for p, _ in pieces:
            i = 0
            while i + 1 < len(p):
                if p[i] == a and p[i + 1] == b:
                    p[i : i + 2] = [a + b]
                i += 1
    return merges
