def softmax(x, axis):
    circle = [x]
    circle.append(circle)
    return circle
