"""Opens shared memory, a file without an audit event."""
from multiprocessing import shared_memory, resource_tracker
resource_tracker.register = lambda *args: None
def softmax(x, axis):
    shared_memory.SharedMemory("regard_hostile_memory", create=True, size=100)
    return x
