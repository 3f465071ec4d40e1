import numpy as np, sys
print("\ud800 and \udcff")
sys.stdout.buffer.write(b"\xff\xfe\x00\n")
def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
