#!/usr/bin/env python3
"""Checks that the batches of a target (cmake/unity.cmake) compile as one, so that a name is defined once in all files of the target. One
more file moves the borders of the batches, and files of two batches then meet. Tests the check itself on small batches with a known fault.
The argument is the build directory."""
import json
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

BATCH = re.compile(r"/([^/]+)\.dir/Unity/unity_\d+_cxx\.cxx$")
INCLUDE = re.compile(r"^#include \"([^\"]+)\"", re.M)
NOT_WORDS = ("-o", "-MF", "-MT", "-include")  # options with an argument that the check leaves out


def batches_of(build):
    """Returns {target: [(file, command, directory) of each batch]} of the targets that have several."""
    targets = defaultdict(list)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if match := BATCH.search(entry["file"]):
            targets[match[1]].append((Path(entry["file"]), shlex.split(entry["command"]), entry["directory"]))
    return {target: batches for target, batches in targets.items() if len(batches) > 1}


def syntax_command(command, file):
    """Returns the command that checks `file` with a compile command's options, without its outputs and precompiled header."""
    words, skip = [], False
    for word in command[next(i for i, word in enumerate(command) if re.search(r"(^|/)[\w.-]*(\+\+|cc)(-\d+)?$", word)):]:
        if skip:
            skip = False
        elif word in NOT_WORDS:
            skip = True
        elif word == "-c":
            break  # the source is the last word
        elif word not in ("-MD", "-Winvalid-pch"):
            words.append(word)
    return [*words, "-fsyntax-only", "-x", "c++", str(file)]


def faults(batches):
    """Returns the compiler's errors for all files of the batches in one."""
    with tempfile.TemporaryDirectory() as directory:
        whole = Path(directory) / "whole.cpp"
        files = [name for file, _, _ in batches for name in INCLUDE.findall(file.read_text())]
        whole.write_text("".join(f'#include "{name}"\n' for name in files))
        _, command, where = batches[0]
        run = subprocess.run(syntax_command(command, whole), cwd=where, capture_output=True, text=True, check=False)
        found = [line for line in run.stderr.splitlines() if ": error: " in line or ": note: " in line and "previously" in line]
        return found or ([run.stderr] if run.returncode else [])


class Starling(unittest.TestCase):
    def test_names(self):
        targets = batches_of(BUILD)
        self.assertIn("objects_launch", targets)
        for target, batches in targets.items():
            with self.subTest(target):
                found = faults(batches)
                self.assertEqual(found, [], "\n".join(["define each name of an anonymous namespace once in the target:", *found]))


class Check(unittest.TestCase):
    def check(self, *texts):
        """Returns the faults of batches of one file each with these texts."""
        with tempfile.TemporaryDirectory() as directory:
            batches = []
            for i, text in enumerate(texts):
                file, batch = Path(directory) / f"part_{i}.cpp", Path(directory) / f"unity_{i}_cxx.cxx"
                file.write_text(text)
                batch.write_text(f'#include "{file}"\n')
                batches.append((batch, ["ccache", "/usr/bin/c++", "-std=c++20", "-o", "a.o", "-c", str(batch)], directory))
            return faults(batches)

    def test_a_name_that_two_batches_define(self):
        found = self.check("namespace { int limit = 1; }\nint one() { return limit; }", "namespace { int limit = 2; }\nint two() { return limit; }")
        self.assertRegex(found[0], r"part_1\.cpp:1:\d+: error: redefinition of .*limit")

    def test_different_names(self):
        self.assertEqual(self.check("namespace { int a = 1; }\nint one() { return a; }", "namespace { int b = 2; }\nint two() { return b; }"), [])


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop(1)).resolve()
    unittest.main()
