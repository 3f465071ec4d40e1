"""Four busy threads: CPU time exceeds wall-clock time."""
import hashlib, threading
def burn():
    while True:
        hashlib.sha256(b"x" * 100_000_000)
for _ in range(4):
    threading.Thread(target=burn).start()
def softmax(x, axis):
    while True:
        pass
