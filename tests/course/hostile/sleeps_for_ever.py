import time
def softmax(x, axis):
    time.sleep(1e6)
