def learn_merges(words, n_merges):
    corpus = [(list(word), count) for word, count in words.items()]
    merges = []
    while len(merges) < n_merges:
        counts = {}
        for pieces, count in corpus:
            for i in range(len(pieces) - 1):
                pair = pieces[i], pieces[i + 1]
                counts[pair] = counts.get(pair, 0) + count
        if counts == {}:
            return merges
        most = max(counts.values())
        left, right = min(pair for pair in counts if counts[pair] == most)
        for pieces, _ in corpus:
            i = 0
            while i < len(pieces) - 1:
                if pieces[i] == left and pieces[i + 1] == right:
                    pieces[i : i + 2] = [left + right]
                i += 1
        merges.append((left, right))
    return merges
