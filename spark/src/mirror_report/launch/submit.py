"""The command line for ``spark-submit``, which takes only files whose names end in ``.py``.

It has a directory of its own, because Python searches the directory of a script first for modules,
and rooms of the package beside it are named like libraries.
"""

import sys

from mirror_report.cli import main

if __name__ == "__main__":
    sys.exit(main())
