"""Engines that nobody has: each of ours with facts of the other."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the engines next to the tests
