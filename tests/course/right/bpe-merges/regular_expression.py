import re
from collections import defaultdict


def learn_merges(words, n_merges):
    texts = {" ".join(word): count for word, count in words.items()}
    merges = []
    for _ in range(n_merges):
        counts = defaultdict(int)
        for text, count in texts.items():
            pieces = text.split()
            for pair in zip(pieces[:-1], pieces[1:]):
                counts[pair] += count
        ranked = sorted(counts.items(), key=lambda item: item[0])
        ranked.sort(key=lambda item: item[1], reverse=True)  # stable
        if not ranked:
            break
        pair = ranked[0][0]
        merges.append(list(pair))
        whole = re.compile(r"(?<!\S)" + re.escape(" ".join(pair)) + r"(?!\S)")
        texts = {whole.sub("".join(pair), text): count for text, count in texts.items()}
    return merges
