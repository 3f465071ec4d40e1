def softmax(x, axis):
    while True:
        pass
