#!/usr/bin/env python3
"""deaths_test.py BUILD MODE: runs deaths.c once for each step at which a process may die. Later steps than the last one are deaths after the
call. The survivors must find every block."""
import subprocess
import sys
from pathlib import Path

RANKS = 5
DYING = {"save": 1, "pair": 2, "move": 2, "both": 2, "absent": 0}
STEPS = {"absent": 1, "move": 16}


def run(build, mode, step):
    """Runs one job. Returns what is wrong with it, or nothing."""
    command = [build / "bin/mpiexec", "--enable-recovery", "--timeout", "50", "-n", str(RANKS), build / "tests/keep/deaths", mode, str(step)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=90)
    found = done.stdout.count("has found every block")
    if "FAIL" in done.stdout or found != RANKS - DYING[mode]:
        return f"{mode}, step {step}: {found} of {RANKS - DYING[mode]} survivors have found every block\n{done.stdout}"
    return None


def main(build, mode):
    wrong = [fault for step in range(1, STEPS.get(mode, 20) + 1) if (fault := run(Path(build), mode, step))]
    print("\n".join(wrong) or f"{mode}: every block was found after a death at each step")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
