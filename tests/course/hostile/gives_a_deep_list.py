def softmax(x, axis):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    return deep
