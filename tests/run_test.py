#!/usr/bin/env python3
"""Tests the search of tests/run for files that a job has left behind."""
import importlib.machinery
import importlib.util
import sys
import unittest
import unittest.mock
from pathlib import Path

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("run", str(Path(__file__).resolve().parent / "run"))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
loader.exec_module(run)


class Leftovers(unittest.TestCase):
    FOLDERS = {"/dev/shm": ["starling-1", "vader_segment.1"], "/run": ["starling-0"], "/var/tmp": ["other"],
               "/tmp": ["starling-tests", "starling-tests-aB3xYz", "Starling-left", "other"]}

    def test_files_of_jobs_count_and_those_of_other_tests_do_not(self):
        with unittest.mock.patch.object(run.os, "listdir", self.FOLDERS.__getitem__):
            self.assertEqual({"/dev/shm/starling-1", "/run/starling-0", "/tmp/Starling-left"}, run.named_things())


if __name__ == "__main__":
    unittest.main()
