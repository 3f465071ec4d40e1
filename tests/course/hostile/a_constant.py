softmax = 0.25
