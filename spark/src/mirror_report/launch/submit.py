"""The command line for ``spark-submit``, which takes only files whose names end in ``.py``.

A directory of its own: the one a script lies in comes first where Python looks for modules, and the
package beside it has rooms named like libraries.
"""

import sys

from mirror_report.cli import main

if __name__ == "__main__":
    sys.exit(main())
