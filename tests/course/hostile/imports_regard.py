from regard.reference import softmax
