"""The lab of tests/lab, for benchmarks."""
import os
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent.parent
ROOT = BENCH.parent
sys.path[:0] = [str(ROOT / "tests" / "lab"), str(BENCH)]

from kit import places  # noqa: E402,F401
from kit.lab import Lab  # noqa: E402,F401
from kit.places import Problem  # noqa: E402,F401


def use_build(build):
    """Uses the lab's programs of this build directory. Returns its absolute path."""
    build = Path(build) if Path(build).is_absolute() else ROOT / build
    os.environ.setdefault("LAB_BIN", str(build / "tests" / "lab"))
    return build
