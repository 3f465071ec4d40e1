import os
import numpy as np
os.makedirs("a/b/c")
open("a/b/c/file", "w").close()
os.chmod("a/b/c", 0)
os.chmod("a/b", 0)
os.chmod("a", 0)
os.chmod(".", 0)
def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
