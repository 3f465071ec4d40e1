class Meta(type):
    __name__ = property(lambda cls: 1 / 0)
    __module__ = property(lambda cls: 1 / 0)
    __instancecheck__ = lambda cls, value: True
    __subclasscheck__ = lambda cls, value: True
class Odd(Exception, metaclass=Meta):
    __class__ = property(lambda self: 1 / 0)
def softmax(x, axis):
    raise Odd("odd")
