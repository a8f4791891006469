#!/usr/bin/env python3
"""Tests the search of tests/run for files that a job has left behind."""
import importlib.machinery
import importlib.util
import re
import sys
import unittest
import unittest.mock
from pathlib import Path

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("run", str(Path(__file__).resolve().parent / "run"))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
loader.exec_module(run)


class Leftovers(unittest.TestCase):
    FOLDERS = {"/dev/shm": ["starling-1", "starling-tests-file-1-0", "vader_segment.1"], "/run": ["starling-0", "starling-lab"], "/var/tmp": ["other"],
               "/tmp": ["starling-tests", "starling-tests-aB3xYz", "Starling-left", "other"]}

    def test_files_of_jobs_count_and_those_of_other_tests_do_not(self):
        with unittest.mock.patch.object(run.os, "listdir", self.FOLDERS.__getitem__):
            self.assertEqual({"/dev/shm/starling-1", "/run/starling-0", "/tmp/Starling-left"}, run.named_things())

    def test_tests_make_files_with_names_of_their_own_only(self):
        path = re.compile(r"""(?:/(?:tmp|run|var/tmp)/|prefix=")(starling[\w-]*?)(?:XXXXXX|\$|")""")
        files = [file for file in Path(__file__).parent.rglob("*") if file.is_file() and file != Path(__file__)]
        names = {(file.name, name) for file in files for name in path.findall(file.read_text(errors="replace"))}
        self.assertGreater(len(names), 3)
        self.assertEqual([], [name for name in sorted(names) if not name[1].startswith(run.TESTS_OWN)])


if __name__ == "__main__":
    unittest.main()
