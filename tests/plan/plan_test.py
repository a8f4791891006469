#!/usr/bin/env python3
"""Tests plans from files: their effect on a job, and the error texts for invalid plans. plan_test.py BUILD-DIRECTORY"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop(1)).resolve()
MPIEXEC = str(BUILD / "bin" / "mpiexec")
CYCLE = str(BUILD / "tests" / "plan" / "cycle")
RANKS, CYCLES, MESSAGES = 7, 6, 30
# These thresholds prevent connections on demand.
NEVER = {"STARLING_DIRECT_THRESHOLD": "1000000", "STARLING_REPLACE_MESSAGES": "4"}


def right_partners(phase, rank):
    return [[(rank + phase + 1) % RANKS, MESSAGES], [(rank - phase - 1) % RANKS, MESSAGES]]


def plan(partners=right_partners, **other):
    phases = [{"name": name, "from": 1, "to": None, "peers": {str(r): partners(i, r) for r in range(RANKS)}}
              for i, name in enumerate("abc")]
    return {"starling_plan": 1, "application": "cycle", "size": RANKS, "from": [], "max_direct": 2, "max_connections": 2,
            "phases": phases} | other


class Plans(unittest.TestCase):
    def run_cycle(self, contents, *arguments, ranks=RANKS, environment=None, cycles=CYCLES, messages=MESSAGES):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "plan.json"
            path.write_text(contents if isinstance(contents, str) else json.dumps(contents))
            command = [MPIEXEC, "--plan", str(path), "-n", str(ranks), CYCLE, str(cycles), str(messages), *arguments]
            result = subprocess.run(command, text=True, capture_output=True, timeout=240, env=os.environ | (environment or {}))
            return result, str(path)

    def sent(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return [int(line) for line in result.stdout.split()]

    def test_partners_have_their_rings_when_a_phase_begins(self):
        result, _ = self.run_cycle(plan(), environment=NEVER)
        sent = self.sent(result)
        self.assertEqual(len(sent), RANKS)
        self.assertGreater(min(sent), 3 * CYCLES * MESSAGES / 2)

    def test_children_of_the_same_application_have_it_too(self):
        result, _ = self.run_cycle(plan(), "spawn", environment=NEVER)
        sent = self.sent(result)
        self.assertEqual(len(sent), RANKS)
        self.assertGreater(min(sent), 3 * CYCLES * MESSAGES / 2)

    def test_a_debugged_job_has_it_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "plan.json"
            path.write_text(json.dumps(plan()))
            command = [MPIEXEC, "--debug=0", "--plan", str(path), "-n", str(RANKS), CYCLE, str(CYCLES), str(MESSAGES)]
            result = subprocess.run(command, text=True, capture_output=True, timeout=240, input="continue\ncontinue\nquit\n", env=os.environ | NEVER)
        # gdb's prompts may stand before the lines of ranks.
        sent = [int(number) for number in re.findall(r"(?m)^(?:\(gdb\) )*(\d+)$", result.stdout)]
        self.assertGreaterEqual(len(sent), RANKS - 1, result.stderr)  # gdb may write on the line of its rank
        self.assertGreater(min(sent), 3 * CYCLES * MESSAGES / 2)

    def test_what_the_user_sets_wins(self):
        result, _ = self.run_cycle(plan(), environment=NEVER | {"STARLING_MAX_DIRECT": "0"})
        self.assertEqual(self.sent(result), [0] * RANKS)

    def test_a_wrong_plan_is_left(self):
        # The plan's partners are wrong: their connections use up the quota for the right ones.
        wrong = lambda phase, rank: [[(rank + 3) % RANKS, 9], [(rank - 3) % RANKS, 9]] if phase < 2 else [
            [(rank + 1) % RANKS, 9], [(rank - 1) % RANKS, 9]]
        result, _ = self.run_cycle(plan(wrong), environment={"STARLING_DIRECT_THRESHOLD": "4", "STARLING_REPLACE_MESSAGES": "4", "STARLING_VERBOSE": "1"}, cycles=10,
                                   messages=200)
        self.sent(result)
        self.assertIn("dropped the plan in phase", result.stderr)

    def test_malformed_plans_are_refused_in_one_line(self):
        right = plan()
        for contents, what in (("{", "it is not JSON"), ("", "it is not JSON"), ("[]", "it is not an object"),
                               (right | {"starling_plan": 7}, "version 7"), (right | {"phases": 3}, '"phases" is not a list'),
                               (right | {"size": 8}, "these are 7"), (right | {"application": "other"}, "and this is")):
            result, path = self.run_cycle(contents)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stdout, "")
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertTrue(result.stderr.startswith(f"mpiexec: the plan {path}"), result.stderr)
            self.assertIn(what, result.stderr)

    def test_without_a_launcher_there_is_no_plan(self):
        result = subprocess.run([CYCLE, "2", "3"], text=True, capture_output=True, timeout=240,
                                env=os.environ | {"STARLING_PLAN": "file"})
        self.assertEqual(self.sent(result), [0])


if __name__ == "__main__":
    unittest.main()
