"""`python -m regard` is `regard`."""

import sys

try:
    from regard.cli import main
except KeyboardInterrupt:  # Ctrl-C before `cli.interrupts` handles it
    sys.exit(130)

if __name__ == "__main__":
    sys.exit(main())
