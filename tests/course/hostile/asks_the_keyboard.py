def softmax(x, axis):
    return input("the answer? ")
