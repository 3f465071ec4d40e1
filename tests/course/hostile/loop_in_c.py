"""One endless C operation that handles no signal."""
def softmax(x, axis):
    return pow(10**9, 10**9)
