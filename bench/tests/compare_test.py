#!/usr/bin/env python3
"""What compare does with runs that work, hang, crash and refuse, and what it makes of their values."""
import os
import stat
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runner import report, suite
from runner.cases import TARGETS, Case, all_cases
from runner.execute import execute, judge
from runner.libraries import Library

GOOD = '{"benchmark": "x", "unit": "us", "ranks": "2", "rows": [{"what": "", "size": 8, "value": %s}]}'


def processes_with(variable):
    """Numbers of the processes that have this NAME=value in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if variable.encode() in file.read():
                        found.append(int(entry))
            except OSError:
                pass
    return found


class Launchers(unittest.TestCase):
    """Runs a shell script in place of mpiexec."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def library(self, key, script):
        path = Path(self.directory.name) / key
        path.write_text("#!/bin/sh\n" + script + "\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        library = Library(key, key, ["true"], [str(path)], {"COMPARE_TEST": self.directory.name})
        library.version = ""
        return library

    def run_script(self, script, timeout=20):
        return execute(self.library("one", script), Case("x", "p2p", "x", 2, [], timeout))

    def test_values_are_read(self):
        run = self.run_script("echo noise; echo '" + GOOD % "1.5" + "'")
        self.assertEqual((run.status, run.rows), ("ok", (("", 8, 1.5, "us"),)))

    def test_hang_ends_with_all_its_processes(self):
        started = time.monotonic()
        # One child leaves the session, as daemons do.
        run = self.run_script("setsid sleep 60 & sleep 60", timeout=1)
        self.assertEqual(run.status, "hang")
        self.assertLess(time.monotonic() - started, 15)
        self.assertEqual(processes_with("COMPARE_TEST=" + self.directory.name), [])

    def test_crash_is_told_from_refusal(self):
        self.assertEqual(self.run_script("kill -SEGV $$").status, "crash (SIGSEGV)")
        refusal = self.run_script("echo 'Error: spawn is not supported here' >&2; exit 5").status
        self.assertEqual(refusal, "refuses: Error: spawn is not supported here (exit code 5)")

    def test_success_without_values_is_no_success(self):
        self.assertNotEqual(self.run_script("exit 0").status, "ok")
        self.assertEqual(judge(0, GOOD[:40], "", 1.0).status, "crash (output cut short)")

    def test_turns_and_failures_in_a_whole_run(self):
        libraries = [self.library("starling", "echo '" + GOOD % "2" + "'"),
                     self.library("peer", "echo '" + GOOD % "4" + "'"),
                     self.library("broken", "exit 1")]
        path = os.path.join(self.directory.name, "out.json")
        results = suite.run(libraries, [Case("x", "p2p", "x", 2, [], 20)], 3, 0, 0.15, path)
        case = results["cases"]["x"]
        row = case["rows"][0]
        self.assertEqual(row["values"]["peer"]["turns"], 3)
        self.assertNotIn("broken", row["values"])
        self.assertTrue(case["status"]["broken"].startswith("refuses"))
        self.assertEqual(report.ratio(case, row), 0.5)
        self.assertEqual(report.load(path)["cases"]["x"]["rows"], case["rows"])


class Judgement(unittest.TestCase):
    def results(self, own, peer, larger=False, disturbed=0):
        values = {"starling": suite.summary(own, 0.15), "peer": suite.summary(peer, 0.15)}
        return {"date": "", "spread": 0.15, "rounds": 3, "runs": 10, "disturbed": disturbed,
                "machine": {"cores": 2},
                "libraries": {key: {"title": key, "version": ""} for key in values},
                "cases": {"c": {"group": "p2p", "larger_is_better": larger, "status": {"starling": "ok", "peer": "ok"},
                                "rows": [{"what": "", "size": 8, "unit": "us", "values": values}]}}}

    def test_noise_is_seen(self):
        self.assertFalse(suite.summary([10, 10.5, 11], 0.15)["noisy"])
        self.assertTrue(suite.summary([10, 10, 13], 0.15)["noisy"])
        self.assertEqual(report.verdict(self.results([1, 1, 1], [2, 2, 2])), "")
        self.assertIn("between turns", report.verdict(self.results([1, 2, 3], [2, 2, 2])))
        self.assertIn("busy", report.verdict(self.results([1], [2], disturbed=5)))

    def test_best_peer_depends_on_direction(self):
        for larger, mark in ((False, "+"), (True, "-")):
            results = self.results([1], [2], larger)
            case = results["cases"]["c"]
            texts = report.row_texts(results, "c", case, case["rows"][0])
            self.assertEqual(texts[-2], f"0.50 {mark}")

    def test_columns_of_an_earlier_run_are_marked(self):
        now, earlier = self.results([1], [2]), self.results([1], [2])
        del now["libraries"]["peer"], now["cases"]["c"]["status"]["peer"]
        del now["cases"]["c"]["rows"][0]["values"]["peer"]
        report.add_columns(now, earlier)
        self.assertEqual(now["cases"]["c"]["rows"][0]["values"]["peer"]["median"], 2)
        self.assertIn("earlier run", report.verdict(now))

    def test_targets_exist(self):
        for quick in (False, True):
            names = {case.name for case in all_cases(quick)}
            self.assertEqual(set(TARGETS) - names, set())


if __name__ == "__main__":
    unittest.main()
