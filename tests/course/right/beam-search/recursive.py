def step(kept, log_probs, eos, beams):
    options = {}
    for path, score in kept.items():
        if path[-1] == eos:
            options[path] = score
        else:
            for token in range(len(log_probs)):
                options[(*path, token)] = score + log_probs[path[-1], token]
    winners = sorted(options, key=options.get)[-beams:]
    return {path: options[path] for path in winners}


def beam_search(log_probs, start, eos, beams, max_len, kept=None):
    kept = {(start,): 0.0} if kept is None else kept
    if max_len > 0:
        return beam_search(log_probs, start, eos, beams, max_len - 1, step(kept, log_probs, eos, beams))
    best = max(kept, key=kept.get)
    return list(best), kept[best]
