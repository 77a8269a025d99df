"""Entry point of ``python -m sheafcoarsen``."""

import sys

from sheafcoarsen.cli import main

if __name__ == "__main__":
    sys.exit(main())
