"""Creates links whose targets a careless cleanup would remove."""
import os
import numpy as np
os.symlink(os.path.dirname(os.__file__), "library")
os.mkdir("folder")
os.symlink("/", "folder/root")
os.symlink("..", "folder/up")
def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
