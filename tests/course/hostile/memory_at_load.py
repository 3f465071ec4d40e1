kept = [bytearray(1 << 24) for _ in range(10_000)]
def softmax(x, axis):
    return x
