import sys
import numpy as np
for name in list(sys.modules):
    if name not in ("numpy", "builtins", "sys", "your_file"):
        sys.modules[name] = None
def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
