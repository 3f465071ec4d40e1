def softmax(x, axis):
    return x
