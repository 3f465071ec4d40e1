"""Leaves the process group, then loops."""
import os
for leave in (os.setsid, lambda: os.setpgid(0, 0)):
    try:
        leave()
    except OSError:
        pass
def softmax(x, axis):
    while True:
        pass
