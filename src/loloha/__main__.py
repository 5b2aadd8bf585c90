"""``python -m loloha``: the command line."""

import sys

from loloha.cli import main

sys.exit(main())
