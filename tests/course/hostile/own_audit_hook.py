"""Installs an audit hook that refuses everything in its process."""
import sys
import numpy as np
def refuse(event, args):
    raise RuntimeError(event)
sys.addaudithook(refuse)
def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
