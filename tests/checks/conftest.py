"""Tests import the mechanisms with planted bugs from the files next to them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
