def softmax(x, axis):
    return 10 ** 100_000
