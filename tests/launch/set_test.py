#!/usr/bin/env python3
"""Tests that mpiexec itself obeys --set NAME=VALUE: each variable of its scope, with nothing in the environment.

    set_test.py BUILD [TestClass[.test]]...
"""

import os
import pathlib
import re
import signal
import unittest

from hosts_test import HostsCase
from launcher_test import BUILD, LIMIT, MPIEXEC, PROBE

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src"


class Settings(HostsCase):
    def setUp(self):
        super().setUp()
        del self.environment["STARLING_LAUNCHER_AGENT"]

    def over(self, hosts, *arguments, agent=None, **options):
        return self.mpiexec("--set", f"launcher-agent={agent or self.agent}", "--host", hosts, *arguments, **options)

    def test_every_variable_of_the_launcher_is_tried(self):
        table = (SOURCES / "base" / "variables.def").read_text()
        names = re.findall(r'"STARLING_(\w+)"(?:, [^,"]+)*, (?:"\w*", )?launcher,', table)
        self.assertGreaterEqual(len(names), 12)
        here = pathlib.Path(__file__).read_text()
        self.assertEqual([name for name in names if name.lower().replace("_", "-") + "=" not in here], [])

    def test_the_agent(self):
        code, out, err = self.over("a:1,b:1", "-n", 2, "sh", "-c", "echo $FAKE_HOST")
        self.assertEqual((code, sorted(out.split()), err), (0, ["a", "b"], ""))

    def test_the_fanout(self):
        agent = self.script(f"echo ${{FAKE_HOST:-root}} $1 >> {self.directory}/started; exec {self.agent} \"$@\"", "noting")
        for fanout, starts in ((1, "a b,b c,root a"), (16, "root a,root b,root c")):
            pathlib.Path(self.directory, "started").write_text("")
            code, _, err = self.over("a,b,c", "--set", f"tree-fanout={fanout}", "true", agent=agent)
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(",".join(sorted(pathlib.Path(self.directory, "started").read_text().splitlines())), starts)

    def test_the_interfaces_of_daemons(self):
        code, _, err = self.over("a", "--set", "daemon-interfaces=none7", "true")
        self.assertNotEqual(code, 0)
        self.assertIn("STARLING_DAEMON_INTERFACES names 'none7', which is not up", err)
        self.assertEqual(self.over("a", "--set", "daemon-interfaces=lo", "true")[0], 0)

    def test_the_time_to_start(self):
        code, _, err = self.over("a", "--set", "launch-timeout=1", "true", agent=self.script("exec sleep 60", "slow"))
        self.assertNotEqual(code, 0)
        self.assertIn("no daemon after 1 s", err)

    def test_the_report_of_a_hang(self):
        process = self.popen(MPIEXEC, "--set", "hang-report=1", "-n", 2, BUILD / "tests" / "why" / "stuck", "cycle")
        self.assertEqual(process.stderr.readline(), "mpiexec: no process has made progress for 1 s (STARLING_HANG_REPORT):\n")
        self.assertRegex(process.stderr.readline(), "^job ")
        process.terminate()
        process.communicate(timeout=LIMIT)

    def test_an_agent_that_stays(self):
        over = pathlib.Path(self.directory, "over")
        agent = self.script(f"{self.agent} \"$@\"; echo 1 > {over}", "watched")
        look = f"i=0; while [ ! -e {over} ] && [ $i -lt $TIMES ]; do sleep 0.05; i=$((i+1)); done; [ -e {over} ] && echo over || echo stays"
        for keep, times, state in (("off", 400, "over\n"), ("on", 40, "stays\n")):
            over.unlink(missing_ok=True)
            self.assertEqual(self.over("a", "--set", f"keep-agent={keep}", "-x", f"TIMES={times}", "sh", "-c", look, agent=agent)[:2], (0, state))

    def test_the_time_after_a_rank_has_finalized_and_failed(self):
        code, out, err = self.mpiexec("--set", "exit-grace=0", "-n", 1, PROBE, "init", "finalize", "exit 3", ":",
                                      "-n", 1, PROBE, "init", "sleep 60000", "print late")
        self.assertEqual((code, out), (3, ""))
        self.assertIn("exited with code 3; ending the others", err)

    def test_the_time_after_a_signal(self):
        process = self.popen(MPIEXEC, "-v", "--set", "signal-grace=1", "-n", 2, "sh", "-c",
                             "trap '[ $STARLING_RANK = 0 ] && exit 3' TERM; "
                             f"echo 1 > {self.directory}/up$STARLING_RANK; while :; do sleep 0.02; done")
        self.files("up0", "up1")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=LIMIT)  # rank 1 ignores the signal, and is killed
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("ending the processes that still run after 1 s", err)

    def test_munge(self):
        code, _, err = self.over("a", "--set", "authentication=munge", "--set", f"munge-socket={self.directory}/none", "true")
        self.assertNotEqual(code, 0)
        self.assertRegex(err, f"MUNGE: .*STARLING_MUNGE_SOCKET={self.directory}/none|MUNGE is not installed here")

    def test_encryption(self):
        hello = str(BUILD / "tests" / "mpi" / "ordering")
        code, _, err = self.over("a:1,b:1", "--set", "encryption=on", "-n", 2, hello)
        self.assertEqual((code, err), (0, ""))

    def test_a_silent_daemon(self):
        process = self.popen(MPIEXEC, "--set", f"launcher-agent={self.agent}", "--set", "silence-ms=5000", "--set", "heartbeat-ms=100",
                             "--set", "reattach-ms=300", "--host", "a:1,b:1", "-n", 2, "sh", "-c",
                             f"echo 1 > {self.directory}/up$STARLING_RANK; exec sleep 60")
        self.files("up0", "up1")
        stopped = max(self.both_daemons())
        os.kill(stopped, signal.SIGSTOP)
        _, err = process.communicate(timeout=LIMIT)
        os.kill(stopped, signal.SIGCONT)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("no sign of life for 5000 ms", err)

    def test_a_wrong_value_is_refused(self):
        code, out, err = self.mpiexec("--set", "wait=pol", "echo", "ran")
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(err, "mpiexec: '--set wait=pol' is refused: STARLING_WAIT takes poll, adaptive or thread, not 'pol'\n")


if __name__ == "__main__":
    import sys
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
