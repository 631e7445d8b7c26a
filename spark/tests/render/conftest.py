"""Reports to render: one with everything that can be in it, one of a whole mirror, a huge one."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the reports next to the tests
