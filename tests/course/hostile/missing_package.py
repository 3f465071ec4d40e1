import a_package_that_nobody_has
def softmax(x, axis):
    return x
