"""Daemonises by double fork."""
import os, time
def softmax(x, axis):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)
    return x
