import threading, time, numpy as np
threading.Thread(target=time.sleep, args=(1e6,)).start()
def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
