#!/usr/bin/env python3
"""Tests bench/agreement with two profiles whose phases are known."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

AGREEMENT = Path(__file__).resolve().parents[1] / "agreement"


def profile(path, phases):
    """Writes a profile of one process; a phase is (name, messages)."""
    lines = [{"kind": "phase", "job": 0, "rank": 0, "phase": name, "from": 1, "to": 1, "began": i, "seconds": 1,
              "peers": [[0, 1, messages, 8 * messages, 0, 0, 0, 0, 0, 0]]} for i, (name, messages) in enumerate(phases)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


class Agreement(unittest.TestCase):
    def shares(self, marked, found):
        with tempfile.TemporaryDirectory() as folder:
            paths = [profile(Path(folder, name), phases) for name, phases in (("marked", marked), ("found", found))]
            lines = subprocess.run([sys.executable, AGREEMENT, *paths], text=True, capture_output=True, check=True).stdout.splitlines()
        return [line[24:].split(" %")[0].strip() for line in lines]

    def test_the_same_under_other_names_agrees(self):
        self.assertEqual(self.shares([("a", 10), ("b", 20), ("a", 10)], [("1", 10), ("2", 20), ("1", 10)]), ["100", "100", "100", "100"])

    def test_a_phase_that_is_not_distinguished_from_another(self):
        # The marked phases "a" and "b" are detected as one phase, which can be assigned to one of them only: 20 of 40 messages have a
        # matching phase.
        self.assertEqual(self.shares([("a", 10), ("b", 20), ("a", 10)], [("1", 40)]), ["50", "50", "0", "- of 0"])

    def test_a_phase_that_is_split(self):
        # The marked phase "b" is detected as two, "2" and "3". Only "3", which has more messages of "b", is assigned to it. Its begin is
        # not at a mark of the program.
        self.assertEqual(self.shares([("a", 10), ("b", 30)], [("1", 10), ("2", 10), ("3", 20)]), ["75", "75", "100", "50"])


if __name__ == "__main__":
    unittest.main()
