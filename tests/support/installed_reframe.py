"""ReFrame as pip installs it: unlike the checkout's own, it takes modules of PYTHONPATH."""

import sys

from reframe.frontend.cli import main

if __name__ == "__main__":
    sys.exit(main())
