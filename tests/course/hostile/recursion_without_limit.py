import sys
sys.setrecursionlimit(10**9)
def softmax(x, axis):
    return max([x], key=lambda x: softmax(x, axis))
