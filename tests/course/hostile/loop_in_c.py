"""One operation that takes for ever, and looks at no signal meanwhile."""
def softmax(x, axis):
    return pow(10**9, 10**9)
