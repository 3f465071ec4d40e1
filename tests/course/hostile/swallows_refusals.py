"""Tries everything, catches every error, and returns the input."""
import os, socket, subprocess
def softmax(x, axis):
    for attempt in (
        lambda: __import__("regard"),
        lambda: os.fork(),
        lambda: os.kill(1, 9),
        lambda: socket.socket(),
        lambda: subprocess.Popen(["sleep", "1000"]),
        lambda: open("/etc/regard_hostile", "w"),
    ):
        try:
            attempt()
        except Exception:
            pass
    return x
