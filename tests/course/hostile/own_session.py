"""Out of the process group, then a loop."""
import os
for leave in (os.setsid, lambda: os.setpgid(0, 0)):
    try:
        leave()
    except OSError:
        pass
def softmax(x, axis):
    while True:
        pass
