def softmax(x, axis):
    return softmax
