import math


def label_smoothing_loss(logits, targets, smoothing, ignore_index=-100):
    total = n = 0
    for z, t in zip(logits.tolist(), targets.tolist()):
        if t == ignore_index:
            continue
        m = max(z)
        lse = m + math.log(sum(math.exp(a - m) for a in z))
        V = len(z)
        total += sum((smoothing / V + (1 - smoothing) * (i == t)) * (lse - a) for i, a in enumerate(z))
        n += 1
    return total / n
