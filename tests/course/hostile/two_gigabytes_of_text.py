def softmax(x, axis):
    return "a" * 2**31
