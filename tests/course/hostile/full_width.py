import numpy as np
def softmax（x， axis）：
    return x
