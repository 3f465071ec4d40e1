import os
def softmax(x, axis):
    os.abort()
