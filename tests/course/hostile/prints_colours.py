"""Prints terminal control sequences: colours, title, clear, cursor, bells, right-to-left."""
import numpy as np
print("\x1b[2J\x1b[31m\x1b]0;you passed\x07\x1b[1A\r ALL TESTS PASSED \u202e\x9b31m\x00\x08\x08")
def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
