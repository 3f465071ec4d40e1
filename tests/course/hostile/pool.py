import multiprocessing
def work(x):
    return x
def softmax(x, axis):
    process = multiprocessing.get_context("fork").Process(target=work, args=(x,))
    process.start()
    return x
