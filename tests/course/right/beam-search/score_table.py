import numpy as np


def beam_search(log_probs, start, eos, beams, max_len):
    V = len(log_probs)
    seqs, scores = [[start]], np.zeros(1)
    for _ in range(max_len):
        cand = np.full((len(seqs), V + 1), -np.inf)
        for i, s in enumerate(seqs):
            if s[-1] == eos:
                cand[i, V] = scores[i]
            else:
                cand[i, :V] = scores[i] + log_probs[s[-1]]
        flat = cand.ravel()
        top = [t for t in np.argsort(-flat)[:beams] if flat[t] > -np.inf]
        seqs, scores = [seqs[t // (V + 1)] + ([] if t % (V + 1) == V else [int(t % (V + 1))]) for t in top], flat[top]
    b = int(np.argmax(scores))
    return seqs[b], float(scores[b])
