#!/usr/bin/env python3
"""Tests the reports of starling why for jobs that hang in known ways.

    why_test.py BUILD [TestClass[.test]]...
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).resolve()
STARLING, MPIEXEC = str(BUILD / "bin" / "starling"), str(BUILD / "bin" / "mpiexec")
STUCK, STUCK_SHMEM = (str(BUILD / "tests" / "why" / name) for name in ("stuck", "stuck_shmem"))
LIMIT = 240  # seconds for anything


def why(*words):
    result = subprocess.run([STARLING, "why", *words], capture_output=True, text=True, timeout=LIMIT, check=False)
    return result.returncode, result.stdout, result.stderr


class Stuck(unittest.TestCase):
    """Each test runs a job that hangs, and checks the sentences that explain it."""

    def start(self, way, ranks, program=STUCK, **settings):
        self.job = subprocess.Popen([MPIEXEC, "-n", str(ranks), program, way], stdin=subprocess.DEVNULL,
                                    env={**os.environ, **settings})
        self.addCleanup(self.end, self.job)
        return self.job

    @staticmethod
    def end(job):
        job.send_signal(signal.SIGTERM)
        job.wait(LIMIT)

    def look(self):
        """Returns this job's report: its findings, and a sentence per rank. None while the job is not visible yet."""
        code, out, err = why("--json", "--launcher", str(self.job.pid))
        if code == 1:
            return None
        job = json.loads(out)["jobs"][0]
        self.assertEqual(code, 3 if job["stuck"] else 0, err)
        return job

    def assert_says(self, *patterns):
        """Waits until the report has a line for each pattern: a job takes its time to hang."""
        end = time.monotonic() + LIMIT
        text = ""
        while time.monotonic() < end:
            report = self.look()
            if not report:
                continue
            text = "\n".join(report["findings"] + [rank["text"] for rank in report["ranks"]])
            if all(re.search(pattern, text, re.MULTILINE) for pattern in patterns):
                return report
        return self.fail(f"{patterns} not in\n{text}")

    def test_two_wait_for_each_other(self):
        self.start("cycle", 2)
        self.assert_says(r"^deadlock: rank 0 waits for rank 1, which waits for rank 0$",
                         r"^rank 0 waits in MPI_Recv on MPI_COMM_WORLD for rank 1, tag 7 \(up to 4 bytes\), for \d+\.\d s$",
                         r"^rank 1 waits in MPI_Recv on MPI_COMM_WORLD for rank 0, tag 7 \(up to 4 bytes\), for")

    def test_four_in_a_circle(self):
        self.start("cycle", 4)
        self.assert_says("^deadlock: rank 0 waits for rank 1, which waits for rank 2, which waits for rank 3, which waits for rank 0$")

    def test_long_sends_towards_each_other(self):
        self.start("sends", 2)
        self.assert_says("^deadlock: rank 0 waits for rank 1, which waits for rank 0$",
                         r"^rank 0 waits in MPI_Send on MPI_COMM_WORLD for rank 1 to receive tag 3 \(1024 KB\), for .*"
                         "; 1 more message that no receive has taken$")

    def test_a_wrong_tag(self):
        self.start("wrong_tag", 2)
        self.assert_says(r"^rank 1 waits in MPI_Recv on MPI_COMM_WORLD for rank 0, tag 7 .*; rank 0 has sent it tag 8 \(4 bytes\)$",
                         "^deadlock: rank 0 waits for rank 1, which waits for rank 0$",
                         "^rank 0 waits in MPI_Barrier on MPI_COMM_WORLD, collective 1 there, for rank 1 to call it, for")

    def test_a_wrong_communicator(self):
        self.start("wrong_communicator", 2)
        self.assert_says(r"^rank 1 waits in MPI_Recv on MPI_COMM_WORLD for rank 0, tag 7 .*"
                         r"; rank 0 has sent it tag 7 on the twin \(4 bytes\)$")

    def test_a_collective_write(self):
        self.start("file_write", 2)
        self.assert_says(r"^rank 0 waits in MPI_File_write_at_all on file /tmp/starling-tests-stuck-\w+, collective \d+ there, for rank 1")

    def test_a_split_collective_write(self):
        """The wait is for a message of the step that the operation is in: an ordered access has several, with a tag each."""
        for mode, function in (("file_split", "MPI_File_write_at_all_end"), ("file_ordered", "MPI_File_write_ordered_end")):
            with self.subTest(function=function):
                self.start(mode, 2)
                self.assert_says(rf"^rank 0 waits in {function} on file /tmp/starling-tests-stuck-\w+, collective \d+ there, for rank 1, its part")

    def test_different_collectives(self):
        for ranks in (2, 3, 6):  # few processes poll each other, many use a counter
            with self.subTest(ranks=ranks):
                self.start("collectives", ranks)
                self.assert_says(r"^different collectives on MPI_COMM_WORLD: rank 0 is in MPI_Barrier and .* in MPI_Bcast; .*call 2",
                                 "^deadlock: ")
                self.end(self.job)

    def test_different_collectives_by_messages(self):
        self.start("collectives", 3, STARLING_COLL_BARRIER="dissemination", STARLING_COLL_BCAST="binomial")
        self.assert_says(r"^different collectives on MPI_COMM_WORLD: rank 0 is in MPI_Barrier and .* in MPI_Bcast; .*call 2")

    def test_a_non_blocking_collective_behind_another(self):
        self.start("outstanding", 3)
        self.assert_says(r"^rank 1 waits in MPI_Wait \(MPI_Ibarrier\) on MPI_COMM_WORLD, collective 2 there, for rank 0 to call it, "
                         "for", "^deadlock: rank 0 waits for rank 1, which waits for rank 0$")

    def test_an_endless_loop(self):
        for ranks in (3, 7):
            with self.subTest(ranks=ranks):
                self.start("loop", ranks)
                others = "rank 0 and rank 1" if ranks == 3 else f"ranks 0 to {ranks - 2}"
                self.assert_says(f"^{others} wait, in the end, for rank {ranks - 1}, which computes$",
                                 rf"^rank {ranks - 1} computes \(\d+ % of a core\)")
                self.end(self.job)

    def test_a_process_whose_first_thread_has_ended(self):
        self.start("first_thread_ends", 2)
        report = self.assert_says("^rank 0 waits, in the end, for rank 1, which computes$", r"^rank 1 computes \(\d+ % of a core\)")
        end, out, err = time.monotonic() + LIMIT, "", ""
        stack = rf"\n---- rank 1 on \S+, process {report['ranks'][1]['pid']}\n  state R \(running\), .*, memory [1-9]\d* kB\n" \
            r"  compute \(stuck\.c:\d+\)"
        while not re.search(stack, out) and time.monotonic() < end:
            _, out, err = why("--stacks", "--launcher", str(self.job.pid))
        self.assertRegex(out, stack, err)

    def test_a_stopped_process(self):
        self.start("stopped", 2)
        report = self.assert_says("^rank 1 waits in MPI_Barrier")
        pid = report["ranks"][0]["pid"]
        os.kill(pid, signal.SIGSTOP)
        self.assert_says("^rank 1 waits, in the end, for rank 0, which is stopped$",
                         rf"^rank 0 is stopped, .*`kill -CONT {pid}` on {os.uname().nodename} resumes it$")
        os.kill(pid, signal.SIGCONT)

    def test_a_loop_of_tests(self):
        self.start("tests", 2)
        self.assert_says("^rank 0 tests in a loop", "^rank 1 tests in a loop")

    def test_several_requests(self):
        self.start("several", 2)
        self.assert_says(r"^rank 0 waits in MPI_Waitany on MPI_COMM_WORLD for rank 1, tag 10 .* or for rank 1, tag 12 .*, for ",
                         r"^rank 1 waits in MPI_Waitall on MPI_COMM_WORLD for rank 0, tag 10 .*; 2 more receives posted$",
                         "^deadlock: rank 0 waits for rank 1")

    def test_probes(self):
        self.start("probe", 3)
        self.assert_says("^rank 0 waits in MPI_Probe on MPI_COMM_WORLD for a message of any rank, tag 9, for ",
                         "^rank 1 waits in MPI_Probe on MPI_COMM_WORLD for a message of rank 0, tag 9, for ", "^deadlock: ")

    def test_a_lock_of_a_window(self):
        self.start("window_lock", 2)
        self.assert_says("^deadlock: rank 0 waits for rank 1, which waits for rank 0$",
                         r"^rank 1 waits in MPI_Win_lock for a lock that rank 0 holds, for \d+\.\d s")

    def test_an_access_whose_owner_does_something_else(self):
        self.start("window_access", 2)
        self.assert_says(r"^rank 0 waits in MPI_Win_flush for rank 1 to answer an access to its memory, for",
                         r"^rank 0 waits, in the end, for rank 1, which computes$")

    def test_a_lock_of_openshmem(self):
        self.start("lock", 2, STUCK_SHMEM)
        self.assert_says("^deadlock: rank 0 waits for rank 1, which waits for rank 0$",
                         r"^rank 0 waits in shmem_long_wait_until for its memory to be changed by any rank, for",
                         r"^rank 1 waits in shmem_set_lock for a lock that rank 0 holds, for")

    def test_memory_that_nobody_changes(self):
        self.start("memory", 2, STUCK_SHMEM)
        self.assert_says("^deadlock: rank 0 waits for rank 1, which waits for rank 0$")

    def test_a_barrier_of_openshmem(self):
        self.start("barrier", 3, STUCK_SHMEM)
        self.assert_says(r"^rank 0 waits in shmem_barrier_all on SHMEM_TEAM_WORLD, collective \d+ there, for rank 2, its part",
                         r"^rank 2 waits in shmem_long_wait_until for its memory to be changed by any rank, for")

    def test_in_mode_poll(self):
        self.start("cycle", 2, STARLING_WAIT="poll")
        self.assert_says("^deadlock: rank 0 waits for rank 1, which waits for rank 0$")

    def test_with_a_progress_thread(self):
        self.start("cycle", 2, STARLING_WAIT="thread")
        self.assert_says("^deadlock: rank 0 waits for rank 1, which waits for rank 0$")

    def test_equal_states_are_one_line(self):
        self.start("loop", 8)
        report = self.assert_says("^ranks 0 to 6 wait, in the end, for rank 7, which computes$")
        self.assertFalse(report["stuck"])  # a process that computes may still come
        groups = [group["ranks"] for group in report["groups"]]
        self.assertEqual(groups, [[0, 1, 2, 3, 4, 5, 6], [7]])
        _, out, _ = why("--launcher", str(self.job.pid))
        self.assertRegex(out, r"\n  ranks 0 to 6 wait in MPI_Barrier on MPI_COMM_WORLD, collective \d+ there, for rank 7 to call it, for ")
        self.assertEqual(report["ranks"][0]["waits"][0]["missing"], [7])

    def test_stacks(self):
        self.start("loop", 8)
        self.assert_says("^ranks 0 to 6 wait, in the end, for rank 7, which computes$")
        stack = r"\n---- ranks 0 to 6 on \S+, processes \d+, .* and \d+\n  state .*\n  P?MPI_Barrier \(.*\)\n(  loop \(.*\)\n)?  main \(stuck\.c:\d+\)"
        end, out, err = time.monotonic() + LIMIT, "", ""
        while not re.search(stack, out) and time.monotonic() < end:  # one that just looks for messages is in another state
            _, out, err = why("--stacks", "--launcher", str(self.job.pid))
        self.assertRegex(out, stack, err)
        self.assertNotIn("libc.so.6", out.split("MPI_Barrier", 1)[1].split("main", 1)[0])
        self.assertEqual(out.count("---- rank"), 2, out)
        _, everything, _ = why("--stacks", "--all-frames", "--launcher", str(self.job.pid))
        self.assertIn("starling::", everything)
        self.assertNotIn("starling::", out)

    def test_fields(self):
        self.start("wrong_tag", 2)
        report = self.assert_says("^deadlock: ")
        barrier, receive = (rank["waits"][0] for rank in report["ranks"])
        self.assertEqual((barrier["call"], barrier["communicator"]["name"], barrier["missing"]), ("MPI_Barrier", "MPI_COMM_WORLD", [1]))
        self.assertEqual(receive["call"], "MPI_Recv")
        awaited = receive["for"][0]
        self.assertEqual((awaited["kind"], awaited["peer"], awaited["tag"], awaited["communicator"]["size"]), ("receive", 0, 7, 2))
        self.assertEqual([message["tag"] for message in report["ranks"][1]["messages"]], [8])

    def test_a_word_of_the_command_line_names_the_job(self):
        self.start("cycle", 2)
        self.assert_says("^deadlock: ")
        _, out, _ = why("stuck cycle")
        self.assertIn(" ".join([STUCK, "cycle"]), out)

    def test_text(self):
        self.start("cycle", 2)
        self.assert_says("^deadlock: ")
        code, out, _ = why("--launcher", str(self.job.pid))
        self.assertEqual(code, 3)
        lines = out.splitlines()
        self.assertRegex(lines[0], r"^job [0-9a-f]{16}  .*stuck cycle  2 of 2 ranks seen$")
        self.assertEqual(lines[1], "  * deadlock: rank 0 waits for rank 1, which waits for rank 0")


class Told(unittest.TestCase):
    """Tests reports that mpiexec prints by itself."""

    def run_stuck(self, *words, **settings):
        return subprocess.run([MPIEXEC, *words, STUCK, "cycle"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              timeout=LIMIT, env={**os.environ, **settings}, check=False)

    def test_timeout(self):
        for seconds in ("8", "80"):
            result = self.run_stuck("-n", "2", "--timeout", seconds)
            self.assertEqual(result.returncode, 124, result.stderr)
            if "* deadlock" in result.stderr:
                break  # on a busy machine, the ranks may not have come to it at first
        self.assertIn("  * deadlock: rank 0 waits for rank 1, which waits for rank 0\n", result.stderr)
        self.assertLess(result.stderr.index("* deadlock"), result.stderr.index("---- rank 0"))

    def test_hang_report(self):
        result = self.run_stuck("-n", "2", "--timeout", "25", STARLING_HANG_REPORT="5")
        said = "mpiexec: no process has made progress for 5 s (STARLING_HANG_REPORT):\njob "
        self.assertEqual(result.stderr.count(said), 1, result.stderr)
        self.assertLess(result.stderr.index(said), result.stderr.index("(--timeout)"))

    def test_a_rank_that_ends_without_init_while_others_wait(self):
        for way in ("absent_sender", "absent_barrier"):
            result = subprocess.run([MPIEXEC, "-n", "3", STUCK, way], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                    timeout=LIMIT, check=False)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)
            self.assertRegex(result.stderr, r"rank 1 \(.*\) on .* has exited with code 0 and never called MPI_Init or shmem_init, but "
                                            "others wait for it; ending the other (process|2)")

    def test_a_rank_that_ends_without_init_and_nobody_waits(self):
        result = subprocess.run([MPIEXEC, "-n", "3", STUCK, "absent_stranger"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True, timeout=LIMIT, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_no_hang_report_while_somebody_gets_on(self):
        result = subprocess.run([MPIEXEC, "-n", "2", STUCK, "goes_on"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                timeout=LIMIT, env={**os.environ, "STARLING_HANG_REPORT": "10"}, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


class Crash(unittest.TestCase):
    """Tests the stack that a crashing rank prints."""

    CRASH = str(BUILD / "tests" / "why" / "crash")
    # In a sanitizer build the crash must reach Starling's handler, or the default action, and not the sanitizer's handler.
    UNHANDLED = {"ASAN_OPTIONS": ":".join(f"handle_{signal}=0" for signal in ("segv", "sigbus", "sigill", "sigfpe", "abort"))
                                 + ":use_sigaltstack=0"}

    def crash(self, *words, launcher=MPIEXEC, **settings):
        result = subprocess.run([launcher, "-n", "2", self.CRASH, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=LIMIT,
                                env={**os.environ, **self.UNHANDLED, **settings}, check=False)
        return result.returncode, result.stdout, result.stderr

    def test_a_crash_prints_its_stack(self):
        code, _, err = self.crash("null")
        self.assertEqual(code, 128 + signal.SIGSEGV, err)
        self.assertRegex(err, r"starling: rank 1, process \d+ on \S+, has received SIGSEGV in\n  inner \(crash\.c:\d+\)\n"
                              r"  outer \(crash\.c:\d+\)\n  main \(crash\.c:\d+\)\n")
        self.assertIn("SIGSEGV", err.split("main (crash.c", 1)[1])  # mpiexec's own sentence, as ever

    def test_a_bad_buffer_names_the_call(self):
        code, _, err = self.crash("bad_buffer")
        self.assertEqual(code, 128 + signal.SIGSEGV, err)
        self.assertRegex(err, r"has received SIGSEGV in\n  P?MPI_Send \(libmpi_abi\S+\)\n  main \(crash\.c:\d+\)\n")

    def test_abort(self):
        code, _, err = self.crash("abort")
        self.assertEqual(code, 128 + signal.SIGABRT, err)
        self.assertRegex(err, r"has received SIGABRT in\n(  .*libc.*\n)+  main \(crash\.c:\d+\)\n")

    def test_a_signal_from_outside_ends_the_process_too(self):
        for sent in (signal.SIGSEGV, signal.SIGABRT):
            code, _, err = self.crash("raise", str(int(sent)))
            self.assertEqual(code, 128 + sent, err)
            self.assertRegex(err, rf"has received {sent.name} in\n(  .*libc.*\n)*  main \(crash\.c:\d+\)\n")

    def beside_launcher(self):
        """Returns a copy of the launcher, and the path beside it where `starling` is expected."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        return shutil.copy(MPIEXEC, folder), Path(folder, "starling")

    def decoy(self, path):
        """Makes `starling` a script that leaves a file, whose path is returned."""
        mark = path.parent / "executed"
        path.write_text(f"#!/bin/sh\n: > {mark}\n")
        path.chmod(0o755)
        return mark

    def test_nothing_is_installed_without_starling(self):
        launcher, starling = self.beside_launcher()
        self.assertEqual(self.crash("default", launcher=launcher), (0, "default\n", ""))
        starling.write_text("")  # not executable
        self.assertEqual(self.crash("default", launcher=launcher), (0, "default\n", ""))
        mark = self.decoy(starling)
        self.assertEqual(self.crash("default", launcher=launcher), (0, "handler\n", ""))
        self.assertEqual(self.crash("null", launcher=launcher)[0], 128 + signal.SIGSEGV)
        self.assertTrue(mark.exists())

    def test_a_file_that_others_may_change_is_not_executed(self):
        launcher, starling = self.beside_launcher()
        mark = self.decoy(starling)
        for changed, mode in ((starling, 0o777), (starling.parent, 0o777)):
            changed.chmod(mode)
            self.assertEqual(self.crash("null", launcher=launcher)[0], 128 + signal.SIGSEGV)
            self.assertFalse(mark.exists())
            changed.chmod(0o755)
        if os.geteuid() != 0:
            self.skipTest("only the superuser can give files away")
        for changed in (starling, starling.parent):
            os.chown(changed, 54321, -1)
            self.assertEqual(self.crash("null", launcher=launcher)[0], 128 + signal.SIGSEGV)
            self.assertFalse(mark.exists())
            os.chown(changed, 0, -1)

    def test_a_stranger_with_the_launchers_number_in_another_namespace(self):
        numbers = ["unshare", *([] if os.geteuid() == 0 else ["-Ur"]), "--pid", "--fork", "--kill-child", "--mount-proc"]
        if subprocess.run([*numbers, "sh", "-c", "echo 5000 > /proc/sys/kernel/ns_last_pid"], stderr=subprocess.DEVNULL,
                          check=False).returncode != 0:
            self.skipTest("no right to make a process namespace and to choose numbers in it")
        _, starling = self.beside_launcher()
        mark, sleep = self.decoy(starling), shutil.copy(shutil.which("sleep"), starling.parent)
        inner = (f'echo $(($1 - 1)) > /proc/sys/kernel/ns_last_pid; {sleep} {LIMIT} & '
                 f'[ $! = $1 ] && echo same number || exit 9; until [ "$(readlink /proc/$1/exe)" = {sleep} ]; do :; done; {self.CRASH} null')
        outer = f"exec {' '.join(numbers)} sh -c '{inner}' sh $PPID"
        result = subprocess.run([MPIEXEC, "-n", "1", "true", ":", "-n", "1", "sh", "-c", outer], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=LIMIT, env={**os.environ, **self.UNHANDLED}, check=False)
        self.assertIn("same number\n", result.stdout, result.stderr)
        self.assertEqual(result.returncode, 128 + signal.SIGSEGV, result.stderr)
        self.assertFalse(mark.exists())

    def test_it_can_be_switched_off(self):
        code, _, err = self.crash("null", STARLING_BACKTRACE="off")
        self.assertEqual(code, 128 + signal.SIGSEGV, err)
        self.assertNotIn("has received", err)

    def test_handlers_and_alternate_stacks_of_the_program_stay(self):
        for way in ("handler_before", "handler_after"):
            code, out, err = self.crash(way)
            self.assertEqual((code, out, err), (0, "handled\n", ""), way)

    def test_a_forked_child_prints_nothing(self):
        self.assertEqual(self.crash("child"), (0, "", ""))


class Hidden(unittest.TestCase):
    """With hidepid=2, /proc shows users other than root only their processes that are dumpable."""

    SCRIPT = """
        mount -t proc -o hidepid=2 proc /proc || exit 77
        exec setpriv --reuid 65534 --regid 65534 --clear-groups sh -c '
            "$0" -n 2 "$1" cycle & job=$!
            for i in $(seq 600); do "$2" why > "$3/out" 2>&1; grep -q deadlock "$3/out" && break; sleep 0.1; done
            cat "$3/out"; kill $job; wait $job' "$@"
    """

    def test_ranks_that_are_not_dumpable_are_not_gone(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to mount /proc")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            unreadable = shutil.copy(STUCK, folder)
            os.chmod(unreadable, 0o711)
            result = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", self.SCRIPT, MPIEXEC, MPIEXEC,
                                     unreadable, STARLING, folder], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    timeout=LIMIT, check=False)
        if result.returncode == 77:
            self.skipTest("no right to mount /proc")
        self.assertIn("deadlock: rank 0 waits for rank 1, which waits for rank 0", result.stdout, result.stderr)
        self.assertNotIn("gone", result.stdout)


class Healthy(unittest.TestCase):
    def test_no_job(self):
        code, out, err = why("no such job")
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(err, "starling: no job of yours runs here that is or contains no such job\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
