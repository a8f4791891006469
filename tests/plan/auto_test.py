#!/usr/bin/env python3
"""Tests STARLING_PLAN=auto on one host: what mpiexec keeps of a run, and `starling plans`. auto_test.py BUILD-DIRECTORY"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop(1)).resolve()
MPIEXEC, STARLING = str(BUILD / "bin" / "mpiexec"), str(BUILD / "bin" / "starling")
PARTNERS = str(BUILD / "tests" / "plan" / "partners")


class Auto(unittest.TestCase):
    def setUp(self):
        self.home = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder = self.home / "starling" / "plans"
        self.environment = os.environ | {"XDG_CACHE_HOME": str(self.home)}

    def run_words(self, *words, **environment):
        return subprocess.run([str(word) for word in words], text=True, capture_output=True, timeout=240,
                              env=self.environment | environment)

    def run_partners(self, *arguments, ranks=4, options=("--plan", "auto"), **environment):
        result = self.run_words(MPIEXEC, *options, "-n", ranks, PARTNERS, *(arguments or (200,)), **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def plans(self, *words):
        return self.run_words(STARLING, "plans", *words)

    def entries(self):
        return sorted(self.folder.iterdir()) if self.folder.exists() else []

    def test_a_run_leaves_its_partners_for_the_next(self):
        self.run_partners()
        [entry] = self.entries()
        kept = json.loads(entry.read_text())
        self.assertEqual(kept["application"], "partners")
        self.assertEqual([[peer for peer, _ in kept["phases"][0]["peers"][str(rank)]] for rank in range(4)], [[2], [3], [0], [1]])
        for _, messages in sum(kept["phases"][0]["peers"].values(), []):
            self.assertGreaterEqual(messages, 400)
            self.assertLess(messages, 450)  # those of MPI_Init and the barriers included
        second = self.run_partners(STARLING_VERBOSE="1")
        self.assertNotIn("dropped", second.stderr)
        self.assertEqual(self.entries(), [entry])

    def test_without_it_nothing_is_kept(self):
        self.run_partners(options=())
        self.run_partners(options=("--plan", "auto", "-x", "STARLING_PLAN=demand"))
        self.assertEqual(self.entries(), [])
        self.run_partners(options=(), STARLING_PLAN="auto")
        self.assertEqual(len(self.entries()), 1)

    def test_runs_that_fail_leave_nothing(self):
        result = self.run_words(MPIEXEC, "--plan", "auto", "-n", 2, "sh", "-c", "exit 3")
        self.assertEqual(result.returncode, 3)
        self.run_words(MPIEXEC, "--plan", "auto", "-n", 2, "true")
        self.assertEqual(self.entries(), [])

    def test_a_profile_is_a_record_too(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_partners(options=("--plan", "auto", f"--profile={folder}/run.jsonl"))
            self.assertGreater(Path(folder, "run.jsonl").stat().st_size, 0)
        self.assertEqual(len(self.entries()), 1)

    def test_damaged_files_are_ignored_with_one_sentence(self):
        self.run_partners()
        [entry] = self.entries()
        for text in ("", "{", '{"starling_plan":1}', entry.read_text()[:200]):
            entry.write_text(text)
            result = self.run_partners()
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn("is damaged and is ignored", result.stderr)
            self.assertEqual(self.run_partners().stderr, "")  # the run has replaced the file

    def test_a_plan_of_other_traffic_harms_nobody(self):
        self.run_partners(200, 8)
        [entry] = self.entries()
        wrong = json.loads(entry.read_text())
        for rank in range(4):
            wrong["phases"][0]["peers"][str(rank)] = [[rank ^ 1, 4000000000]]
        entry.write_text(json.dumps(wrong))
        limits = {"STARLING_MAX_DIRECT": "1", "STARLING_VERBOSE": "1"}
        result = self.run_partners(3000, 8, **limits)
        self.assertIn("dropped the last run's plan", result.stderr)

    def test_jobs_at_once_leave_a_whole_file(self):
        words = [MPIEXEC, "--plan", "auto", "-n", "2", PARTNERS, "100"]
        jobs = [subprocess.Popen(words, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                for _ in range(6)]
        for job in jobs:
            self.assertEqual(job.communicate(timeout=240)[1], "")
            self.assertEqual(job.returncode, 0)
        [entry] = self.entries()
        json.loads(entry.read_text())

    def test_the_command(self):
        self.assertEqual((self.plans("list").returncode, self.plans("list").stdout), (0, ""))
        self.run_partners()
        self.run_partners(200, 64, "shifted")
        self.assertEqual(len(self.plans("list").stdout.splitlines()), 2)
        listed = json.loads(self.plans("list", "--json").stdout)
        self.assertEqual({one["application"] for one in listed}, {"partners"})
        self.assertIn("rank 0: 2 (", self.plans("show", "partners").stdout)
        self.assertIn("nothing is known of 'other'", self.plans("show", "other").stderr)
        self.assertIn("removed 1 plan", self.plans("clear", listed[0]["name"]).stdout)
        self.assertIn("removed 1 plan", self.plans("clear").stdout)
        self.assertEqual(self.plans("list").stdout, "")
        self.assertEqual(self.entries(), [])


if __name__ == "__main__":
    unittest.main()
