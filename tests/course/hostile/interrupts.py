def softmax(x, axis):
    raise KeyboardInterrupt
