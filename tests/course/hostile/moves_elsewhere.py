import os
def softmax(x, axis):
    open("mine", "w").close()
    os.rename("mine", "/tmp/regard_hostile_file")
