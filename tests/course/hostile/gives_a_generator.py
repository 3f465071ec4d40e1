def softmax(x, axis):
    while True:
        yield 0.5
