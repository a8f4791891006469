#!/usr/bin/env python3
"""deaths_test.py BUILD MODE: runs deaths.c once for each step at which a process may die, until it dies after the last step. The survivors must
find every block."""
import re
import subprocess
import sys
from pathlib import Path

RANKS = 5
DYING = {"save": 1, "pair": 2, "move": 2, "sender": 2, "receiver": 2, "both": 2, "absent": 0}
MOST_STEPS = 80  # more than any call has
WRONG = re.compile("FAIL|Sanitizer|runtime error|SIGSEGV|SIGABRT|SIGBUS|has not ended")
KILLED = 128 + 9


class Job:
    """The output of one job, in which processes die at a step."""

    def __init__(self, build, mode, step):
        command = [build / "bin/mpiexec", "--enable-recovery", "--timeout", "240", "-n", str(RANKS), build / "tests/keep/deaths", mode, str(step)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400)
        self.mode, self.step, self.output, self.code = mode, step, done.stdout, done.returncode
        self.left = RANKS - DYING[mode]
        # The processes that have made fewer steps than they should, and died then.
        self.is_after_calls = self.output.count("dies after them") == DYING[mode]

    def fault(self):
        """Returns what is wrong, or nothing."""
        found = self.output.count("has found every block")
        code = KILLED if DYING[self.mode] else 0
        if not WRONG.search(self.output) and found == self.left and self.code == code and not self.has_lost():
            return None
        return (f"{self.mode}, step {self.step}: {found} of {self.left} survivors have found every block, "
                f"code {self.code} instead of {code}\n{self.output}")

    def has_lost(self):
        """The sender's block may be lost if it dies before it has sent its only copy, but not after the move."""
        return self.is_after_calls and "but one" in self.output


def main(build, mode):
    wrong = []
    for step in range(1, MOST_STEPS + 1):
        job = Job(Path(build), mode, step)
        wrong += filter(None, [job.fault()])
        if job.is_after_calls:
            break
    else:
        wrong.append(f"{mode}: no process has come to the end of its calls in {MOST_STEPS} steps")
    print("\n".join(wrong) or f"{mode}: every block was found after a death at each of {step} steps")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
