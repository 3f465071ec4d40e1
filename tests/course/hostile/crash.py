"""Byte code that reads beyond its constants."""
def softmax(x, axis):
    code = (lambda: 0.5).__code__
    return eval(code.replace(co_code=bytes([100, 255]) * 40 + bytes([83, 0]), co_consts=(), co_stacksize=50))
