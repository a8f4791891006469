#!/usr/bin/env python3
"""Tests what debuggers read of mpiexec: the process table of the MPIR interface.

    debugger_test.py BUILD [TestClass[.test]]...
"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from hosts_test import STARLING, HostsCase
from launcher_test import marked, status

BUILD = Path(sys.argv[1]).resolve()
MPIEXEC = str(BUILD / "bin" / "mpiexec")
LIMIT = 200  # seconds for anything
SPAWN = str(BUILD / "tests" / "mpi" / "spawn")
ROW = r'host_name = 0x\w+ "([^"]+)", executable_name = 0x\w+ "([^"]+)", pid = (\d+)'
STOP = "handle SIGCHLD SIGCONT nostop noprint pass\nset detach-on-fork on\nbreak MPIR_Breakpoint\n"
SHOW = """python
size = int(gdb.parse_and_eval("MPIR_proctable_size"))
print("size", size, "debug state", int(gdb.parse_and_eval("MPIR_debug_state")))
for i in range(size):
    gdb.execute(f"print MPIR_proctable[{i}]")
end
"""
STATES = """shell sleep %s
python
import time
def state(pid): return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
end = time.monotonic() + 60
for i in range(%d, int(gdb.parse_and_eval("MPIR_proctable_size"))):
    pid = int(gdb.parse_and_eval(f"MPIR_proctable[{i}].pid"))
    while state(pid) != "T" and time.monotonic() < end: time.sleep(0.05)
    print("state", state(pid))
end
"""
START = STOP + "start\nset var MPIR_being_debugged = 1\n"


def gdb(*words, **options):
    result = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", *words], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=LIMIT, check=False, **options)
    return result.stdout + result.stderr


def gdb_script(text, *words, **options):
    with tempfile.NamedTemporaryFile("w", prefix="starling-tests-") as script:
        script.write(text)
        script.flush()
        return gdb("-x", script.name, *words, **options)


def attach(job):
    """Attaches as a debugger does to which the table may be filled for the first time."""
    return gdb_script(STOP + "set var MPIR_being_debugged = 1\ncontinue\n" + SHOW + "set var MPIR_being_debugged = 0\n", "-p", str(job.pid))


class ProcessTable(unittest.TestCase):
    def check(self, said, program):
        self.assertIn("size 2 debug state 1\n", said)  # MPIR_DEBUG_SPAWNED
        rows = re.findall(ROW, said)
        self.assertEqual([(host, os.path.basename(name)) for host, name, _ in rows], [(os.uname().nodename, program)] * 2, said)
        return [int(pid) for _, _, pid in rows]

    def test_a_debugger_that_attaches_reads_the_table(self):
        job = subprocess.Popen([MPIEXEC, "-n", "2", "sh", "-c", "echo ready; sleep 60; :"], stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual([job.stdout.readline() for _ in range(2)], ["ready\n"] * 2)
            shell = os.path.basename(os.path.realpath("/bin/sh"))
            pids = self.check(gdb_script(SHOW, "-p", str(job.pid)), shell)
            self.assertEqual(self.check(attach(job), shell), pids)
            for pid in pids:
                self.assertEqual(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1], str(job.pid))
        finally:
            job.send_signal(signal.SIGTERM)
            job.stdout.close()
            job.wait(LIMIT)

    def test_a_debugger_that_starts_mpiexec_stops_where_all_processes_are_known(self):
        said = gdb_script(START + "continue\n" + SHOW + STATES % (1, 0) + "continue\n", "--args", MPIEXEC, "-n", "2", "sleep", "5")
        self.check(said, "sleep")
        self.assertEqual(said.count("state T"), 2, said)  # they wait for the debugger
        self.assertIn("exited normally", said)

    def test_spawned_processes_are_added_and_wait_for_the_debugger(self):
        said = gdb_script(START + "continue\n" + SHOW + "continue\n" + SHOW + STATES % (1, 2) + "delete\ncontinue\n",
                          "--args", MPIEXEC, "-n", "2", SPAWN)
        sizes = [int(size) for size in re.findall(r"^size (\d+) debug state 1$", said, re.M)]
        self.assertEqual(sizes[0], 2, said)
        self.assertGreater(sizes[1], 2)
        rows = re.findall(ROW, said)
        self.assertEqual(rows[:2], rows[2:4])  # the first ranks stay where they are
        self.assertEqual(len({pid for _, _, pid in rows}), sizes[1])
        self.assertEqual({os.path.basename(name) for _, name, _ in rows}, {"spawn"})
        self.assertEqual(said.count("state T"), sizes[1] - 2, said)
        self.assertIn("exited normally", said)


class HostsTable(HostsCase):
    """The table of a job on several hosts."""

    SHELL = os.path.realpath("/bin/sh")

    def check_table(self, *options):
        """Compares the table with what four ranks print on hosts a and b."""
        job = self.popen(MPIEXEC, *options, "-n", 4, "sh", "-c", "echo $STARLING_RANK $FAKE_HOST $$; sleep 60; :")
        lines = sorted(job.stdout.readline().split() for _ in range(4))
        self.assertEqual([line[:2] for line in lines], [["0", "a"], ["1", "b"], ["2", "a"], ["3", "b"]])
        self.wait_for(lambda: "size 4 debug state 1\n" in gdb_script(SHOW, "-p", str(job.pid)), "the table is not filled")
        for look in (lambda: gdb_script(SHOW, "-p", str(job.pid)), lambda: attach(job)):
            said = look()
            self.assertIn("size 4 debug state 1\n", said)
            self.assertEqual(re.findall(ROW, said), [(host, self.SHELL, pid) for _, host, pid in lines])
        self.assertIsNone(job.poll())
        job.send_signal(signal.SIGTERM)
        job.communicate(timeout=LIMIT)

    def test_the_ranks_of_other_hosts(self):
        self.check_table("--host", "a:2,b:2", "--map-by", "node")

    def test_ranks_that_standing_daemons_have_started(self):
        self.assertEqual(self.run_command(STARLING, "daemon", "start", "--host", "a:2,b:2")[0], 0)
        try:
            self.check_table("--map-by", "node")
        finally:
            self.run_command(STARLING, "daemon", "stop")

    def stop_at_start(self, *options):
        """The ranks wait while the debugger keeps mpiexec for longer than daemons bear its silence."""
        said = gdb_script(START + "continue\n" + SHOW + STATES % (8, 0) + "continue\n", "--args", MPIEXEC, *options, "-n", "2", "sleep", "5",
                          env=dict(self.environment, STARLING_SILENCE_MS="4000"))
        self.assertEqual([host for host, _, _ in re.findall(ROW, said)], ["a", "b"], said)
        self.assertEqual(said.count("state T"), 2, said)
        self.assertIn("exited normally", said)  # so the ranks went on, and have ended

    def test_a_debugger_that_starts_mpiexec(self):
        self.stop_at_start("--host", "a:1,b:1")

    def test_spawned_processes_of_several_hosts(self):
        self.spawn_below("--host", "a:1,b:1")

    def spawn_below(self, *options):
        said = gdb_script(START + "continue\ncontinue\n" + SHOW + STATES % (1, 2) + "delete\ncontinue\n", "--args", MPIEXEC, *options, "-n", "2",
                          SPAWN, env=self.environment)
        self.assertRegex(said, r"size ([3-9]|\d\d) debug state 1\n")
        self.assertLessEqual({host for host, _, _ in re.findall(ROW, said)}, {"a", "b"}, said)
        self.assertEqual(said.count("state T"), len(re.findall(ROW, said)) - 2, said)
        self.assertIn("exited normally", said)

    def test_a_debugger_that_starts_a_client_of_standing_daemons(self):
        self.assertEqual(self.run_command(STARLING, "daemon", "start", "--host", "a:1,b:1")[0], 0)
        try:
            self.stop_at_start("--host", "a:1,b:1")
            self.spawn_below("--host", "a:1,b:1")
        finally:
            self.run_command(STARLING, "daemon", "stop")

    def test_a_debugger_that_attaches_before_the_job_has_started(self):
        """With this many hosts the table is filled only if a debugger asks."""
        hosts = ",".join(f"h{i}:1" for i in range(66))
        self.assertEqual(self.run_command(STARLING, "daemon", "start", "--host", hosts)[0], 0)
        root, = [pid for pid, command in marked(self.mark).items() if "starlingd universe" in command]
        try:
            os.kill(root, signal.SIGSTOP)
            job = self.popen(MPIEXEC, "-n", 1, "sh", "-c", "echo $$; sleep 60; :")
            self.wait_for(lambda: status(job.pid, "SigBlk") not in ("", "0" * 16), "mpiexec does not submit the job")
            gdb_script("set var MPIR_being_debugged = 1\n", "-p", str(job.pid))
            os.kill(root, signal.SIGCONT)
            pid = job.stdout.readline().strip()
            self.wait_for(lambda: ("h0", self.SHELL, pid) in re.findall(ROW, gdb_script(SHOW, "-p", str(job.pid))), "the table is not filled")
            job.send_signal(signal.SIGTERM)
            job.communicate(timeout=LIMIT)
        finally:
            os.kill(root, signal.SIGCONT)
            self.run_command(STARLING, "daemon", "stop")


class Debug(unittest.TestCase):
    """mpiexec --debug."""

    STUCK = str(BUILD / "tests" / "why" / "stuck")

    def test_gdb_runs_on_the_chosen_rank(self):
        commands = "continue\nbacktrace 1\nprint (int)getpid()\nkill\nquit\n"
        result = subprocess.run([MPIEXEC, "--debug=1", "-n", "2", self.STUCK, "cycle"], input=commands, capture_output=True, text=True,
                                timeout=LIMIT, check=False)
        self.assertRegex(result.stdout, r"#0 +main \(", result.stderr)
        self.assertRegex(result.stderr, r"rank 1 .* was killed by signal 9")
        self.assertNotIn("Fatal signal", result.stdout + result.stderr)  # gdb ends before mpiexec

    def test_a_rank_runs_on_after_gdb_has_detached(self):
        """gdb itself still runs, and lets the rank end only when it has seen that it runs."""
        with tempfile.TemporaryDirectory() as folder:
            script = f"[ $STARLING_RANK = 1 ] || echo $$ > {folder}/pid; until [ -e {folder}/go ]; do sleep 0.01; done"
            look = (f"shell for i in $(seq 5000); do grep -q '^State:.[SRD]' /proc/$(cat {folder}/pid)/status && echo it runs && break; "
                    f"sleep 0.01; done 2> /dev/null; touch {folder}/go\n")
            result = subprocess.run([MPIEXEC, "--debug", "-n", "2", "sh", "-c", script], input="detach\n" + look + "quit\n",
                                    capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("it runs\n", result.stdout)
        self.assertNotIn("pending", result.stdout)  # no question if the program, as this one, has no symbols

    def test_a_rank_runs_on_after_a_debugger_that_has_not_attached(self):
        with tempfile.TemporaryDirectory() as folder:
            impostor = Path(folder, "gdb")
            impostor.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
            impostor.chmod(0o755)
            result = subprocess.run([MPIEXEC, "--debug", "-n", "2", "echo", "ended"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    timeout=LIMIT, check=False, env=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"))
        self.assertEqual((result.returncode, result.stdout), (0, "ended\n" * 2), result.stderr)

    def test_sigterm_ends_a_debugger_that_ignores_it(self):
        """gdb does so once if it asks whether to print another page."""
        with tempfile.TemporaryDirectory() as folder:
            impostor = Path(folder, "gdb")
            impostor.write_text("#!/bin/sh\ntrap '' TERM\necho up\nexec sleep 1000\n", encoding="utf-8")
            impostor.chmod(0o755)
            with subprocess.Popen([MPIEXEC, "--debug", "-n", "2", "sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.DEVNULL, env=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")) as process:
                self.assertEqual(process.stdout.readline(), "up\n")
                process.terminate()
                try:
                    self.assertEqual(process.wait(LIMIT), 128 + signal.SIGTERM)
                finally:
                    process.kill()

    def test_several_ranks_are_in_panes(self):
        pid, fd = pty.fork()
        if pid == 0:
            os.environ.update(TERM="xterm", LINES="40", COLUMNS="120")
            os.execv(MPIEXEC, [MPIEXEC, "--debug=0,1", "-n", "2", self.STUCK, "cycle"])
        tmux = ["tmux", "-L", f"starling-{pid}"]
        end, panes = time.monotonic() + LIMIT, []
        while time.monotonic() < end:
            if select.select([fd], [], [], 0.2)[0]:
                os.read(fd, 1 << 16)
            panes = [subprocess.run([*tmux, "capture-pane", "-p", "-t", str(pane)], capture_output=True, text=True, check=False).stdout
                     for pane in (0, 1)]
            if all("breakpoint 2 at" in pane for pane in panes):
                break
        subprocess.run([*tmux, "kill-server"], stderr=subprocess.DEVNULL, check=False)
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        os.close(fd)
        self.assertTrue(all("breakpoint 2 at" in pane for pane in panes), panes)

    def test_a_program_that_cannot_start_is_refused_before_gdb_runs(self):
        for name, says in (("./nonesuch", "No such file"), ("nonesuch", "neither in PATH"), ("/etc/passwd", "chmod"), ("/", "directory")):
            result = subprocess.run([MPIEXEC, "--debug", "-n", "2", name], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    timeout=LIMIT, check=False)
            self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (127, "", 1), result.stderr)
            self.assertIn(f"cannot start '{name}' in directory", result.stderr)
            self.assertIn(says, result.stderr)

    def test_what_cannot_be_debugged_is_refused(self):
        for words, says in ((["--debug=x"], "is not a list of ranks"), (["--debug=5"], "no such rank"), (["--debug=0,1"], "needs a terminal")):
            result = subprocess.run([MPIEXEC, *words, "-n", "2", "sleep", "60"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    timeout=LIMIT, check=False)
            self.assertIn(says, result.stderr)
            self.assertNotEqual(result.returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
