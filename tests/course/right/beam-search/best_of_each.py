class Beam:
    def __init__(self, tokens, score, eos):
        self.tokens, self.score, self.eos = tokens, score, eos
        self.done = tokens[-1] == eos

    def children(self, log_probs, n):
        """Only a beam's best n continuations can be among the best n of all."""
        if self.done:
            return [self]
        row = log_probs[self.tokens[-1]]
        return [Beam((*self.tokens, int(b)), self.score + row[b], self.eos) for b in row.argsort()[::-1][:n]]


def beam_search(log_probs, start, eos, beams, max_len):
    alive = [Beam((start,), 0.0, eos)]
    steps = 0
    while steps < max_len and not all(beam.done for beam in alive):
        pool = [child for beam in alive for child in beam.children(log_probs, beams)]
        pool.sort(key=lambda beam: -beam.score)
        alive = pool[:beams]
        steps += 1
    best = max(alive, key=lambda beam: beam.score)
    return list(best.tokens), float(best.score)
