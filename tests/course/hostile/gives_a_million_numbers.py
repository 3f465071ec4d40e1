def softmax(x, axis):
    return tuple(range(1_000_000))
