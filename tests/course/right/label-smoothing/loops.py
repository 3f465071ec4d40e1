import math


def label_smoothing_loss(logits, targets, smoothing, ignore_index=-100):
    losses = []
    for row, target in zip(logits.tolist(), targets.tolist(), strict=True):
        if target == ignore_index:
            continue
        top = max(row)
        log_total = top + math.log(sum(math.exp(x - top) for x in row))
        loss = 0.0
        for j, x in enumerate(row):
            share = smoothing / len(row) + (1 - smoothing if j == target else 0)
            loss += share * (log_total - x)
        losses.append(loss)
    return sum(losses) / len(losses)
