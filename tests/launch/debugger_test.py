#!/usr/bin/env python3
"""Tests what debuggers read of mpiexec: the process table of the MPIR interface.

    debugger_test.py BUILD [TestClass[.test]]...
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).resolve()
MPIEXEC = str(BUILD / "bin" / "mpiexec")
LIMIT = 60  # seconds for anything
TABLE = ["-ex", "print MPIR_proctable_size", "-ex", "print *MPIR_proctable@2", "-ex", "print MPIR_debug_state"]


def gdb(*words):
    result = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", *words], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=LIMIT, check=False)
    return result.stdout + result.stderr


class ProcessTable(unittest.TestCase):
    def check(self, said, program):
        self.assertRegex(said, r"\$1 = 2\n")
        rows = re.findall(r'host_name = 0x\w+ "([^"]+)", executable_name = 0x\w+ "([^"]+)", pid = (\d+)', said)
        self.assertEqual([(host, os.path.basename(name)) for host, name, _ in rows], [(os.uname().nodename, program)] * 2, said)
        return [int(pid) for _, _, pid in rows]

    def test_a_debugger_that_attaches_reads_the_table(self):
        job = subprocess.Popen([MPIEXEC, "-n", "2", "sh", "-c", "echo ready; sleep 60; :"], stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual([job.stdout.readline() for _ in range(2)], ["ready\n"] * 2)
            pids = self.check(gdb("-p", str(job.pid), *TABLE), os.path.basename(os.path.realpath("/bin/sh")))
            for pid in pids:
                self.assertEqual(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1], str(job.pid))
        finally:
            job.send_signal(signal.SIGTERM)
            job.stdout.close()
            job.wait(LIMIT)

    def test_a_debugger_that_starts_mpiexec_stops_where_all_processes_are_known(self):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "commands"
            script.write_text("handle SIGCHLD SIGCONT nostop noprint pass\nset detach-on-fork on\nbreak MPIR_Breakpoint\n"
                              "start\nset var MPIR_being_debugged = 1\ncontinue\nprint MPIR_proctable_size\n"
                              "print *MPIR_proctable@2\nprint MPIR_debug_state\n"
                              "shell sleep 1\npython\nfor i in range(2):\n"
                              "    pid = int(gdb.parse_and_eval(f'MPIR_proctable[{i}].pid'))\n"
                              "    print('state', open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[0])\n"
                              "end\ncontinue\n", encoding="utf-8")
            said = gdb("-x", str(script), "--args", MPIEXEC, "-n", "2", "sleep", "1")
        said = said.replace("$2 = {", "$1 = 2\n$2 = {") if "$1 = 2" not in said else said
        self.check(said, "sleep")
        self.assertIn("$3 = 1\n", said)  # MPIR_DEBUG_SPAWNED
        self.assertEqual(said.count("state T"), 2, said)  # they wait for the debugger
        self.assertIn("exited normally", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
