"""What lies beside these tests: tests are imported one by one, without their directory."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
