#!/usr/bin/env python3
"""guide_test.py BUILD: writes the files and runs the commands that docs/guide shows, in the order of its list, and compares what they print.

A block's first line gives its kind: ```c file=NAME is written to a file; ```console has commands after "$ " and their output below, where
"..." matches anything (on a line of its own, for any lines). Words after console: `sorted`, lines come in any order; `fails`, the
last command's exit code is not 0; `figures`, measured values and this machine's
names and paths may differ; `needs=FILE-OR-COMMAND`; `skip="why"`, not run.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide"
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)
KNOWN = re.compile(r'^( (sorted|fails|figures|file=[\w.-]+|needs=\S+|skip="[^"]+"))*$')


def pages():
    return re.findall(r"^\d+\. \[.*?\]\((.*?)\)", (GUIDE / "README.md").read_text(), re.M)


def blocks(page):
    return BLOCK.findall((GUIDE / page).read_text())


def commands(text):
    """Returns pairs (command, lines of its output)."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def matches(lines, wanted):
    """"..." is any number of lines, and within a line any characters."""
    if not wanted:
        return not lines
    if wanted[0] == "...":
        return any(matches(lines[i:], wanted[1:]) for i in range(len(lines) + 1))
    pattern = re.escape(wanted[0]).replace(r"\.\.\.", ".*")
    return bool(lines) and re.fullmatch(pattern, lines[0]) is not None and matches(lines[1:], wanted[1:])


def shape(line, folder=None):
    """Returns what a line has in common with the one of another run, for blocks with `figures`. The guide's prefix is /opt/starling, and
    its commands run in /home/me; `folder` is where they run here."""
    if folder:
        line = line.replace(str(BUILD), "/opt/starling").replace(folder, "/home/me")
    if re.fullmatch(r"([A-Z]|\d+ [a-z]+ ).*\.", line):
        return "<sentence>"  # a finding, which depends on the machine
    for pattern, word in ((rf"\b({re.escape(os.uname().nodename)}|vm)\b", "<host>"), (r"\b[0-9a-f]{16}\b", "<id>"), (r"\d{4}-\d\d-\d\dT[\d:]+Z", "<date>"),
                          (r"^(  [A-Za-z ]+: ).*", r"\1<value>"), (r" <- (late|used by plans)", ""), (r"█+", ""),
                          (r"^  state .*", "  state <state>"), (r"; ending (the other|all) .*", ""), (r"0x[0-9a-f]+", "<address>"),
                          (r"\d+(\.\d+)?( (s|ms|us|ns|B|KB|MB))?(?!\w)", "<figure>"), (r"\s+", " ")):
        line = re.sub(pattern, word, line)
    return line.strip()


class Guide(unittest.TestCase):
    def test_blocks_say_what_they_are(self):
        self.assertEqual(sorted(pages()), sorted(file.name for file in GUIDE.glob("*.md") if file.name != "README.md"))
        for page in pages():
            for language, words, _ in blocks(page):
                self.assertRegex(words, KNOWN, f"{page}: ```{language}{words}")

    def test_commands_print_what_the_guide_says(self):
        ran = 0
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "PATH": f"{BUILD}/bin:{os.environ['PATH']}", "STARLING_UNIVERSE": f"guide{os.getpid()}",
                           "STARLING_CACHE": f"{folder}/cache", "XDG_CACHE_HOME": f"{folder}/cache"}
            # A make that runs this test must not change the output of the guide's make and cmake (MAKEFLAGS=w).
            for name in ("LD_LIBRARY_PATH", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
                environment.pop(name, None)
            for page in pages():
                for language, words, text in blocks(page):
                    name = re.search(r"file=(\S+)", words)
                    if name:
                        pathlib.Path(folder, name[1]).write_text(text)
                    elif language == "console" and "skip=" not in words:
                        ran += self.run_block(page, words, text, folder, environment)
        self.assertGreater(ran, 20)

    def run_block(self, page, words, text, folder, environment):
        needed = re.search(r"needs=(\S+)", words)
        if needed and not shutil.which(needed[1]) and not os.path.exists(needed[1]):
            self.fail(f"{page}: {needed[1]} is missing (tools/packages.txt)")
        todo = commands(text)
        for i, (command, wanted) in enumerate(todo):
            result = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    stdin=subprocess.DEVNULL, text=True, timeout=240)
            lines = result.stdout.splitlines()
            if " sorted" in words:
                lines = sorted(lines)
            if " figures" in words:
                lines, wanted = [shape(line, folder) for line in lines], list(map(shape, wanted))
            self.assertTrue(matches(lines, wanted), f"{page}: $ {command}\n{result.stdout}\ninstead of\n" + "\n".join(wanted))
            failed = " fails" in words and i + 1 == len(todo)
            self.assertEqual(result.returncode != 0, failed, f"{page}: $ {command}: exit {result.returncode}\n{result.stdout}")
        return len(todo)


if __name__ == "__main__":
    unittest.main()
