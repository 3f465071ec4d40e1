"""Sends the right nonce and an incomplete message."""
import sys
def softmax(x, axis):
    frame = sys._getframe()
    while frame is not None and "send" not in frame.f_locals:
        frame = frame.f_back
    cells = dict(zip(frame.f_locals["send"].__code__.co_freevars, frame.f_locals["send"].__closure__))
    import os, struct
    os.write(cells["pipe"].cell_contents, struct.pack("!16sIQ", cells["nonce"].cell_contents, 2, 10_000) + b"{")
    while True:
        pass
