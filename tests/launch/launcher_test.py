#!/usr/bin/env python3
"""Tests mpiexec's guarantees with programs that do not use MPI.

    launcher_test.py BUILD [TestClass[.test]]...

A test must not leave any process behind.
"""

import collections
import contextlib
import fcntl
import gzip
import os
import pathlib
import pty
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest
import uuid

BUILD = pathlib.Path(sys.argv[1]).resolve()
MPIEXEC = str(BUILD / "bin" / "mpiexec")
PROBE = str(BUILD / "tests" / "launch" / "probe")
LIMIT = 240  # seconds for anything
PATIENCE_MS = 200  # after which mpiexec passes on a line that a rank has begun (launch/process/output.cpp)


def marked(mark):
    """Returns {pid: command} of the running processes that have the mark in their environment."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            environment = pathlib.Path("/proc", entry, "environ").read_bytes().split(b"\0")
            state = pathlib.Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[0]
            if mark.encode() in environment and state not in "ZX" and int(entry) != os.getpid():
                found[int(entry)] = pathlib.Path("/proc", entry, "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def kill_all(pids):
    """Kills the processes. One that the death of another has ended before its turn is no error."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def status(pid, name):
    try:
        return re.search(rf"^{name}:\s+(\S+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M).group(1)
    except (OSError, AttributeError):
        return ""


def guards_of(launcher):
    return {int(entry) for entry in os.listdir("/proc") if entry.isdigit() and status(entry, "Name") == "starling-guard"
            and status(entry, "PPid") == str(launcher)}


def gone(pids):
    return all(status(pid, "State") in ("", "Z", "X") for pid in pids)


def threads_of(pid):
    try:
        return {int(thread) for thread in os.listdir(f"/proc/{pid}/task")}
    except OSError:
        return set()


class Case(unittest.TestCase):
    def setUp(self):
        self.mark = "LAUNCH_TEST=" + uuid.uuid4().hex
        name, _, value = self.mark.partition("=")
        # A separate universe: the test must not connect to another test's daemon.
        self.environment = dict(os.environ, STARLING_UNIVERSE=value[:16], **{name: value})
        self.directory = tempfile.mkdtemp(prefix="launch-test-")
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        left = self.left_after()
        kill_all(left)
        shutil.rmtree(self.directory)
        self.assertEqual(left, {}, "left behind")

    def left_after(self, seconds=LIMIT):
        """Returns the processes of this test that still run, once there are none, or the time is over."""
        end = time.monotonic() + seconds
        while (left := marked(self.mark)) and time.monotonic() < end:
            time.sleep(0.01)
        return left

    def named(self, name):
        return [pid for pid in marked(self.mark) if status(pid, "Name") == name]

    def hang_up_below_nohup(self, *options):
        go = pathlib.Path(self.directory, "go")
        rank = f"echo ready; while [ ! -e {go} ]; do sleep 0.02; done; echo went"
        process = self.popen("sh", "-c", "trap '' HUP; echo set; exec \"$@\"", "sh", MPIEXEC, *options, "-n", 2, "sh", "-c", rank)
        self.assertEqual(process.stdout.readline(), "set\n")
        process.send_signal(signal.SIGHUP)  # there is no job yet
        for _ in range(2):
            self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        go.touch()
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, out, err), (0, "went\n" * 2, ""))

    def popen(self, *command, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("env", self.environment)
        process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   cwd=options.pop("cwd", self.directory), **options)
        self.started.append(process)
        return process

    def run_command(self, *command, input=None, **options):
        if input is not None:
            options["stdin"] = subprocess.PIPE
        process = self.popen(*command, **options)
        out, err = process.communicate(input, timeout=LIMIT)
        return process.returncode, out, err

    def mpiexec(self, *arguments, **options):
        return self.run_command(MPIEXEC, *arguments, **options)

    def script(self, text, name="script"):
        path = pathlib.Path(self.directory, name)
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)
        return str(path)

    def wait_for(self, condition, what):
        end = time.monotonic() + LIMIT
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.005)

    def files(self, *names):
        """Waits until these files exist and are not empty. Returns the numbers in them."""
        paths = [pathlib.Path(self.directory, n) for n in names]
        self.wait_for(lambda: all(p.exists() and p.read_text().endswith("\n") for p in paths), f"no {names}")
        return [int(p.read_text()) for p in paths]

    def stands_still(self, output):
        """Returns whether this pipe is full and every process waits. mpiexec enlarges a full pipe once, and then writes more to it."""
        def waits():
            return not select.select([], [output], [], 0)[1] and all(status(pid, "State") == "S" for pid in marked(self.mark))

        return waits() and not time.sleep(0.05) and waits()

    def end_unread_jobs(self, *options):
        """Ends jobs whose output is not read: ranks that the signal kills, ranks that write more before they end, a job that takes too long."""
        lost = "mpiexec: standard output is not read, so the rest of the processes' output is lost\n"
        writer = "trap 'head -c 300000 /dev/zero; exit 3' TERM; yes & wait"
        for rank, end in ("exec yes", 128 + signal.SIGTERM), (writer, 3):
            process = self.popen(MPIEXEC, *options, "-n", 2, "sh", "-c", rank)
            with open(f"/proc/{process.pid}/fd/1", "wb", 0) as output:
                self.wait_for(lambda: self.stands_still(output), "the pipe does not become full")
            process.terminate()
            self.assertEqual(process.wait(LIMIT), end, rank)
            self.assertIn(lost, process.stderr.read())
        for seconds in (1, 10, 60):
            process = self.popen(MPIEXEC, *options, "--timeout", seconds, "-n", 2, "sh", "-c", "exec yes")
            self.assertEqual(process.wait(LIMIT), 124)
            if lost in (err := process.stderr.read()):
                return
        self.fail(err)  # on a busy machine the ranks may have written too little at first, but not in a minute

    def without_pauses(self, *arguments):
        """Returns the output of a job whose ranks report on standard error the longest time in ms between two pieces of theirs. Repeats the
        job if a rank got no core for so long that mpiexec passed on a part of a line."""
        for _ in range(20):
            code, out, err = self.run_command(*arguments)
            self.assertEqual(code, 0, err)
            if max(map(int, err.split())) < PATIENCE_MS / 2:
                return out
        return self.skipTest("this machine is too busy: the ranks pause within their lines")

    def on_terminal(self, *arguments, command=(MPIEXEC,), setting=None):
        master, slave = pty.openpty()
        if setting:
            subprocess.run(["stty", setting], stdin=slave, check=True)

        def controlling():
            os.setsid()
            import fcntl
            import termios
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        process = subprocess.Popen([*command, *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave,
                                   env=self.environment, preexec_fn=controlling)
        self.started.append(process)
        os.close(slave)
        return process, master

    def read_terminal(self, terminal, until=None):
        text = ""
        while select.select([terminal], [], [], LIMIT)[0]:
            try:
                data = os.read(terminal, 4096)
            except OSError:
                break
            text += data.decode()
            if until and until in text:
                break
        return text


class Starting(Case):
    def test_ranks_and_job(self):
        code, out, err = self.mpiexec("-n", 4, "sh", "-c", "echo $STARLING_RANK $STARLING_JOB")
        self.assertEqual((code, err), (0, ""))
        lines = [line.split() for line in out.splitlines()]
        self.assertEqual(sorted(l[0] for l in lines), ["0", "1", "2", "3"])
        self.assertEqual(len({l[1] for l in lines}), 1)

    def test_one_process_without_n(self):
        self.assertEqual(self.mpiexec("echo", "one")[:2], (0, "one\n"))

    def test_a_job_that_is_not_here_is_explained(self):
        _, job, _ = self.mpiexec("sh", "-c", "echo $STARLING_JOB")
        environment = dict(self.environment, STARLING_JOB=job.strip(), STARLING_RANK="0")
        code, out, _ = self.run_command(PROBE, "init", env=environment)
        self.assertEqual(code, 99)
        self.assertRegex(out, r"job \w+ has ended, or belongs to another user or container \(.*\); .*docker run --pid=host")
        code, _, err = self.run_command(BUILD / "tests" / "mpi" / "ordering", env=environment)
        self.assertNotEqual(code, 0)
        self.assertRegex(err, r"^starling: MPI_Init: job \w+ has ended")

    def test_several_commands(self):
        code, out, _ = self.mpiexec("-n", 1, "echo", "a", ":", "-n", 2, "echo", "b")
        self.assertEqual((code, sorted(out.split())), (0, ["a", "b", "b"]))

    def test_arguments_are_untouched(self):
        code, out, _ = self.mpiexec("printf", "[%s]", "-n", "a b", "", "*", "--help")
        self.assertEqual((code, out), (0, "[-n][a b][][*][--help]"))

    def test_environment(self):
        show = 'echo "$A-$B-$C-$STARLING_WAIT-${HOME:+home}"'
        environment = dict(self.environment, A="1")
        code, out, _ = self.mpiexec("-x", "A", "-x", "B=two words", "-genv", "C", "3", "--set", "wait=poll", "sh", "-c", show,
                                    env=environment)
        self.assertEqual((code, out), (0, "1-two words-3-poll-home\n"))
        code, out, _ = self.mpiexec("-genvnone", "-x", "A=1", "/bin/sh", "-c", show, env=environment)
        self.assertEqual((code, out), (0, "1----\n"))
        code, out, _ = self.mpiexec("-env", "B", "b", "sh", "-c", show, ":", "sh", "-c", show, env=environment)
        self.assertEqual(sorted(out.splitlines()), ["1----home", "1-b---home"])

    def test_settings_are_checked_once(self):
        environment = dict(self.environment, STARLING_WIAT="poll")
        code, out, err = self.mpiexec("-n", 3, "true", env=environment)
        self.assertEqual((code, out, err.count("\n")), (0, "", 1))
        self.assertRegex(err, r"STARLING_WIAT.*STARLING_WAIT")
        for setting in ("wiat=poll", "wait=sometimes"):
            code, _, err = self.mpiexec("--set", setting, "true")
            self.assertEqual((code, err.count("\n")), (1, 1))
            self.assertIn("STARLING_WAIT", err)

    def test_directory(self):
        os.mkdir(self.directory + "/sub")
        for option in ("-wdir", "--wdir", "-wd"):
            self.assertEqual(self.mpiexec(option, "sub", "pwd")[:2], (0, os.path.realpath(self.directory) + "/sub\n"))
        code, _, err = self.mpiexec("-wdir", "nowhere", "pwd")
        self.assertNotEqual(code, 0)
        self.assertRegex(err, r"nowhere.*directory can't be entered: No such file")
        code, _, err = self.run_command("sh", "-c", f"mkdir gone && cd gone && rmdir ../gone && exec {MPIEXEC} ./x")
        self.assertEqual((code, err), (127, "mpiexec: cannot start './x' in the current directory, which was deleted: No such file or directory\n"))

    def test_programs_are_found(self):
        self.script("echo found", "tool")
        self.assertEqual(self.mpiexec("tool")[:2], (0, "found\n"))  # in the directory, last
        self.assertEqual(self.mpiexec("./tool")[:2], (0, "found\n"))
        os.mkdir(self.directory + "/bin")
        os.rename(self.directory + "/tool", self.directory + "/bin/tool")
        self.assertEqual(self.mpiexec("-path", self.directory + "/bin", "tool")[:2], (0, "found\n"))
        path = pathlib.Path(self.directory, "plain")
        path.write_text("echo no interpreter line $1\n")
        path.chmod(0o755)
        self.assertEqual(self.mpiexec("./plain", "x")[:2], (0, "no interpreter line x\n"))

    def test_missing_programs(self):
        for name, reason in (("nonesuch", "the program is neither in PATH"), ("./nonesuch", "No such file"), ("/etc/passwd", "chmod"),
                             ("/", "directory")):
            code, out, err = self.mpiexec("-n", 3, name)
            self.assertEqual((code, out), (127, ""), name)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn(f"'{name}'", err)
            self.assertIn(reason, err)
        path = pathlib.Path(self.directory, "bad")
        path.write_text("#!/no/such/interpreter\n")
        path.chmod(0o755)
        self.assertIn("its interpreter '/no/such/interpreter' is not", self.mpiexec("./bad")[2])
        path.write_bytes(b"#!/bin/sh\r\necho\r\n")
        self.assertIn("carriage return", self.mpiexec("./bad")[2])

    def test_a_value_without_equals_is_taken_as_the_program(self):
        """mpiexec says how the value is written, and leaves no profile of a job that did not start."""
        for option, value in (("--profile", "./x.prof"), ("--debug", "1")):
            code, out, err = self.mpiexec(option, value, "-n", 2, "echo", 1)
            self.assertEqual((code, out, err.count("\n")), (127, "", 1), err)
            self.assertIn(f"'{option}' takes a value only as '{option}=VALUE', so '{value}' was taken as the program", err)
        code, _, err = self.mpiexec("--profile=named", "./nonesuch")
        self.assertEqual((code, err.count("\n")), (127, 1), err)
        self.assertEqual(os.listdir(self.directory), [])
        code, _, err = self.mpiexec("--profile=/dev/null", "./nonesuch")
        self.assertEqual((code, os.path.exists("/dev/null")), (127, True))
        self.assertNotIn("VALUE", self.mpiexec("--debug", "-n", 1, "./nonesuch")[2])
        code, _, err = self.mpiexec("-n", 1, "--profile", "true", ":", "./nonesuch")
        self.assertIn("cannot start './nonesuch'", err)
        self.assertNotIn("VALUE", err)  # true was started

    def test_a_job_that_does_not_begin_leaves_no_profile(self):
        code, _, err = self.mpiexec("--via", "daemons", "--profile=named", "true")
        self.assertEqual((code, err.count("\n")), (1, 1), err)
        self.script("touch started; exec sleep 60", "agent")
        process = self.popen(MPIEXEC, "--launcher-agent", "./agent", "--host", "elsewhere", "--profile=named", "true")
        self.wait_for(pathlib.Path(self.directory, "started").exists, "the agent has not been started")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=LIMIT), ("", ""))
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assertEqual(sorted(os.listdir(self.directory)), ["agent", "started"])

    def test_a_text_that_cannot_be_written_is_an_error(self):
        for words in ("--version", "--help", "--dry-run true"):
            code, _, err = self.run_command("sh", "-c", f"{MPIEXEC} {words} > /dev/full")
            self.assertEqual((code, err.count("\n")), (1, 1), err)
            self.assertIn("can't be written to standard output: No space left", err)

    def test_a_program_of_another_machine_is_no_script(self):
        """The kernel runs neither, but the shell runs a script without #!."""
        path = pathlib.Path(self.directory, "program")
        program = bytearray(pathlib.Path("/bin/true").read_bytes())
        program[18:20] = (0x5441).to_bytes(2, "little")  # e_machine: an old number of MicroBlaze
        path.write_bytes(program)
        path.chmod(0o755)
        code, out, err = self.mpiexec("-n", 2, "./program")
        self.assertEqual((code, out, err.count("\n")), (127, "", 1), err)
        self.assertIn("'./program'", err)
        self.assertIn("it is built for another machine, or damaged", err)
        path.write_text("echo script $1\n")
        self.assertEqual(self.mpiexec("./program", "runs")[:2], (0, "script runs\n"))

    def test_a_missing_second_command_ends_the_first(self):
        code, _, err = self.mpiexec("-n", 2, "sleep", 60, ":", "nonesuch")
        self.assertEqual(code, 127)
        self.assertIn("nonesuch", err)

    def test_bad_options(self):
        for arguments, part in ((["--tag-ouput", "ls"], "--tag-output"), (["-n", "x", "ls"], "'-n x'"), ([], "no program"),
                                (["--host", "-far", "ls"], "'-far'"), (["--bind-to", "moon", "ls"], "moon"),
                                (["--initial-errhandler", "mpi_errors_ignore", "ls"], "mpi_errors_return"),
                                (["--via", "direct", "--host", "far.example", "ls"], "'far.example'")):
            code, out, err = self.mpiexec(*arguments)
            self.assertEqual((code, out), (1, ""))
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn(part, err)

    def test_hostfile(self):
        path = pathlib.Path(self.directory, "hosts")
        path.write_text("localhost slots=2\n")
        self.assertEqual(self.mpiexec("--hostfile", path, "echo", 1)[:2], (0, "1\n1\n"))
        path.write_text("localhost\nfar example\n")
        code, _, err = self.mpiexec("--hostfile", path, "echo", 1)
        self.assertEqual((code, err.count("\n")), (1, 1))
        self.assertRegex(err, r"hosts', line 2: 'example' is not known here")
        self.assertIn("/no/file", self.mpiexec("--hostfile", "/no/file", "echo", 1)[2])

    def test_files_without_lines_are_refused(self):
        """Their first line might never end."""
        for option in ("--hostfile", "--rankfile", "--configfile"):
            code, out, err = self.mpiexec(option, "/dev/zero", *([] if option == "--configfile" else ["echo", 1]))
            self.assertEqual((code, out, err.count("\n")), (1, "", 1), err)
            self.assertIn("'/dev/zero', line 1: it has more than 1048576 characters", err)

    def test_files_without_end_are_not_read_into_memory(self):
        starling = str(BUILD / "bin" / "starling")
        packed = pathlib.Path(self.directory, "packed.gz")
        with gzip.open(packed, "wb") as file:
            file.write(b"{" + bytes(100_000_000))
        for words, sentence in (([MPIEXEC, "--plan", "/dev/zero", "true"], "the plan /dev/zero is a device"),
                                ([MPIEXEC, "--plan", "/dev/urandom", "true"], "the plan /dev/urandom is a device"),
                                ([MPIEXEC, "--plan", "/dev/fd/0", "true"], "it is not JSON: it has a zero byte"),
                                ([starling, "profile", "show", "/dev/zero"], "/dev/zero is a device"),
                                ([starling, "profile", "plan", "/dev/fd/0"], "is not a profile: it has a zero byte"),
                                ([starling, "profile", "show", packed], "is not a profile: it has a zero byte")):
            process = self.popen("sh", "-c", 'cat /dev/zero | "$@"', "sh", *words)
            out, err = process.communicate(timeout=LIMIT)
            self.assertEqual((process.returncode, out, err.count("\n")), (1, "", 1), err)
            self.assertIn(sentence, err)
        _, _, err = self.mpiexec("-n", 1, "true", env=dict(self.environment, STARLING_CONFIG=self.directory))
        self.assertEqual(err, f"starling: STARLING_CONFIG: can't read {self.directory}: Is a directory\n")

    def test_small_stacks_suffice(self):
        """No function may keep 64 KB on the stack. A thread's stack is as long as the limit, unless its creator chooses the length."""
        program = str(BUILD / "tests" / "mpi" / "ordering")
        for words in ([MPIEXEC, "-n", 2, "true"], [MPIEXEC, "-n", 2, "-genv", "STARLING_WAIT", "thread", program],
                      [str(BUILD / "bin" / "starling"), "info"]):
            process = self.popen("sh", "-c", 'ulimit -s 64; exec "$@"', "sh", *words)
            out, err = process.communicate(timeout=LIMIT)
            self.assertEqual((process.returncode, err), (0, ""), words)

    def test_smaller_stacks_are_refused(self):
        for name in ("mpiexec", "starling", "starlingd"):
            process = self.popen("sh", "-c", 'ulimit -s 32; exec "$@"', "sh", str(BUILD / "bin" / name), "--version")
            out, err = process.communicate(timeout=LIMIT)
            self.assertEqual((process.returncode, out), (1, ""))
            self.assertEqual(err, f"{name}: the stack is limited to 32 KB, and at least 64 KB are needed: raise the limit, as with "
                                  "`ulimit -s 8192`\n")

    def test_help_and_version(self):
        self.assertIn("--timeout", self.mpiexec("--help")[1])
        self.assertRegex(self.mpiexec("--version")[1], r"^Starling.* \d")

    def test_input_goes_to_rank_0(self):
        code, out, _ = self.mpiexec("-n", 3, "sh", "-c", 'echo "$STARLING_RANK:$(cat)"', input="line\n")
        self.assertEqual((code, sorted(out.splitlines())), (0, ["0:line", "1:", "2:"]))

    def test_input_from_a_terminal(self):
        process, terminal = self.on_terminal("-n", 2, "sh", "-c", 'read x; echo "$STARLING_RANK got $x"')
        os.write(terminal, b"typed\n")
        out = self.read_terminal(terminal)
        self.assertEqual(process.wait(LIMIT), 0)
        self.assertIn("0 got typed", out)
        self.assertIn("1 got \r", out)
        os.close(terminal)

    def test_ctrl_c(self):
        process, terminal = self.on_terminal("-n", 2, "sh", "-c", "echo ready; exec sleep 60")
        self.read_terminal(terminal, "ready\r\nready")
        os.write(terminal, b"\x03")
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGINT)
        os.close(terminal)

    def test_ctrl_z_and_continue(self):
        go = pathlib.Path(self.directory, "go")
        process, terminal = self.on_terminal("-n", 1, "sh", "-c", f"echo ready; while [ ! -e {go} ]; do sleep 0.02; done; echo done")
        self.read_terminal(terminal, "ready")
        os.write(terminal, b"\x1a")
        self.wait_for(lambda: pathlib.Path(f"/proc/{process.pid}/stat").read_text().split()[2] == "T", "not stopped")
        time.sleep(0.5)
        go.touch()
        os.kill(process.pid, signal.SIGCONT)
        self.assertIn("done", self.read_terminal(terminal))
        self.assertEqual(process.wait(LIMIT), 0)
        os.close(terminal)

    def test_tagged_output(self):
        for option in ("--tag-output", "-l", "-prepend-rank"):
            code, out, err = self.mpiexec(option, "-n", 3, "sh", "-c", 'printf "a\\nb"; echo e >&2')
            self.assertEqual(code, 0)
            self.assertEqual(sorted(out.splitlines()), [f"[{r}] {t}" for r in range(3) for t in "ab"])
            self.assertEqual(sorted(err.splitlines()), [f"[{r}] e" for r in range(3)])

    def test_tagged_lines_stay_whole(self):
        code, out, _ = self.mpiexec("-l", "-n", 4, "sh", "-c", "i=0; while [ $i -lt 300 ]; do printf x; printf 'yz%d\\n' $i; i=$((i+1)); done")
        self.assertEqual(code, 0)
        lines = out.splitlines()
        self.assertEqual(len(lines), 1200)
        for rank in range(4):
            self.assertEqual([l for l in lines if l.startswith(f"[{rank}]")], [f"[{rank}] xyz{i}" for i in range(300)])

    def test_tagged_output_to_a_slow_reader(self):
        process = self.popen(MPIEXEC, "-l", "-n", 2, "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo")
        time.sleep(0.5)
        self.assertIsNone(process.poll())  # the pipe is full, so the ranks wait
        out = process.communicate(timeout=LIMIT)[0]
        self.assertEqual(process.returncode, 0)
        self.assertEqual(out.count("x"), 6000000)

    def test_binding(self):
        self.assertGreaterEqual(len(os.sched_getaffinity(0)), 2, "this needs two cores")
        code, out, _ = self.mpiexec("--bind-to", "core", "-n", 2, "sh", "-c", "grep Cpus_allowed_list /proc/self/status")
        self.assertEqual(code, 0)
        self.assertEqual(len(set(out.splitlines())), 2)
        code, out, _ = self.mpiexec("-n", 2, "sh", "-c", "grep Cpus_allowed_list /proc/self/status")
        self.assertEqual(len(set(out.splitlines())), 1)
        code, _, err = self.mpiexec("--bind-to", "core", "--report-bindings", "-n", 2, "true")
        self.assertEqual(len(set(re.findall(r"rank \d on \S+ is bound to core (\d+)", err))), 2, err)

    def test_descriptors_of_ranks(self):
        code, out, _ = self.mpiexec("-n", 2, "sh", "-c", "ls /proc/self/fd | wc -l; ulimit -n")
        plain = subprocess.run(["sh", "-c", "ls /proc/self/fd | wc -l; ulimit -n"], capture_output=True, text=True).stdout
        self.assertEqual(sorted(out.split()), sorted(plain.split() * 2))

    def test_signals_of_ranks(self):
        code, out, _ = self.mpiexec("grep", "-E", "SigBlk|SigIgn", "/proc/self/status")
        plain = subprocess.run(["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"], capture_output=True, text=True,
                               restore_signals=True).stdout
        self.assertEqual(out, plain)

    def test_closed_standard_descriptors(self):
        self.assertEqual(self.run_command("sh", "-c", f"{MPIEXEC} -n 2 true <&- >&- 2>&-")[0], 0)

    def test_few_descriptors(self):
        code, _, err = self.run_command("sh", "-c", f"ulimit -n 6; {MPIEXEC} -l -n 8 true")
        self.assertNotEqual(code, 0)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertIn("ulimit -n", err)

    def test_many_ranks(self):
        code, out, _ = self.mpiexec("-n", 200, "sh", "-c", "echo $STARLING_RANK")
        self.assertEqual(code, 0)
        self.assertEqual(sorted(map(int, out.split())), list(range(200)))


# Writes the numbered lines in pieces of the given length. Then writes the longest time in ms between two of them to standard error.
PIECES = """
import os, sys, time
lines, length = map(int, sys.argv[1:])
text = b"".join(b"rank says %d and %d again\\n" % (i, i) for i in range(lines))
longest, last = 0, time.monotonic()
for begin in range(0, len(text), length):
    os.write(1, text[begin:begin + length])
    now = time.monotonic()
    longest, last = max(longest, now - last), now
os.write(2, b"%d\\n" % (1000 * longest))
"""


class Output(Case):
    def test_lines_come_whole_whatever_their_pieces(self):
        rank = (sys.executable, "-c", PIECES, 100, 1)
        for options in (("-n", 4), ("-n", 2, *rank, ":", "-n", 2)):
            out = self.without_pauses(MPIEXEC, *options, *rank)
            self.assertEqual(sorted(out.splitlines()), sorted([f"rank says {i} and {i} again" for i in range(100)] * 4))

    def test_nothing_is_lost(self):
        code, out, err = self.mpiexec("-n", 3, "sh", "-c", "seq 1 50000; seq 1 100 >&2; printf end; printf last >&2")
        self.assertEqual(code, 0)
        # Counts characters: a line is split if its rank gets no core for a second between two blocks.
        for text, last, end in ((out, 50000, "end"), (err, 100, "last")):
            self.assertEqual(collections.Counter(text), collections.Counter(("".join(f"{i}\n" for i in range(1, last + 1)) + end) * 3))

    def test_several_mpiexecs_at_one_pipe(self):
        rank = self.script(f"exec {sys.executable} -c '{PIECES}' 20000 4096", "rank")
        out = self.without_pauses("sh", "-c", f"{MPIEXEC} -n 2 {rank} & {MPIEXEC} -n 2 {rank} & wait")
        self.assertEqual(sorted(out.splitlines()), sorted([f"rank says {i} and {i} again" for i in range(20000)] * 4))

    def test_what_goes_nowhere_is_not_copied(self):
        where = "readlink /proc/self/fd/3 3>&1 >&2"
        for options in ("-n 2", "-n 1 true : -n 2"):
            code, _, err = self.run_command("sh", "-c", f"{MPIEXEC} {options} sh -c '{where}' > /dev/null")
            self.assertEqual((code, err.split()), (0, ["/dev/null"] * 2))

    def test_a_line_longer_than_any_buffer(self):
        code, out, _ = self.mpiexec("-n", 2, "sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x")
        self.assertEqual((code, out), (0, "x" * 2000000))

    def test_output_and_error_keep_their_order(self):
        file = pathlib.Path(self.directory, "both")
        loop = "for i in 1 2 3; do echo $i; echo $i. >&2; done"
        self.assertEqual(self.run_command("sh", "-c", f"{MPIEXEC} -n 2 sh -c '{loop}' > {file} 2>&1")[0], 0)
        # Lines of one rank cannot be distinguished, so the test can only check that no error line precedes its output line.
        seen = []
        for word in file.read_text().split():
            seen.append(word)
            self.assertLessEqual(seen.count(word.rstrip(".") + "."), seen.count(word.rstrip(".")), seen)
        self.assertEqual(len(seen), 12)

    def test_a_prompt_needs_no_newline(self):
        process = self.popen(MPIEXEC, "-n", 2, "sh", "-c", "[ $STARLING_RANK = 1 ] && exit; printf 'name? '; read x; echo hello $x",
                             stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.read(6), "name? ")
        process.stdin.write("you\n")
        process.stdin.close()
        process.stdin = None
        self.assertEqual((process.stdout.read(), process.wait(LIMIT)), ("hello you\n", 0))

    def test_a_line_that_is_written_over_is_one(self):
        # A rank prints without a pause and without ever ending its line.
        bar = "import os, time\nwhile True: os.write(1, b'\\rbar'); time.sleep(0.01)"
        process = self.popen(MPIEXEC, "-n", 2, sys.executable, "-c", bar)
        self.assertEqual(os.read(process.stdout.fileno(), 4), b"\rbar")
        process.terminate()
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGTERM)

    def test_the_ends_of_lines_that_have_two_characters(self):
        lines = ("import os, time\nlongest = 0\nfor i in range(50):\n    before = time.monotonic(); os.write(1, b'one\\r'); time.sleep(0.002)\n"
                 "    os.write(1, b'\\n'); longest = max(longest, time.monotonic() - before)\nos.write(2, b'%d\\n' % (1000 * longest))")
        # od, because text would lose carriage returns
        out = self.without_pauses("sh", "-c", f'{MPIEXEC} -n 4 {sys.executable} -c "$0" | od -An -v -t x1', lines)
        self.assertEqual(bytes.fromhex(out.replace("\n", "")), b"one\r\n" * 200)

    def test_pieces_of_lines_keep_their_bytes_and_order(self):
        source = random.Random(5)
        text = "".join(source.choices(["\n", "\r", "\r\n", "word", "x" * 3000], [3, 2, 1, 6, 1], k=3000))
        cuts = sorted(source.sample(range(1, len(text)), 400))
        pieces = [text[begin:end] for begin, end in zip([0] + cuts, cuts + [len(text)])]
        file = pathlib.Path(self.directory, "pieces.py")
        file.write_text(f"import os\nfor piece in {pieces!r}:\n    os.write(1, piece.encode())\n")
        process = self.popen(MPIEXEC, "-n", 2, "sh", "-c", f"[ $STARLING_RANK = 1 ] || exec {sys.executable} {file}")
        out = b""
        while piece := os.read(process.stdout.fileno(), 65536):  # bytes, because text would lose carriage returns
            out += piece
        self.assertEqual((out.decode(), process.wait(LIMIT)), (text, 0))

    def test_much_output_enlarges_its_pipe(self):
        process = self.popen(MPIEXEC, "-n", 2, "yes", "a line of a rank")
        held = lambda: struct.unpack("i", fcntl.ioctl(process.stdout.fileno(), termios.FIONREAD, b"\0" * 4))[0]
        deadline = time.monotonic() + LIMIT
        while held() <= 65536 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertGreater(held(), 65536)
        process.terminate()
        while piece := os.read(process.stdout.fileno(), 1 << 16):
            self.assertNotIn(b"ranka", piece)
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGTERM)

    def test_a_rank_that_writes_much_gets_a_larger_pipe(self):
        rank = pathlib.Path(self.directory, "much.py")
        rank.write_text("import fcntl, os\nwhile fcntl.fcntl(1, 1032) <= 65536:  # F_GETPIPE_SZ\n"
                        "    os.write(1, (b'x' * 79 + b'\\n') * 2000)\n")
        # Counts characters, as test_nothing_is_lost does.
        code, out, err = self.run_command("sh", "-c", f"{MPIEXEC} -n 2 {sys.executable} {rank} | wc -c")
        self.assertEqual((code, int(out) % 160000, err), (0, 0, ""))

    def test_last_words_come_before_what_mpiexec_says(self):
        file = pathlib.Path(self.directory, "both")
        self.run_command("sh", "-c", f"{MPIEXEC} -n 2 sh -c '[ $STARLING_RANK = 0 ] && exec sleep 60; seq 1 2000; exit 3' > {file} 2>&1")
        lines = file.read_text().splitlines()
        self.assertEqual(lines[:2000], [str(i) for i in range(1, 2001)])
        self.assertIn("exited with code 3", lines[2000])

    def test_a_full_disk_is_told(self):
        for options in ((), ("-l",)):
            code, _, err = self.run_command("sh", "-c", f"{MPIEXEC} {' '.join(options)} -n 2 echo hello > /dev/full")
            self.assertEqual((code, err.count("\n")), (1, 1), err)
            self.assertRegex(err, "standard output.*No space left on device.*free some space")
            self.assertEqual(self.run_command("sh", "-c", f"{MPIEXEC} {' '.join(options)} -n 2 sh -c 'echo hello >&2' 2> /dev/full")[0], 1)
        code, _, err = self.run_command("sh", "-c", f"{MPIEXEC} -n 2 sh -c 'echo hello; exit 7' > /dev/full")
        self.assertEqual(code, 7)

    def test_a_reader_that_goes_ends_the_job(self):
        for option in ("-l", "-quiet"):
            process = self.popen(MPIEXEC, option, "-n", 2, "yes")
            process.stdout.readline()
            process.stdout.close()
            process.stdout = None
            self.assertEqual(process.wait(LIMIT), 128 + signal.SIGPIPE, option)

    def test_a_reader_of_errors_that_does_not_read_stops_nothing(self):
        process = self.popen(MPIEXEC, "-n", 2, "sh", "-c", "[ $STARLING_RANK = 0 ] || exec yes >&2; while [ ! -e go ]; do sleep 0.02; done; exit 3")
        self.wait_for(lambda: self.named("yes"), "no rank writes")
        with open(f"/proc/{process.pid}/fd/2", "wb", 0) as errors:
            self.wait_for(lambda: not select.select([], [errors], [], 0)[1], "the pipe does not become full")
        pathlib.Path(self.directory, "go").touch()
        self.wait_for(lambda: not self.named("yes"), "the others have not been ended")

        def ended():
            process.terminate()  # the first may come before mpiexec has reaped the ranks, and is then for them
            time.sleep(0.2)
            return process.poll() is not None

        self.wait_for(ended, "mpiexec waits for the reader")
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGTERM)

    def test_a_signal_ends_a_job_whose_output_is_not_read(self):
        self.end_unread_jobs("-l")

    def test_a_reader_that_comes_late_gets_all(self):
        for option in ("-l", "-quiet"):
            process = self.popen(MPIEXEC, option, "-n", 3, "sh", "-c", "yes 0123456789 | head -c 110000")
            self.wait_for(lambda: not self.named("sh") and not self.named("head"), "they still write")
            time.sleep(2.5)
            self.assertEqual(process.communicate(timeout=LIMIT)[0].count("0123456789"), 30000)

    def test_several_on_a_terminal(self):
        for ranks in (1, 2):
            process, terminal = self.on_terminal("-n", ranks, "sh", "-c", "[ -t 1 ] && [ -t 2 ] && echo a terminal")
            self.assertEqual(self.read_terminal(terminal).count("a terminal\r\n"), ranks)
            self.assertEqual(process.wait(LIMIT), 0)
            os.close(terminal)

    def test_a_terminal_that_stops_who_writes_in_the_background(self):
        for ranks in (1, 2):
            process, terminal = self.on_terminal("-n", ranks, "sh", "-c", "echo hello", setting="tostop")
            self.assertEqual(self.read_terminal(terminal).count("hello"), ranks)
            self.assertEqual(process.wait(LIMIT), 0)
            os.close(terminal)

    def test_input_after_a_time_in_the_background(self):
        # Does what a shell does for `mpiexec ... &` and `fg`: it sends no SIGCONT, since nothing was stopped.
        shell = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = subprocess.Popen(sys.argv[1:], preexec_fn=lambda: (os.setpgid(0, 0), signal.signal(signal.SIGTTOU, signal.SIG_DFL)))
job_input = f"/proc/{job.pid}/task/{job.pid}/children"
def name(child):
    try: return open(f"/proc/{child}/comm").read().strip()
    except OSError: return ""  # it has ended
while not any(name(child) == "cat" for child in open(job_input).read().split()): pass
os.tcsetpgrp(0, job.pid)
sys.exit(job.wait())
"""
        process, terminal = self.on_terminal(MPIEXEC, "-n", 1, "cat", command=[sys.executable, "-c", shell])
        os.write(terminal, b"typed\n\x04")
        self.assertEqual(self.read_terminal(terminal).count("typed"), 2)  # the echo, and cat
        self.assertEqual(process.wait(LIMIT), 0)
        os.close(terminal)


class Cores(Case):
    """The cores of new ranks depend on all jobs of this user, so these tests must run alone on the machine."""

    def test_ranks_begin_on_different_cores(self):
        cores = sorted(os.sched_getaffinity(0))
        self.assertGreaterEqual(len(cores), 2, "this needs two cores")
        begins = r"rank (\d) on \S+ begins on core (\d+) and is not bound"
        unbound = r"rank \d on \S+ is not bound"
        for _ in range(10):
            code, out, err = self.mpiexec("--report-bindings", "-n", 2, "sh", "-c", "grep Cpus_allowed_list /proc/self/status")
            self.assertEqual(len(set(out.splitlines())), 1, "no rank is bound")
            found = re.findall(begins, err)
            self.assertEqual([rank for rank, _ in found], ["0", "1"], err)
            self.assertEqual(len({core for _, core in found}), 2, err)
            self.assertTrue(all(int(core) in cores for _, core in found), err)
        code, _, err = self.mpiexec("--report-bindings", "-n", len(cores) + 1, "true")
        self.assertEqual(len(re.findall(unbound + ": there are more ranks than cores", err)), len(cores) + 1, err)
        go = pathlib.Path(self.directory, "go")
        busy = self.popen(MPIEXEC, "-n", len(cores), "sh", "-c", f"echo up; while [ ! -e {go} ]; do sleep 0.02; done")
        for _ in cores:
            self.assertEqual(busy.stdout.readline(), "up\n")
        _, _, err = self.mpiexec("--report-bindings", "-n", 1, "true")
        self.assertRegex(err, unbound + rf": your other jobs have \d+ ranks? on the {len(cores)} cores here\n")
        go.touch()
        busy.communicate(timeout=LIMIT)
        code, _, err = self.mpiexec("--report-bindings", "--bind-to", "none", "-n", 2, "true")
        self.assertEqual(len(re.findall(unbound + "$", err, re.M)), 2, err)
        # A mask narrower than the machine must be kept.
        code, out, _ = self.run_command("taskset", "-c", str(cores[-1]), MPIEXEC, "--report-bindings", "-n", "1", "true")
        self.assertEqual(code, 0)

    def test_jobs_that_are_started_separately_begin_on_different_cores(self):
        self.assertGreaterEqual(len(os.sched_getaffinity(0)), 2, "this needs two cores")
        begins = r"begins on core (\d+) and is not bound"
        first = self.popen(MPIEXEC, "--report-bindings", "-n", 1, "sh", "-c", "echo up; read line", stdin=subprocess.PIPE)
        self.assertEqual(first.stdout.readline().strip(), "up")
        code, _, err = self.mpiexec("--report-bindings", "-n", 1, "true")
        second = re.search(begins, err)
        first.stdin.close()
        first.stdin = None
        _, err_of_first = first.communicate(timeout=LIMIT)
        self.assertTrue(second, err)
        self.assertNotEqual(re.search(begins, err_of_first).group(1), second.group(1))


class Ending(Case):
    def test_exit_codes(self):
        for code in (1, 7, 255):
            got, _, err = self.mpiexec("-n", 3, "sh", "-c", f"[ $STARLING_RANK = 1 ] && exit {code}; sleep 60")
            self.assertEqual(got, code)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertRegex(err, rf"rank 1 \(sh\), process \d+ on \S+, exited with code {code}; ending the other 2")

    def test_killed_rank(self):
        for name in ("SEGV", "KILL", "ABRT", "TERM"):
            code, _, err = self.mpiexec("-n", 4, "sh", "-c", f"[ $STARLING_RANK = 2 ] && kill -{name} $$; sleep 60")
            self.assertEqual(code, 128 + getattr(signal, "SIG" + name))
            self.assertRegex(err, rf"rank 2 .*SIG{name}")

    def test_stubborn_ranks_are_killed(self):
        code, _, _ = self.mpiexec("-n", 3, "sh", "-c", "trap '' TERM; [ $STARLING_RANK = 0 ] && exit 3; while :; do sleep 1; done")
        self.assertEqual(code, 3)

    def test_ranks_may_clean_up(self):
        for _ in range(20):  # on a busy machine, a shell may get no core within the 250 ms that it has
            code, out, _ = self.mpiexec("-n", 2, "sh", "-c", "if [ $STARLING_RANK = 0 ]; then while [ ! -e up ]; do sleep 0.01; done; exit 3; fi; "
                                        "trap 'echo cleaned; exit 0' TERM; echo > up; while :; do sleep 0.01; done")
            self.assertEqual(code, 3)
            os.remove(f"{self.directory}/up")
            if out == "cleaned\n":
                return
        self.fail("rank 1 was killed at once")

    def test_quiet_is_quiet(self):
        self.assertEqual(self.mpiexec("-q", "-n", 2, "false"), (1, "", ""))

    def test_without_finalize(self):
        code, _, err = self.mpiexec("-n", 2, PROBE, "init", "sleep 100", "exit 0")
        self.assertEqual(code, 1)
        self.assertIn("exited without calling MPI_Finalize", err)

    def test_finalized_is_fine(self):
        self.assertEqual(self.mpiexec("-n", 3, PROBE, "init", "finalize"), (0, "", ""))

    def test_the_others_may_finish_after_one_has_finalized_and_failed(self):
        go = pathlib.Path(self.directory, "go")
        process = [PROBE, "init", "finalize", "exit 3", ":", "-n", 2, PROBE, "init", f"await {go}", "print finished", "finalize"]
        for grace, rest in (("600", "the others have 600 s to end (STARLING_EXIT_GRACE)"), ("0", "ending the others")):
            job = self.popen(MPIEXEC, "-n", 1, *process, env=dict(self.environment, STARLING_EXIT_GRACE=grace))
            err = job.stderr.readline()
            self.assertRegex(err, rf"^mpiexec: rank 0 \(\S+\), process \d+ on \S+, exited with code 3; {re.escape(rest)}\n$")
            if grace != "0":
                go.touch()
            self.assertEqual((job.communicate(timeout=LIMIT), job.returncode), (("finished\n" * 2 if grace != "0" else "", ""), 3))
            go.unlink(missing_ok=True)

    def test_one_that_never_finishes_is_ended_then(self):
        code, _, err = self.mpiexec("-n", 1, PROBE, "init", "finalize", "exit 3", ":", "-n", 2, PROBE, "init", "sleep 60000",
                                    env=dict(self.environment, STARLING_EXIT_GRACE="1"))
        self.assertEqual((code, err.count("\n")), (3, 1), err)

    def test_abort(self):
        code, _, err = self.mpiexec("-n", 1, PROBE, "init", "sleep 100", "abort 42", ":", "-n", 2, PROBE, "init", "sleep 60000")
        self.assertEqual(code, 42)
        self.assertRegex(err, r"rank 0 .*called MPI_Abort with code 42; ending the other 2")
        self.assertNotEqual(self.mpiexec(PROBE, "init", "abort 0")[0], 0)

    def test_the_others_are_counted(self):
        for ranks, rest in ((2, "ending the other process"), (3, "ending the other 2")):
            code, _, err = self.mpiexec("-n", ranks, "sh", "-c", "[ $STARLING_RANK = 0 ] && exit 9; sleep 60")
            self.assertEqual((code, err.count("\n")), (9, 1))
            self.assertTrue(err.endswith(f"exited with code 9; {rest}\n"), err)
        for ranks, rest in ((2, "the other process goes on"), (3, "the other 2 go on")):
            go = pathlib.Path(self.directory, f"go{ranks}")
            process = self.popen(MPIEXEC, "--enable-recovery", "-n", ranks, "sh", "-c",
                                 f"[ $STARLING_RANK = 0 ] && exit 9; while [ ! -e {go} ]; do sleep 0.02; done")
            err = process.stderr.readline()
            self.assertTrue(err.endswith(f"exited with code 9; {rest}\n"), err)
            go.touch()
            self.assertEqual(process.communicate(timeout=LIMIT), ("", ""))

    def test_a_wrapped_rank_that_crashes(self):
        wrapper = self.script('"$@"; exit 0')
        code, _, err = self.mpiexec("-n", 1, wrapper, PROBE, "init", "crash", ":", "-n", 1, "sleep", 60)
        self.assertEqual(code, 1)
        self.assertIn("MPI_Finalize", err)

    def test_grandchildren_end_with_a_failed_job(self):
        wrapper = self.script('sleep 60 & setsid sleep 61 & trap "" TERM; [ $STARLING_RANK = 0 ] && sleep 0.2 && exit 5; wait; wait')
        code, _, _ = self.mpiexec("-n", 2, wrapper)
        self.assertEqual(code, 5)
        self.assertEqual(self.left_after(0), {})

    def test_a_number_used_again_is_let_be(self):
        """A rank ends normally, and another process gets its process id before the job fails."""
        rank = self.script('[ $STARLING_RANK = 0 ] && echo $$ > ended && exit 0; until [ -s again ]; do sleep 0.1; done; exit 3', "rank")
        script = self.script(f'''
            {MPIEXEC} -n 2 {rank} & job=$!
            until [ -s ended ] && [ ! -d /proc/$(cat ended) ]; do sleep 0.01; done
            old=$(cat ended)
            for i in $(seq 100); do
                echo $((old - 1)) > /proc/sys/kernel/ns_last_pid
                setsid sleep 60 & stranger=$!
                [ $stranger = $old ] && break
                kill -9 $stranger
            done
            until [ "$(cut -d' ' -f5 /proc/$stranger/stat)" = $stranger ]; do sleep 0.01; done
            echo $stranger $old > again
            wait $job; echo "job $?"
            [ $stranger = $old ] && echo "same number"
            kill -0 $stranger && ! grep -q "State:.Z" /proc/$stranger/status && echo "let be"
            kill -9 $stranger''')
        own_numbers = ["unshare", *([] if os.geteuid() == 0 else ["-Ur"]), "--pid", "--fork", "--kill-child", "--mount-proc"]
        if subprocess.run([*own_numbers, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no right to make a process namespace")
        code, out, err = self.run_command(*own_numbers, script)
        self.assertEqual((code, out), (0, "job 3\nsame number\nlet be\n"), err)

    def test_timeout(self):
        for seconds in (1, 10):
            code, _, err = self.mpiexec("--timeout", seconds, "-n", 2, "sleep", 60)
            self.assertEqual(code, 124)
            self.assertIn(f"after {seconds} s", err)
            if "nanosleep (libc.so.6)\n" in err:
                break  # on a busy machine, the ranks may not have come to it at first
        # The stacks of both are equal, so they are printed once.
        self.assertRegex(err, r"\n---- rank 0 and rank 1 \(sleep\), processes \d+ and \d+\n  state S")
        self.assertEqual((err.count("\n---- rank"), "nanosleep (libc.so.6)\n" in err), (1, True), err)
        self.assertEqual(self.mpiexec("--timeout", 100, "true")[0], 0)

    def test_signals_are_passed_on(self):
        for name in ("INT", "TERM", "HUP", "USR1", "USR2"):
            process = self.popen(MPIEXEC, "-n", 2, "sh", "-c", f"trap 'echo got; exit 0' {name}; echo ready; while :; do sleep 0.01; done")
            for _ in range(2):
                self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(getattr(signal, "SIG" + name))
            out, err = process.communicate(timeout=LIMIT)
            self.assertEqual((process.returncode, out), (0, "got\ngot\n"), name)

    def test_below_nohup_nobody_is_hung_up(self):
        self.hang_up_below_nohup()

    def insist(self, number):
        """Ranks survive one signal; then mpiexec gets more, each soon after the one before, until it kills them."""
        process = self.popen(MPIEXEC, "-n", 2, "sh", "-c", "trap 'echo got' INT TERM; echo ready; while :; do sleep 0.01; done")
        self.assertEqual([process.stdout.readline() for _ in range(2)], ["ready\n"] * 2)
        process.send_signal(number)
        self.assertEqual([process.stdout.readline() for _ in range(2)], ["got\n"] * 2)
        self.assertIsNone(process.poll())

        def killed():
            process.send_signal(number)
            time.sleep(0.2)  # longer than signals may be apart that are taken for one
            return process.poll() is not None

        self.wait_for(killed, "the ranks are not killed")
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGKILL)

    def test_second_interrupt_kills(self):
        self.insist(signal.SIGINT)

    def test_second_termination_kills(self):
        self.insist(signal.SIGTERM)

    def test_a_signal_that_comes_twice_at_once_is_one(self):
        """timeout(1) sends the signal both to its child and to the child's process group. Here both signals come while mpiexec is stopped;
        they differ, because the kernel keeps only one of a kind."""
        for _ in range(10):  # on a busy machine, mpiexec may get no core for 50 ms between the two, which then are two
            process = self.popen(MPIEXEC, "-n", 2, "sh", "-c", "trap 'sleep 0.3; echo got; exit 0' INT TERM; echo ready; while :; do sleep 0.01; done")
            for _ in range(2):
                process.stdout.readline()
            process.send_signal(signal.SIGSTOP)
            self.wait_for(lambda: status(process.pid, "State") == "T", "it is not stopped")
            process.send_signal(signal.SIGINT)
            process.terminate()
            process.send_signal(signal.SIGCONT)
            if (process.communicate(timeout=LIMIT)[0].count("got"), process.returncode) == (2, 0):
                return
        self.fail("the ranks were killed")

    def test_an_ignored_death_of_children(self):
        process = self.popen(MPIEXEC, "-n", 2, "true", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(process.wait(LIMIT), 0)

    def test_stopped_ranks_are_ended(self):
        process = self.popen(MPIEXEC, "-n", 2, "sh", "-c", "echo ready; kill -STOP $$; exec sleep 60")
        for _ in range(2):
            process.stdout.readline()
        self.wait_for(lambda: sum(status(pid, "State") == "T" for pid in marked(self.mark)) == 2, "not stopped")
        process.terminate()
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGTERM)

    def test_terminated_mpiexec(self):
        process = self.popen(MPIEXEC, "-n", 2, "sh", "-c", "echo ready; exec sleep 60")
        for _ in range(2):
            process.stdout.readline()
        process.terminate()
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, err), (128 + signal.SIGTERM, ""))


class Spawning(Case):
    def spawn(self, *actions, n=1):
        return self.mpiexec("-n", n, PROBE, "init", *actions, "finalize")

    def test_children_run(self):
        code, out, _ = self.spawn("spawn 3 true", f"spawn 2 {PROBE} init await~go finalize", "pid go", "wait-child")
        self.assertEqual(code, 0)
        self.assertIn("spawn 0 codes 0 0 text '' size 2 blob parents", out)
        self.assertIn("child state 2", out)

    def test_children_have_what_the_user_set_for_their_parents(self):
        environment = dict(self.environment, A="mine")
        child = "spawn 1 sh -c echo~child~$A-$B-$C"
        code, out, _ = self.mpiexec("-x", "A=1", "-n", 1, "-env", "B", "b", PROBE, "init", child, "finalize", ":",
                                    "-n", 1, "-env", "C", "c", PROBE, "init", child, "finalize", env=environment)
        self.assertEqual(code, 0)
        self.assertEqual(sorted(line for line in out.splitlines() if line.startswith("child")), ["child 1--c", "child 1-b-"])

    def test_by_a_singleton(self):
        code, out, err = self.run_command(PROBE, "init", f"spawn 2 {PROBE} init await~go finalize", "pid go", "wait-child",
                                          "spawn 1 nonesuch", "finalize")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("spawn 0 codes 0 0", out)
        self.assertIn("child state 2", out)
        self.assertRegex(out, r"spawn 53 codes 53 text '.*nonesuch")

    def kill_a_singletons_launcher(self, stopped):
        """Kills the launcher before the singleton's second request; or stops it before, and kills it with the request unread."""
        process = self.popen(PROBE, "init", "spawn 1 true", "print ready", "await go", "spawn 1 true", "publish a b", "finalize")
        while process.stdout.readline() != "ready\n":
            pass
        (server,) = [pid for pid, command in marked(self.mark).items() if "starlingd serve" in command]
        os.kill(server, signal.SIGSTOP if stopped else signal.SIGKILL)
        pathlib.Path(self.directory, "go").touch()
        if stopped:
            time.sleep(0.3)
            os.kill(server, signal.SIGKILL)
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, err), (0, ""), out)
        self.assertIn("spawn 0 codes 0", out)
        self.assertIn("name 0", out)

    def test_a_singletons_killed_launcher_is_replaced(self):
        self.kill_a_singletons_launcher(stopped=False)

    def test_a_request_that_a_killed_launcher_has_not_read_is_repeated(self):
        self.kill_a_singletons_launcher(stopped=True)

    def test_connected_children_end_with_a_parent_that_fails_after_it_has_finalized(self):
        code, out, err = self.spawn(f"spawn 2 {PROBE} init sleep~60000", "finalize", "exit 3")
        self.assertEqual((code, out.count("spawn 0 codes 0 0")), (3, 1), err)

    def test_children_are_in_the_same_universe(self):
        cores = len(os.sched_getaffinity(0))
        child = f"{PROBE} init universe finalize"
        for options, n, size in (([], 1, cores), ([], cores + 3, cores + 3), (["-usize", "77"], 2, 77), (["-usize", "infinite"], 1, 0)):
            code, out, err = self.mpiexec(*options, "-n", n, PROBE, "init", "universe", f"spawn 1 {child}", "wait-child",
                                          f"spawn {cores + 2} {child}", "wait-child", "finalize")
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(re.findall(r"universe (\d+)", out), [str(size)] * n * (1 + 1 + cores + 2), options)
        _, out, _ = self.run_command(PROBE, "init", "universe", f"spawn {cores + 2} {child}", "wait-child", "finalize")
        self.assertEqual(re.findall(r"universe (\d+)", out), [str(cores)] * (cores + 3))

    def test_the_singletons_launcher_outlives_it_for_a_child(self):
        child = self.script("sleep 0.4; echo 1 > survived")
        self.assertEqual(self.run_command(PROBE, "init", f"spawn 1 {child}", "finalize")[0], 0)
        self.assertTrue(os.path.exists(self.directory + "/survived"))  # it held the output open until then

    def test_failures_are_codes(self):
        for request, part in ((f"spawn 3 nonesuch", "nonesuch"), ("spawn-info wdir=/no/dir 3 true", "/no/dir"),
                              ("spawn-info host=far 3 true", "'far'"), ("spawn-info soft=x 3 true", "soft='x'"),
                              ("spawn-info hostfile=/none 3 true", "/none")):
            code, out, err = self.spawn(request)
            self.assertEqual((code, err), (0, ""))
            self.assertRegex(out, r"^spawn 53 codes 53 53 53 text '.*" + re.escape(part))

    def test_more_processes_than_a_job_may_have_are_refused(self):
        for options in ([], ["--launcher-agent", self.script('host=$1; shift; exec sh -c "$* apart $host"', "agent"), "--host", "a:1,b:1"]):
            code, out, err = self.mpiexec(*options, "-n", 1, PROBE, "init", "spawn 1000001 true", "spawn 1 true", "finalize")
            self.assertEqual((code, err), (0, ""))
            refused, granted = out.splitlines()
            self.assertTrue(refused.startswith("spawn 53 codes 53 53"))
            self.assertTrue(refused.endswith(" text 'the spawn has more than a million processes'"))
            self.assertIn("spawn 0 codes 0 ", granted)

    def test_info(self):
        os.mkdir(self.directory + "/sub")
        self.script("pwd > out; echo $A >> out", "sub/tool")
        code, out, _ = self.spawn("spawn-info wdir=sub 1 ./tool")
        self.assertEqual((code, out.split()[:3]), (0, ["spawn", "0", "codes"]))
        self.wait_for(lambda: os.path.exists(self.directory + "/sub/out"), "no child")
        self.script("echo $A > out", "tool")
        self.spawn("spawn-info env=A=5 1 ./tool", "sleep 200")
        self.assertEqual(pathlib.Path(self.directory, "out").read_text(), "5\n")
        self.spawn(f"spawn-info path={self.directory}/sub 1 tool")

    def test_soft(self):
        code, out, _ = self.spawn(f"spawn-info soft=1:3 5 {PROBE} init await~go finalize", "pid go")
        self.assertIn("spawn 0 codes 0 0 0 53 53", out)
        self.assertIn("size 3", out)

    def test_a_failed_child_does_not_fail_its_parent(self):
        code, out, err = self.spawn(f"spawn 1 {PROBE} init await~go crash", "pid go", "wait-child")
        self.assertEqual(code, 0)
        self.assertIn("child state 3 failed rank 0", out)
        self.assertRegex(err, r"rank 0 .* of spawned job \d+, process .*SIGSEGV")

    def test_a_failed_parent_ends_its_children(self):
        code, _, _ = self.mpiexec(PROBE, "init", "spawn 2 sleep 60", "sleep 50", "crash")
        self.assertEqual(code, 128 + signal.SIGSEGV)

    def test_a_killed_singleton_takes_its_children_along(self):
        process = self.popen(PROBE, "init", "spawn 2 sleep 60", "print ready", "sleep 60000")
        while process.stdout.readline() != "ready\n":
            pass
        process.kill()
        process.wait()
        self.assertEqual(self.left_after(), {})

    def test_a_disconnected_child_outlives_a_failed_parent(self):
        survivor = self.script("sleep 0.5; echo 1 > survived")
        code, _, _ = self.mpiexec(PROBE, "init", f"spawn 1 {survivor}", "disconnect", "crash")
        self.assertEqual(code, 128 + signal.SIGSEGV)
        self.assertTrue(os.path.exists(self.directory + "/survived"))  # mpiexec has waited for it

    def test_grandchildren_jobs_go_too(self):
        nested = self.script(f"exec {PROBE} init 'spawn 1 sleep 60' 'sleep 60000'")
        code, _, _ = self.mpiexec(PROBE, "init", f"spawn 1 {nested}", "sleep 300", "crash")
        self.assertEqual(code, 128 + signal.SIGSEGV)

    def test_jobs_that_are_spawned_after_a_signal_end_too(self):
        """A rank spawns after mpiexec has passed on the signal, and then ends in one way or the other."""
        environment = dict(self.environment, STARLING_SIGNAL_GRACE="600")
        for n, end in enumerate(("exit 3", "finalize")):
            process = self.popen(MPIEXEC, "-q", self.script(f"trap '' TERM; exec {PROBE} init 'pid up{n}' 'await go{n}' 'spawn 2 sleep 61' '{end}'"),
                                 env=environment)
            self.files(f"up{n}")
            process.terminate()
            pathlib.Path(self.directory, f"go{n}").touch()
            out, _ = process.communicate(timeout=LIMIT)
            self.assertIn("spawn 0 codes 0 0", out, end)

    def test_no_job_is_spawned_while_ranks_end(self):
        rank = self.script(f"[ $STARLING_RANK = 1 ] && echo $$ > up1 && exec sleep 60; trap '' TERM; exec {PROBE} init 'pid up0' 'await go' 'spawn 2 sleep 61' 'exit 0'")
        process = self.popen(MPIEXEC, "-n", 2, rank, env=dict(self.environment, STARLING_SIGNAL_GRACE="600"))
        self.files("up0", "up1")
        self.wait_for(lambda: len(self.named("sleep")) == 1, "rank 1 does not sleep")
        process.terminate()
        self.assertIn("Another Ctrl-C", process.stderr.readline())  # so mpiexec knows that rank 1 has ended
        pathlib.Path(self.directory, "go").touch()
        self.assertRegex(process.communicate(timeout=LIMIT)[0], "spawn 53 codes 53 53 text 'the job is being ended'")

    def test_no_job_is_spawned_after_another_has_ended_because_of_the_signal(self):
        rank = self.script(f"trap '' TERM; exec {PROBE} init 'spawn 1 sleep 62' 'pid up' 'await go' 'spawn 2 sleep 61' 'exit 0'")
        process = self.popen(MPIEXEC, rank, env=dict(self.environment, STARLING_SIGNAL_GRACE="600"))
        self.files("up")
        self.wait_for(lambda: len(self.named("sleep")) == 1, "the spawned process does not sleep")
        child, = self.named("sleep")
        process.terminate()
        self.wait_for(lambda: not os.path.exists(f"/proc/{child}"), "the spawned process has not ended")
        pathlib.Path(self.directory, "go").touch()
        out, _ = process.communicate(timeout=LIMIT)
        self.assertRegex(out, "spawn 0 codes 0 [^$]*spawn 53 codes 53 53 text 'the job is being ended'")

    def test_mpiexec_waits_for_spawned_jobs(self):
        child = self.script("sleep 0.4; echo late")
        code, out, _ = self.spawn(f"spawn 1 {child}")
        self.assertEqual(code, 0)
        self.assertTrue(out.endswith("late\n"), out)

    def test_many_spawns(self):
        code, out, _ = self.spawn(*["spawn 2 true"] * 50)
        self.assertEqual(code, 0)

    def test_tagged_children(self):
        code, out, _ = self.mpiexec("-l", PROBE, "init", "spawn 2 echo hello", "finalize")
        self.assertIn("[1:0] hello", out)
        self.assertIn("[1:1] hello", out)


class Naming(Case):
    def names(self, *actions, mpiexec=True):
        command = [PROBE, "init", *actions, "finalize"]
        return self.mpiexec(*command)[1] if mpiexec else self.run_command(*command)[1]

    def daemons(self):
        return {pid: c for pid, c in marked(self.mark).items() if "starlingd names" in c}

    def only_daemon(self):
        """Returns the process id of the daemon. One that another has forestalled may exist for a moment longer."""
        self.wait_for(lambda: len(self.daemons()) == 1, "there is not one daemon")
        return next(iter(self.daemons()))

    def test_a_keeper_that_does_not_answer_keeps_nobody(self):
        environment = dict(self.environment, STARLING_SILENCE_MS="4000")
        process = self.popen(MPIEXEC, PROBE, "init", "publish a b", f"pid {self.directory}/up", f"await {self.directory}/go", "publish c d",
                             "lookup a", "finalize", env=environment)
        self.files("up")
        keeper = self.only_daemon()
        os.kill(keeper, signal.SIGSTOP)
        pathlib.Path(self.directory, "go").touch()
        out, _ = process.communicate(timeout=LIMIT)
        os.kill(keeper, signal.SIGCONT)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(len(re.findall(rf"text 'names can't be .* process {keeper}, has not answered within 4000 ms", out)), 2, out)

    def test_a_keeper_that_ends_just_now_is_as_good_as_gone(self):
        ending = socket.socket(socket.AF_UNIX)
        ending.bind(f"\0starling-{os.geteuid()}-names-{self.environment['STARLING_UNIVERSE']}")
        ending.listen()
        thread = threading.Thread(target=lambda: ending.accept()[0].close())
        thread.start()
        code, out, err = self.run_command(str(BUILD / "bin" / "starling"), "daemon", "stop")
        thread.join()
        ending.close()
        self.assertEqual((code, err), (0, ""), out)

    def test_publish_look_up_unpublish(self):
        for with_mpiexec in (True, False):
            out = self.names("publish ocean port-1", "lookup ocean", "publish ocean x", "unpublish ocean", "lookup ocean",
                             "unpublish ocean", mpiexec=with_mpiexec)
            self.assertEqual(re.findall(r"^name (\d+) port '(.*?)'", out, re.M),
                             [("0", ""), ("0", "port-1"), ("51", ""), ("0", ""), ("38", ""), ("51", "")])

    def test_names_are_seen_by_other_jobs_and_go_with_their_own(self):
        server = self.popen(MPIEXEC, PROBE, "init", "publish lake port-2", "print ready", "sleep 60000")
        while server.stdout.readline() != "ready\n":
            pass
        self.assertIn("name 0 port 'port-2'", self.names("lookup lake"))
        self.assertIn("name 51", self.names("unpublish lake"))
        self.only_daemon()
        server.terminate()
        server.wait(LIMIT)
        self.wait_for(lambda: not self.daemons(), "the daemon stays")
        self.assertIn("name 38", self.names("lookup lake"))

    def test_names_of_a_spawned_job_go_with_it(self):
        publisher = self.script(f"exec {PROBE} init 'publish pond p' finalize")
        out = self.names(f"spawn 1 {publisher}", "wait-child", "sleep 50", "lookup pond")
        self.assertIn("name 38", out)

    def test_a_killed_daemon_is_replaced_and_names_are_kept(self):
        server = self.popen(MPIEXEC, PROBE, "init", "publish river port-3", "print ready", "sleep 60000")
        while server.stdout.readline() != "ready\n":
            pass
        for _ in range(3):
            pid = self.only_daemon()
            os.kill(pid, signal.SIGKILL)
            self.wait_for(lambda: self.daemons().keys() - {pid}, "no new daemon")
            self.wait_for(lambda: "port-3" in self.names("lookup river"), "forgotten")

    def test_the_daemon_belongs_to_no_job(self):
        """A daemon started for a job inside a job survives the end of both while another job uses it."""
        inner = self.script(f"{MPIEXEC} {PROBE} init 'publish brook p' 'sleep 60000' & wait")
        outer = self.popen(MPIEXEC, inner)
        self.assertEqual(outer.stdout.readline(), "name 0 port '' text ''\n")
        other = self.popen(MPIEXEC, PROBE, "init", "publish creek q", "print ready", "sleep 60000")
        while other.stdout.readline() != "ready\n":
            pass
        pid = self.only_daemon()
        outer.kill()
        outer.wait()
        self.wait_for(lambda: "name 38" in self.names("lookup brook"), "the name stays")
        self.assertEqual(list(self.daemons()), [pid])
        self.assertIn("port 'q'", self.names("lookup creek"))
        other.terminate()
        other.wait()

    def test_many_start_the_daemon_at_once(self):
        jobs = [self.popen(MPIEXEC, PROBE, "init", f"publish n{i} p{i}", "sleep 200", f"lookup n{(i + 1) % 6}", "finalize")
                for i in range(6)]
        for i, job in enumerate(jobs):
            out = job.communicate(timeout=LIMIT)[0]
            self.assertEqual(job.returncode, 0)
            self.assertIn("name 0 port ''", out)
        self.wait_for(lambda: not self.daemons(), "the daemon stays")

    def test_daemon_command(self):
        starling = BUILD / "bin" / "starling"
        run = lambda verb: self.run_command(starling, "daemon", verb)
        self.assertEqual(run("status")[0], 3)
        self.assertEqual(run("start")[0], 0)
        self.names("publish a b")
        code, out, _ = run("status")
        self.assertEqual(code, 0)
        self.assertIn("stays until stopped", out)
        self.assertEqual(run("start")[0], 0)
        self.only_daemon()
        self.assertEqual(run("stop")[0], 0)
        self.wait_for(lambda: not self.daemons(), "the daemon stays")
        self.assertEqual(run("status")[0], 3)
        self.assertEqual(run("dance")[0], 2)


class Intruding(Case):
    """Data from other users must be rejected and must not disturb jobs."""

    def job(self):
        process = self.popen(MPIEXEC, PROBE, "init", "spawn 1 true", "pid pid", "await go", "spawn 1 true", "publish a b",
                             "lookup a", "finalize")
        self.files("pid")
        names = re.findall(r"@(starling-\d+-%d-\S+)(?<!-memory)\n" % process.pid, pathlib.Path("/proc/net/unix").read_text())
        self.assertTrue(names)
        return process, names[0]

    def finish(self, process):
        pathlib.Path(self.directory, "go").touch()
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(out.count("spawn 0 codes 0"), 2)
        self.assertIn("name 0 port 'b'", out)

    def connect(self, name):
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(LIMIT)
        stream.connect("\0" + name)
        return stream

    def hung_up(self, stream):
        try:
            return stream.recv(1) == b""
        except ConnectionResetError:
            return True

    def frame(self, kind, payload):
        return struct.pack("<III", 0x4c525453, kind, len(payload)) + payload

    def test_garbage(self):
        process, name = self.job()
        random.seed(5)
        for i in range(50):
            with self.connect(name) as stream:
                try:
                    stream.sendall(random.randbytes(random.choice((12, 13, 300, 5000))))
                    self.assertTrue(self.hung_up(stream))
                except BrokenPipeError:
                    pass
        self.finish(process)

    def test_wrong_secrets_and_no_hello(self):
        process, name = self.job()
        environment = pathlib.Path(f"/proc/{self.files('pid')[0]}/environ").read_bytes()
        job = int(re.search(rb"STARLING_JOB=\d+:\d+:(\w+)", environment).group(1), 16)
        spawn = self.frame(2, struct.pack("<II", 0, 0))
        hellos = [b"", self.frame(1, struct.pack("<IQQQI", 1, job, 1, 2, 0)), self.frame(1, struct.pack("<IQQQI", 1, job, 0, 0, 0)),
                  self.frame(1, struct.pack("<IQQQI", 1, job + 1, 0, 0, 0)), self.frame(1, b"short"),
                  self.frame(1, struct.pack("<IQQQI", 99, job, 0, 0, 0))]
        for hello in hellos:
            with self.connect(name) as stream:
                stream.sendall(hello + spawn)
                self.assertTrue(self.hung_up(stream))
        self.finish(process)

    def test_silent_and_many_connections(self):
        process, name = self.job()
        streams = [self.connect(name) for _ in range(200)]
        for stream in streams[:50]:
            stream.sendall(b"STRL")
        self.finish(process)
        for stream in streams:
            stream.close()

    def test_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        process, name = self.job()
        code = ("import os,socket,sys\nos.setgid(65534); os.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(100)\n"
                "s.connect('\\0' + sys.argv[1])\ntry:\n    s.send(b'STRL')\n    sys.exit(0 if s.recv(1) == b'' else 5)\n"
                "except (BrokenPipeError, ConnectionResetError):\n    sys.exit(0)")
        self.assertEqual(subprocess.run([sys.executable, "-c", code, name], timeout=LIMIT).returncode, 0)
        self.finish(process)

    def test_a_name_held_by_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        code = ("import os,socket,sys,time\nos.setgid(65534); os.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\n"
                "s.bind('\\0' + sys.argv[1]); s.listen(); print('up', flush=True); time.sleep(60)")
        holder = self.popen(sys.executable, "-c", code, f"starling-0-names-{self.environment['STARLING_UNIVERSE']}")
        self.assertEqual(holder.stdout.readline(), "up\n")
        out = self.mpiexec(PROBE, "init", "publish a b", "finalize")[1]
        # Root's processes must not trust another user that has bound the name of root's socket.
        self.assertRegex(out, r"name 16 .*another user")
        holder.kill()


    def test_a_name_held_by_another_user_who_takes_nobody(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        code = ("import os,socket,sys,time\nos.setgid(65534); os.setuid(65534)\nkept = []\nfor name in sys.argv[1:]:\n"
                "    s = socket.socket(socket.AF_UNIX); s.bind('\\0' + name); s.listen(0); kept.append(s)\n    try:\n        while True:\n"
                "            s = socket.socket(socket.AF_UNIX); s.setblocking(False); s.connect('\\0' + name); kept.append(s)\n"
                "    except BlockingIOError: pass\nprint('up', flush=True); time.sleep(60)")
        name = f"starling-0-names-{self.environment['STARLING_UNIVERSE']}"
        holder = self.popen(sys.executable, "-c", code, name, name + ".hosts")
        self.assertEqual(holder.stdout.readline(), "up\n")
        self.assertEqual(self.mpiexec("-n", 2, "echo", "there")[:2], (0, "there\nthere\n"))
        self.assertRegex(self.mpiexec(PROBE, "init", "publish a b", "finalize")[1], r"name 16 .*another user")
        private = pathlib.Path(self.directory, "runtime")
        private.mkdir(mode=0o700)
        self.environment["XDG_RUNTIME_DIR"] = str(private)
        self.assertRegex(self.mpiexec(PROBE, "init", "publish a b", "lookup a", "finalize")[1], "port 'b'")
        holder.kill()


class Remaining(Case):
    """Whatever part is killed, nothing is left behind."""

    def tree(self, n=2):
        wrapper = self.script('echo $$ > started.$STARLING_RANK; sleep 60 & (setsid sleep 61 & ); sh -c "sleep 62; :" ; exit 0')
        process = self.popen(MPIEXEC, "-n", n, wrapper)
        self.files(*[f"started.{rank}" for rank in range(n)])
        self.wait_for(lambda: len(marked(self.mark)) >= 1 + n * 4, "not all up")
        return process

    def test_killed_mpiexec(self):
        process = self.tree()
        self.wait_for(lambda: len(guards_of(process.pid)) == 1, "there is not one guard")
        guard = guards_of(process.pid)
        process.kill()
        process.wait()
        self.assertEqual(self.left_after(), {})
        self.wait_for(lambda: gone(guard), "the guard stays")

    def test_killed_mpiexec_and_a_process_whose_first_thread_has_ended(self):
        """The kernel shows the environment of such a process only under the ids of its other threads."""
        threads = self.script(f"""exec {sys.executable} -c '
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print(os.getpid(), file=open("left", "w"), flush=True)
ctypes.CDLL(None).syscall(60, 0)'""", "threads")
        process = self.popen(MPIEXEC, "-n", 1, self.script(f"(setsid {threads} & ); sleep 61; exit 0"))
        self.files("left")
        left = int(pathlib.Path(self.directory, "left").read_text())
        self.wait_for(lambda: "State:\tZ" in pathlib.Path(f"/proc/{left}/status").read_text(), "the first thread does not end")
        process.kill()
        process.wait()
        self.wait_for(lambda: gone({left}) and gone(threads_of(left)), "the process stays")

    def test_killed_group_and_name(self):
        process = self.tree()
        kill_all(pid for pid, command in marked(self.mark).items() if "mpiexec" in command)  # as pkill -9 -f mpiexec would
        process.wait()
        self.assertEqual(self.left_after(), {})

    def test_killed_guard_is_replaced(self):
        process = self.tree()
        for _ in range(3):
            (guard,) = guards_of(process.pid)
            os.kill(guard, signal.SIGKILL)
            self.wait_for(lambda: len(guards_of(process.pid) - {guard}) == 1 and gone({guard}), "no new guard")
        guard = guards_of(process.pid)
        process.kill()
        process.wait()
        self.assertEqual(self.left_after(), {})
        self.wait_for(lambda: gone(guard), "the guard stays")

    def test_guard_keeps_nothing_open(self):
        process = self.popen("sh", "-c", f"{MPIEXEC} -n 1 sleep 60 | cat")
        self.wait_for(lambda: any("sleep" in c and "mpiexec" not in c for c in marked(self.mark).values()), "not up")
        kill_all(pid for pid, command in marked(self.mark).items() if command.startswith(MPIEXEC))
        process.communicate(timeout=LIMIT)  # cat sees the end

    def test_killed_at_random(self):
        random.seed(11)
        for _ in range(25):
            process = self.popen(MPIEXEC, "-n", 3, "sh", "-c", "sleep 60 & sleep 61; :")
            time.sleep(random.uniform(0, 0.03))
            process.kill()
            process.wait()
            self.assertEqual(self.left_after(), {})

    def test_any_part_killed_at_random(self):
        """Kills mpiexec, its guard, a rank, a child of a rank or a spawned job: all others must end."""
        random.seed(int(os.environ.get("LAUNCH_TEST_SEED", "12")))
        wrapper = self.script(f"sleep 60 & {PROBE} init 'spawn 2 sleep 61' 'sleep 60000'")
        for _ in range(int(os.environ.get("LAUNCH_TEST_KILLS", "30"))):
            # Nothing may end only because the time after a signal is over.
            process = self.popen(MPIEXEC, "-q", "-n", 2, wrapper, env=dict(self.environment, STARLING_SIGNAL_GRACE="600"))
            time.sleep(random.uniform(0, 0.08))
            guard = guards_of(process.pid)
            # mpiexec itself is always a candidate: while the kernel sets up its environment, the variable that marks it cannot be read.
            parts = sorted(({process.pid: "mpiexec"} | marked(self.mark)).items()) + [(pid, "guard") for pid in guard]
            pid, name = random.choice(parts)
            kill_all([pid])
            # The death of a helper or of the guard does not end the job; the test then ends it like Ctrl-C.
            if pid != process.pid:
                time.sleep(0.02)
                process.terminate()
            try:
                process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.fail(f"mpiexec hangs after {name} was killed; left: {marked(self.mark)}")
            self.assertEqual(self.left_after(), {}, name)
            self.wait_for(lambda: gone(guard), f"the guard stays after {name} was killed")

    def test_a_killed_outer_job_ends_an_inner_mpiexec(self):
        process = self.popen(MPIEXEC, "sh", "-c", f"echo ready; {MPIEXEC} -n 2 sh -c 'sleep 60; :'; :")
        process.stdout.readline()
        self.wait_for(lambda: sum("sleep 60" in c and "mpiexec" not in c for c in marked(self.mark).values()) >= 2, "not up")
        process.kill()
        process.wait()
        self.assertEqual(self.left_after(), {})

    def test_killed_server_of_a_singleton(self):
        process = self.popen(PROBE, "init", "spawn 2 sleep 60", "print ready", "sleep 1500", "finalize")
        while process.stdout.readline() != "ready\n":
            pass
        kill_all(pid for pid, command in marked(self.mark).items() if "starlingd serve" in command)
        self.wait_for(lambda: not any("sleep 60" in c and "probe" not in c for c in marked(self.mark).values()), "children stay")
        self.assertEqual(process.wait(LIMIT), 0)  # the singleton itself continues

    def test_the_server_of_a_singleton_ends_silently(self):
        code, out, err = self.run_command(PROBE, "init", "spawn 1 true", "finalize")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.left_after(), {})


if __name__ == "__main__":
    if b"__asan_init" in pathlib.Path(MPIEXEC).read_bytes():
        del Starting.test_few_descriptors  # sanitizers need descriptors themselves
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=2)
