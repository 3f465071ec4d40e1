import numpy
def softmax(x, axis):
    return numpy
