import math


def cross_entropy(logits, targets, pad=0):
    total, count = 0.0, 0
    for sentence, wanted in zip(logits.tolist(), targets.tolist()):
        for row, target in zip(sentence, wanted):
            if target == pad:
                continue
            top = max(row)
            total += top + math.log(sum(math.exp(score - top) for score in row)) - row[target]
            count += 1
    return total / count if count else 0.0
