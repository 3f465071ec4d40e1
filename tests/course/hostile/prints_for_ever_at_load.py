import sys
while True:
    sys.stderr.write("x" * 10_000)
