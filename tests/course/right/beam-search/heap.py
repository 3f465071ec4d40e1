import heapq


def beam_search(log_probs, start, eos, beams, max_len):
    active = [(0.0, [start])]
    for _ in range(max_len):
        grown = []
        for score, path in active:
            if path[-1] == eos:
                grown.append((score, path))
            else:
                grown.extend((score + lp, [*path, token]) for token, lp in enumerate(log_probs[path[-1]].tolist()))
        active = heapq.nlargest(beams, grown)
        if active[0][1][-1] == eos:
            break  # scores only fall: nothing can overtake it
    score, path = max(active)
    return path, score
