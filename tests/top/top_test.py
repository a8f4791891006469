#!/usr/bin/env python3
"""Tests the output of starling top for a job in a known state.

    top_test.py BUILD [TestClass[.test]]...
"""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).resolve()
STARLING, MPIEXEC = str(BUILD / "bin" / "starling"), str(BUILD / "bin" / "mpiexec")
JOB = str(BUILD / "tests" / "top" / "uneven")
RANKS = 3
LIMIT = 240  # seconds for anything


def top(*words):
    result = subprocess.run([STARLING, "top", *words], capture_output=True, text=True, errors="replace", timeout=LIMIT,
                            check=False)
    return result.returncode, result.stdout, result.stderr


def name_of(pid):
    return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()


class WithJob(unittest.TestCase):
    """Runs a job that every test of the class observes."""

    @classmethod
    def setUpClass(cls):
        # Without stream fragments: timing decides whether a large message is sent in fragments, which would count as many packets.
        cls.job = subprocess.Popen([MPIEXEC, "-n", str(RANKS), "-x", "STARLING_STREAM_LIMIT=0", JOB], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        assert cls.job.stdout.readline() == "ready\n"
        # Other jobs may run here: select the one with this launcher.
        cls.id = next(job["id"] for job in cls.seen() if job["launcher"] == cls.job.pid)

    @classmethod
    def tearDownClass(cls):
        cls.job.stdin.close()
        cls.job.stdout.close()
        assert cls.job.wait(LIMIT) == 0

    @staticmethod
    def seen(*words):
        code, out, err = top("--once", "--json", "--interval", "0.4", *words)
        jobs = json.loads(out)["jobs"]
        assert code == (0 if jobs else 1), err
        return jobs

    def mine(self):
        jobs = self.seen(self.id)
        self.assertEqual([job["id"] for job in jobs], [self.id])
        return jobs[0]

    def ranks_when(self, condition):
        """Looks at the ranks until the condition holds; on a busy machine the processes may not have run between two looks."""
        end = time.monotonic() + LIMIT
        while not condition(ranks := self.mine()["ranks"]) and time.monotonic() < end:
            pass
        return ranks


class Shown(WithJob):
    def test_every_process_is_there(self):
        job = self.mine()
        self.assertEqual((job["size"], job["hosts"], job["state"]), (RANKS, 1, "running"))
        self.assertIn("uneven", job["command"])
        self.assertEqual(job["host"], os.uname().nodename)
        self.assertEqual([rank["rank"] for rank in job["ranks"]], list(range(RANKS)))
        for rank in job["ranks"]:
            self.assertEqual(name_of(rank["pid"]), "uneven")

    def test_who_computes_and_who_waits(self):
        # A waiting process wakes ten times a second.
        ranks = self.ranks_when(lambda ranks: ranks[0]["state"] == "computing" and ranks[0]["waiting"] < 0.1 and
                                all(rank["state"] != "computing" and rank["waiting"] > 0.9 for rank in ranks[1:]))
        self.assertEqual(ranks[0]["state"], "computing")
        self.assertLess(ranks[0]["waiting"], 0.1)
        for rank in ranks[1:]:
            self.assertIn(rank["state"], ("asleep", "in MPI"))
            self.assertGreater(rank["waiting"], 0.9)
            self.assertLessEqual(rank["asleep"], rank["waiting"])

    def test_messages_by_path(self):
        ranks = self.mine()["ranks"]
        first = ranks[0]["counters"]
        packets = first["messages_ring"] + first["messages_inbox"]
        # 101 messages to each other rank, plus packets of connections and of the barrier.
        self.assertGreaterEqual(packets, 101 * (RANKS - 1))
        self.assertLess(packets, 101 * (RANKS - 1) + 100)
        self.assertGreater(first["messages_ring"], 0)
        self.assertGreaterEqual(first["bytes_ring"] + first["bytes_inbox"], 400 * (RANKS - 1))
        self.assertEqual(first["connections"], RANKS - 1)
        copied = sum(rank["counters"]["bytes_copied"] for rank in ranks)
        self.assertIn(copied, (0, (RANKS - 1) << 20))  # 0 if the kernel forbids direct copies
        self.assertEqual(first["messages_tcp"] + first["messages_udp"], 0)

    def test_call_phase_cpu_and_memory(self):
        ranks = self.ranks_when(lambda ranks: "call" not in ranks[0] and ranks[1].get("call") and ranks[0]["cores"] > ranks[1]["cores"])
        self.assertEqual([rank.get("phase") for rank in ranks], ["uneven work"] * RANKS)
        self.assertNotIn("call", ranks[0])  # it computes
        self.assertEqual(ranks[1]["call"], "MPI_Barrier")
        self.assertGreater(ranks[0]["cores"], ranks[1]["cores"])
        resident = int(Path(f"/proc/{ranks[0]['pid']}/statm").read_text(encoding="utf-8").split()[1]) * 4
        self.assertAlmostEqual(ranks[0]["memory_kb"], resident, delta=resident / 4)

    def test_looking_changes_nothing(self):
        # When they sleep in the barrier, they have nothing to send.
        self.ranks_when(lambda ranks: all(rank.get("call") == "MPI_Barrier" and rank["state"] == "asleep" for rank in ranks[1:]))
        before, after = self.mine()["ranks"], self.mine()["ranks"]
        for old, new in zip(before, after):
            for name, value in old["counters"].items():
                if name.startswith(("messages", "bytes", "open", "clos", "refused")):
                    self.assertEqual(new["counters"][name], value, name)

    def test_jobs_are_chosen_by_id_and_command(self):
        self.assertEqual(len(self.seen(self.id[:12])), 1)
        self.assertIn(self.id, [job["id"] for job in self.seen("uneven")])
        self.assertEqual(self.seen("no such job"), [])

    def test_text(self):
        code, out, _ = top("--once", "--interval", "0.2", "--totals", self.id)
        self.assertEqual(code, 0)
        lines = out.splitlines()
        head = next(i for i, line in enumerate(lines) if self.id in line)
        self.assertIn("3 ranks on " + os.uname().nodename, lines[head])
        for column in ("rank", "host", "pid", "state", "wait%", "cpu%", "mem", "call", "phase", "conns", "ring msg"):
            self.assertIn(column, lines[head + 1])
        self.assertEqual([line.split()[0] for line in lines[head + 2:head + 2 + RANKS]], ["0", "1", "2"])
        self.assertNotIn("\033", out)

    def test_sorting(self):
        def least():
            code, out, _ = top("--once", "--interval", "0.3", "--sort", "waiting", self.id)
            self.assertEqual(code, 0)
            return [line.split()[0] for line in out.splitlines() if os.uname().nodename[:12] in line and line[:6].strip().isdigit()][-1]

        self.assertTrue(holds_within(LIMIT, lambda: least() == "0"))

    def test_a_command_of_any_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.fsencode(folder) + b"/caf\xe9\x1b[31m"
            shutil.copy("/bin/sleep", name)
            job = subprocess.Popen([MPIEXEC, "-n", "1", name, "60"])
            try:
                commands = []
                while "caf\ufffd?[31m" not in str(commands):
                    self.assertIsNone(job.poll())
                    commands = [seen["command"] for seen in self.seen("caf")]
                self.assertNotIn("\x1b", top("--once", "--interval", "0.2", "caf")[1])
            finally:
                job.terminate()
                job.wait(LIMIT)

    def test_bad_words_are_refused(self):
        for words in (["--sort", "colour"], ["--interval", "0"], ["--interval", "soon"]):
            code, _, err = top("--once", *words)
            self.assertNotEqual(code, 0)
            self.assertIn(words[0], err)


class Screen:
    """starling top in a terminal."""

    def __init__(self, *words, environment=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
            os.execve(STARLING, [STARLING, "top", *words], {**inherited, **(environment or {})})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 130, 0, 0))
        self.text = ""

    def read_until(self, wanted, after=0):
        end = time.monotonic() + LIMIT
        while wanted not in self.text[after:] and time.monotonic() < end:
            if not select.select([self.fd], [], [], 0.2)[0]:
                continue
            try:
                self.text += os.read(self.fd, 1 << 16).decode(errors="replace")
            except OSError:  # the terminal is closed
                break
        return wanted in self.text[after:]

    def press(self, keys):
        at = len(self.text)
        os.write(self.fd, keys.encode())
        return at

    def end(self):
        self.read_until("\033[?1049l")
        code = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return code


class Terminal(WithJob):
    def test_keys(self):
        screen = Screen(self.id, "--interval", "0.3")
        self.assertTrue(screen.read_until("1 job, 3 processes here"), screen.text)
        self.assertTrue(screen.read_until("sort (rank)"))
        self.assertTrue(screen.read_until("sort (waiting)", screen.press("s")))
        self.assertTrue(screen.read_until("ring msg ", screen.press("t")))
        screen.press("q")
        self.assertEqual(screen.end(), 0)
        self.assertTrue(screen.text.endswith("\033[?25h\033[?1049l"), screen.text[-40:])

    def test_help_and_why(self):
        screen = Screen(self.id, "--interval", "0.3")
        self.assertTrue(screen.read_until("?: help"), screen.text)
        self.assertTrue(screen.read_until("select a rank", screen.press("?")))
        self.assertTrue(screen.read_until("sort (rank)", screen.press("x")))
        self.assertTrue(screen.read_until("\033[7m     0", screen.press("g")), "the first rank is marked")
        screen.press("\033[B")  # arrow down
        self.assertTrue(screen.read_until("rank 1 waits in MPI_", screen.press("w")), screen.text[-2000:])
        self.assertTrue(screen.read_until("sort (rank)", screen.press("\033")))
        screen.press("q")
        self.assertEqual(screen.end(), 0)

    def test_no_color(self):
        for environment, colored in (({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({}, True)):
            screen = Screen(self.id, "--interval", "0.2", environment=environment)
            self.assertTrue(screen.read_until("wait%"))
            self.assertTrue(screen.read_until("q: quit"))
            screen.press("q")
            screen.end()
            # Reverse video stays, since it marks the selected rank.
            styles = set(re.findall("\033\\[([0-9;]*)m", screen.text))
            self.assertEqual(bool(styles - {"0", "7"}), colored, (environment, styles))

    def test_no_line_is_wider_than_the_screen(self):
        screen = Screen(self.id, "--interval", "0.2")
        self.assertTrue(screen.read_until("q: quit"))
        at = len(screen.text)
        self.assertTrue(screen.read_until("q: quit", at))
        screen.press("q")
        screen.end()
        picture = screen.text[at:screen.text.rindex("q: quit")]
        for line in picture.replace("\r", "").split("\n"):
            while "\033[" in line:
                start = line.index("\033[")
                end = start + 2
                while not line[end].isalpha():
                    end += 1
                line = line[:start] + line[end + 1:]
            self.assertLessEqual(len(line), 130, line)

    def test_a_signal_ends_it_and_restores_the_terminal(self):
        screen = Screen(self.id)
        self.assertTrue(screen.read_until("q: quit"))
        os.kill(screen.pid, signal.SIGINT)
        self.assertEqual(screen.end(), 0)
        self.assertTrue(screen.text.endswith("\033[?25h\033[?1049l"), screen.text[-40:])


    def test_a_stop_gives_the_terminal_back(self):
        screen = Screen(self.id, "--interval", "0.2")
        self.assertTrue(screen.read_until("q: quit"))
        screen.press("\x1a")
        self.assertTrue(os.WIFSTOPPED(os.waitpid(screen.pid, os.WUNTRACED)[1]))
        self.assertTrue(screen.read_until("\033[?25h\033[?1049l"), screen.text[-40:])
        self.assertEqual(termios.tcgetattr(screen.fd)[3] & (termios.ICANON | termios.ECHO), termios.ICANON | termios.ECHO)
        at = len(screen.text)
        os.kill(screen.pid, signal.SIGCONT)
        self.assertTrue(screen.read_until("\033[?1049h", at))
        self.assertTrue(screen.read_until("q: quit", at))
        screen.press("q")
        self.assertEqual(screen.end(), 0)


class Wording(unittest.TestCase):
    def test_one_rank_is_no_plural(self):
        with subprocess.Popen([MPIEXEC, "-n", "1", "sleep", str(LIMIT)]) as job:
            try:
                until = time.monotonic() + LIMIT
                while " rank" not in (out := top("--once", "--interval", "0.1", f"sleep {LIMIT}")[1]) and time.monotonic() < until:
                    pass
            finally:
                job.terminate()
        self.assertIn("  1 rank on ", out)


def holds_within(seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def runs(pid):
    """Returns whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class OtherHosts(unittest.TestCase):
    def test_agents_that_talk_without_end(self):
        """One that has printed a megabyte of other text is not read any longer: each piece takes long on a busy machine."""
        for agent in ("yes", "cat /dev/zero", "head -c 2000000 /dev/zero; exec sleep 1000"):
            with tempfile.TemporaryDirectory() as folder:
                script = Path(folder, "agent")
                script.write_text(f"#!/bin/sh\ntrap '' TERM\n{agent}\n", encoding="utf-8")
                script.chmod(0o755)
                for command in (["why"], ["top", "--once", "--interval", "0.1"]):
                    result = subprocess.run([STARLING, *command, "--host", "faraway"], capture_output=True, text=True, timeout=LIMIT,
                                            env={**os.environ, "STARLING_LAUNCHER_AGENT": str(script)}, check=False)
                    self.assertIn("faraway: the agent prints without end", result.stdout + result.stderr)

    def test_agents_end_with_a_starling_that_is_killed(self):
        """As mpiexec's end kills the diagnosis that runs at that moment."""
        with tempfile.TemporaryDirectory() as folder:
            script, number = Path(folder, "agent"), Path(folder, "pid")
            script.write_text(f"#!/bin/sh\necho $$ > {number}.new\nmv {number}.new {number}\nexec sleep 1000\n", encoding="utf-8")
            script.chmod(0o755)
            with subprocess.Popen([STARLING, "why", "--host", "faraway"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env={**os.environ, "STARLING_LAUNCHER_AGENT": str(script)}) as asking:
                self.assertTrue(holds_within(LIMIT, number.exists))
                asking.kill()
            agent = int(number.read_text(encoding="utf-8"))
            try:
                self.assertTrue(holds_within(LIMIT, lambda: not runs(agent)), f"the agent {agent} is left")
            finally:
                if runs(agent):
                    os.kill(agent, signal.SIGKILL)

    def test_a_carriage_return_of_the_agent_is_not_shown(self):
        """ssh ends its own lines with one."""
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "agent")
            script.write_text("#!/bin/sh\nprintf 'ssh: no such host\\r\\n' >&2\nexit 255\n", encoding="utf-8")
            script.chmod(0o755)
            for command in (["why"], ["top", "--once", "--interval", "0.1"]):
                result = subprocess.run([STARLING, *command, "--host", "faraway"], capture_output=True, text=True, timeout=LIMIT,
                                        env={**os.environ, "STARLING_LAUNCHER_AGENT": str(script)}, check=False)
                # Jobs of other tests may have other hosts, which are listed behind this one.
                self.assertRegex(result.stdout + result.stderr, "faraway: ssh: no such host(;|\n|$)")

    def test_a_host_is_not_taken_as_the_agent(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("ssh", "faraway"):
                Path(folder, name).write_text("#!/bin/sh\necho this is ${0##*/} >&2\n", encoding="utf-8")
                Path(folder, name).chmod(0o755)
            for agent in ("", " "):
                result = subprocess.run([STARLING, "why", "--host", "faraway"], capture_output=True, text=True, timeout=LIMIT, check=False,
                                        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "STARLING_LAUNCHER_AGENT": agent})
                self.assertIn("faraway: this is ssh", result.stdout + result.stderr)

    def test_an_agent_is_found_in_a_relative_directory_of_the_path(self):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "an-agent")
            script.write_text("#!/bin/sh\necho it was found >&2\n", encoding="utf-8")
            script.chmod(0o755)
            result = subprocess.run([STARLING, "why", "--host", "faraway"], capture_output=True, text=True, timeout=LIMIT, cwd=folder,
                                    env={**os.environ, "PATH": f".:{os.environ['PATH']}", "STARLING_LAUNCHER_AGENT": "an-agent"}, check=False)
            self.assertIn("faraway: it was found", result.stdout + result.stderr)

    def test_why_asks_the_hosts_of_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            # The host answers with what it saw of a job that this host does not know any more.
            with subprocess.Popen([MPIEXEC, "-n", str(RANKS), JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
                self.assertEqual(job.stdout.readline(), "ready\n")
                name = next(seen["id"] for seen in WithJob.seen() if seen["launcher"] == job.pid)
                for file, words in (("top", ["top", "--once", "--json", "--interval", "0.2"]), ("why", ["why", "--raw", "--here"])):
                    with Path(folder, file).open("w", encoding="utf-8") as out:
                        subprocess.run([STARLING, *words, name], stdout=out, timeout=LIMIT, check=True)
                job.stdin.close()
                self.assertEqual(job.wait(LIMIT), 0)
            script = Path(folder, "agent")
            script.write_text(f'#!/bin/sh\ncase "$*" in *--raw*) cat {folder}/why;; *) cat {folder}/top; exec sleep {LIMIT};; esac\n',
                              encoding="utf-8")
            script.chmod(0o755)
            screen = Screen(name, "--host", "faraway", "--interval", "0.3", environment={"STARLING_LAUNCHER_AGENT": str(script)})
            self.assertTrue(screen.read_until("\033[7m     0"), screen.text)
            self.assertTrue(screen.read_until("rank 0 computes", screen.press("w")), screen.text[-2000:])
            self.assertTrue(screen.read_until("sort (rank)", screen.press("\033")))
            screen.press("q")
            self.assertEqual(screen.end(), 0)


class Ending(unittest.TestCase):
    def test_a_job_that_has_ended_is_gone(self):
        job = subprocess.run([MPIEXEC, "-n", "2", JOB], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=LIMIT,
                             check=True)
        self.assertEqual(job.stdout, b"ready\n")
        code, out, _ = top("--once", "--json", "--interval", "0.1", JOB)
        self.assertEqual((code, json.loads(out)["jobs"]), (1, []))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
