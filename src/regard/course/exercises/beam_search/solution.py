import numpy as np


def beam_search(log_probs: np.ndarray, start: int, eos: int, beams: int, max_len: int) -> tuple[list[int], float]:
    kept = [([start], 0.0)]
    for _ in range(max_len):
        candidates = []
        for tokens, score in kept:
            if tokens[-1] == eos:
                candidates.append((tokens, score))  # finished: it waits, and keeps its place among the beams
                continue
            for token, log_prob in enumerate(log_probs[tokens[-1]]):
                candidates.append(([*tokens, token], score + float(log_prob)))
        kept = sorted(candidates, key=lambda beam: beam[1], reverse=True)[:beams]
    return kept[0]
