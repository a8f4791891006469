#!/usr/bin/env python3
"""Tests mpiexec over several pretended hosts: the agent runs each daemon on this machine, under the given name.

    hosts_test.py BUILD [TestClass[.test]]...

Tests that need real hosts (networks, namespaces, cables) are in tests/lab.
"""

import collections
import contextlib
import os
import pathlib
import re
import signal
import socket
import sys
import time
import unittest

from launcher_test import BUILD, LIMIT, MPIEXEC, PIECES, PROBE, Case, kill_all, marked, status

STARLING = str(BUILD / "bin" / "starling")


class HostsCase(Case):
    def setUp(self):
        super().setUp()
        # FAKE_HOST contains each host's name, so that programs know their host.
        self.agent = self.script('case $1 in *.example) echo "no route to $1" >&2; exit 255;; esac\n'
                                 'FAKE_HOST=$1; export FAKE_HOST; shift; exec sh -c "$* apart ${FAKE_HOST%-ib}"', "agent")
        self.environment["STARLING_LAUNCHER_AGENT"] = self.agent

    def over(self, hosts, *arguments, **options):
        return self.mpiexec("--host", hosts, *arguments, **options)

    def nodes(self):
        return {pid for pid, command in marked(self.mark).items() if "starlingd node" in command}

    def both_daemons(self):
        # The agent's process waits until its daemon is connected, and may exist a moment longer.
        self.wait_for(lambda: len(self.nodes()) == 2, "there are not two daemons")
        return self.nodes()

    def kill_a_daemon(self, which):
        os.kill(which(self.both_daemons()), signal.SIGKILL)

    def guards(self):
        return {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if status(pid, "Name") == "starling-guard"}


class Starting(HostsCase):
    def test_placement(self):
        show = ("sh", "-c", "echo $STARLING_RANK $FAKE_HOST")
        cases = (("a:2,b:1", ["-n", 3], "aab"), ("a:2,b:2", ["-n", 3, "--map-by", "node"], "aba"),
                 ("a:9,b:9", ["-ppn", 2], "aabb"), ("a:1,b:1", ["-n", 4], "abab"), ("b,a", ["-ppn", 1, "-n", 3], "bab"))
        for hosts, options, where in cases:
            code, out, err = self.over(hosts, *options, *show)
            self.assertEqual((code, err), (0, ""), hosts)
            self.assertEqual([line.split()[1] for line in sorted(out.splitlines())], list(where), (hosts, options))

    def test_a_hostfile_and_several_commands(self):
        path = pathlib.Path(self.directory, "hosts")
        path.write_text("a slots=1\nb:2 # two\n")
        code, out, _ = self.mpiexec("--hostfile", path, "-n", 3, "sh", "-c", "echo $FAKE_HOST")
        self.assertEqual((code, sorted(out.split())), (0, ["a", "b", "b"]))
        code, out, _ = self.mpiexec("--host", "a", "sh", "-c", "echo one $FAKE_HOST", ":", "--host", "b", "-n", 2, "sh", "-c",
                                    "echo two $FAKE_HOST")
        self.assertEqual((code, sorted(out.splitlines())), (0, ["one a", "two b", "two b"]))

    def test_a_list_of_very_many_hosts(self):
        """An algorithm that compares all pairs, or scans all hosts to count slots, would exceed the test's time limit."""
        path = pathlib.Path(self.directory, "hosts")
        path.write_text("".join(f"node{i}.example\n" for i in range(40000)))
        code, _, err = self.mpiexec("--hostfile", path, "-n", 1, "true")
        self.assertNotEqual(code, 0)
        self.assertRegex(err, r"host node\d+\.example: no route to node")

    def test_a_rank_file(self):
        path = pathlib.Path(self.directory, "ranks")
        show = ("sh", "-c", "echo $STARLING_RANK $FAKE_HOST")
        path.write_text("# mixed\nrank 2=a slot=0:1\nrank 0=b slot=1\n\nrank 1 = a\nrank 3=b slot=0-1 # last\n")
        for options in ((), ("-n", 4), ("--host", "a:1,b:1,c:9"), ("-np", "4", "--map-by", "slot")):
            code, out, err = self.mpiexec("--rankfile", path, *options, *show)
            self.assertEqual((code, err), (0, ""), options)
            self.assertEqual(sorted(out.splitlines()), ["0 b", "1 a", "2 a", "3 b"], options)
        code, out, _ = self.mpiexec("-rf", path, "-n", 1, *show, ":", "-n", 3, *show)
        self.assertEqual((code, sorted(out.splitlines())), (0, ["0 b", "1 a", "2 a", "3 b"]))
        path.write_text("rank 0=+n1\nrank 1=+n0\n")
        code, out, _ = self.mpiexec("-rf", path, "--host", "a,b", *show)
        self.assertEqual((code, sorted(out.splitlines())), (0, ["0 b", "1 a"]))

    def test_a_wrong_rank_file_is_explained(self):
        path = pathlib.Path(self.directory, "ranks")
        right = "rank 0=a\nrank 1=b\n"
        cases = (("", (), "names no rank"), ("rank 0=a\nrank 2=b\n", (), "has no line for rank 1"),
                 (right + "rank 0=b\n", (), "line 3: rank 0 already has a host, a"), ("rank 0 a\n", (), "line 1: 'rank 0 a' is not of"),
                 ("rank 0=a slot=x\n", (), "line 1: .* is not of"), ("rank 9999999=a\n", (), "at most a million"),
                 (right, ("-n", 3), "has no line for rank 2"), (right, ("-n", 1), "is for 2 ranks, and the job has 1"),
                 (right, ("--host", "a"), "rank 1: host b is not one of the hosts of --host"),
                 ("rank 0=+n0\n", (), "these name none"),
                 ("rank 0=+n2\n", ("--host", "a,b"), r"\+n0 to \+n1"), (right, ("-ppn", 1, "-n", 2), "leave out -ppn and --map-by node"))
        for text, options, why in cases:
            path.write_text(text)
            code, out, err = self.mpiexec("-rf", path, *options, "true")
            self.assertNotEqual(code, 0, text)
            self.assertRegex(err, why)
            self.assertEqual(err.count("\n"), 1, err)
        self.assertRegex(self.mpiexec("-rf", "/no/such/file", "true")[2], "cannot read the rank file '/no/such/file': No such file")

    def test_ranks_of_one_job_have_a_segment_per_host(self):
        code, out, _ = self.over("a:2,b:2", "-n", 4, "sh", "-c", "echo $STARLING_JOB")
        self.assertEqual(code, 0)
        jobs = [line.rpartition(":") for line in out.split()]
        self.assertEqual((len({j[0] for j in jobs}), len({j[2] for j in jobs})), (2, 1))

    def test_encrypted(self):
        environment = dict(self.environment, STARLING_ENCRYPTION="on")
        code, out, err = self.over("a:2,b:2,c:2", "-n", 6, "sh", "-c", "echo $STARLING_RANK $FAKE_HOST", env=environment)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(sorted(out.splitlines()), ["0 a", "1 a", "2 b", "3 b", "4 c", "5 c"])

    def test_this_machine_takes_part(self):
        code, out, _ = self.over("localhost:1,b:1", "-n", 2, "sh", "-c", "echo ${FAKE_HOST:-here}")
        self.assertEqual((code, sorted(out.split())), (0, ["b", "here"]))

    def test_one_machine_under_two_names_is_one_host(self):
        show = ("sh", "-c", "echo ${STARLING_JOB%:*} $FAKE_HOST")
        for hosts, processes in (("a:1,a-ib:1", 2), ("a-ib:1,b:1,a:2", 4)):
            code, out, err = self.over(hosts, "-n", processes, "-v", *show)
            self.assertEqual(code, 0, err)
            where = [line.split()[1][0] for line in out.splitlines()]
            self.assertEqual((len(set(out.splitlines())), where.count("a")), (len(set(where)), 2 if processes == 2 else 3), out)
            self.assertRegex(err, "(a is the same machine as a-ib|a-ib is the same machine as a)")
        # The agent runs its command on mpiexec's own machine, whatever host it is given.
        agent = self.script('shift; exec sh -c "$*"', "here")
        code, out, err = self.over("Elsewhere:1,LOCALHOST:1", "--launcher-agent", agent, "-n", 2, "sh", "-c", "echo $STARLING_JOB")
        self.assertEqual((code, err, len(set(out.splitlines()))), (0, "", 1))

    def test_names_have_no_case(self):
        code, out, err = self.mpiexec("--host", "LocalHost:2", "-v", "-n", 2, "echo", "here")
        self.assertEqual((code, out), (0, "here\nhere\n"))
        self.assertIn("by mpiexec itself", err)
        code, out, _ = self.over("a:1,A:1", "-n", 2, "sh", "-c", "echo $FAKE_HOST")
        self.assertEqual((code, out), (0, "a\na\n"))

    def test_the_way_is_told(self):
        code, _, err = self.over("a,b", "--verbose", "-n", 2, "true")
        self.assertEqual(code, 0)
        self.assertRegex(err, r"daemons on 2 hosts through the agent: no standing daemons run")
        code, _, err = self.over("localhost", "--verbose", "true")
        self.assertIn("by mpiexec itself: all processes are on this machine", err)

    def test_environment_and_directory(self):
        environment = dict(self.environment, A="1", B="2")
        show = 'echo "$A-$B-$C-$STARLING_WAIT-$PWD"'
        agent = self.script('shift; exec env -i LAUNCH_TEST="$LAUNCH_TEST" PATH=/usr/bin:/bin sh -c "$* apart far"', "bare")
        directory = os.path.realpath(self.directory)
        code, out, _ = self.over("far", "--launcher-agent", agent, "-x", "A", "-env", "C", "3", "--set", "wait=poll",
                                 "sh", "-c", show, env=environment)
        self.assertEqual((code, out), (0, f"1--3-poll-{directory}\n"))
        code, out, _ = self.over("far", "--launcher-agent", agent, "-genvall", "-wdir", "/usr", "sh", "-c", show, env=environment)
        self.assertEqual((code, out), (0, "1-2---/usr\n"))

    def test_settings_of_other_launchers_are_ignored_and_said_so(self):
        code, out, err = self.over("a", "--mca", "btl", "tcp,self", "--map-by", "slot:SPAN", "echo", "ran")
        self.assertEqual((code, out, err.count("\n")), (0, "ran\n", 2))
        self.assertIn("btl tcp,self", err)

    def test_the_placement_within_each_host_is_that_of_mpiexec(self):
        cpus = sorted(os.sched_getaffinity(0))
        self.assertGreaterEqual(len(cpus), 2, "this needs two cores")
        show = 'echo $FAKE_HOST $(grep Cpus_allowed_list /proc/self/status)'
        one = str(cpus[1])
        code, out, err = self.over("a:1,b:1", "--display-map", "--report-bindings", "--cpu-list", one, "-n", 2, "sh", "-c", show)
        self.assertEqual((code, sorted(out.splitlines())), (0, [f"a Cpus_allowed_list: {one}", f"b Cpus_allowed_list: {one}"]), err)
        for host, rank in (("a", 0), ("b", 1)):
            self.assertIn(f"host {host} has rank {rank} of 2\n", err)
            self.assertRegex(err, rf"mpiexec: rank {rank} on \S+ is bound to (core|cpus) {one}\b")
        code, _, err = self.over("a:1,b:1", "--map-by", f":PE={len(cpus) + 1}", "-n", 2, "true")
        self.assertNotEqual(code, 0)
        self.assertIn(f"each process needs {len(cpus) + 1} cores", err)

    def test_ranks_are_numbered_otherwise_than_placed(self):
        for options, expected in ((("--rank-by", "node"), ["a 0", "a 2", "b 1"]), (("--map-by", "node", "--rank-by", "slot"), ["a 0", "a 1", "b 2"]),
                                  (("--bynode",), ["a 0", "a 2", "b 1"]), (("--map-by", "ppr:2:node"), ["a 0", "a 1", "b 2"])):
            code, out, err = self.over("a:2,b:1", *options, "-n", 3, "sh", "-c", "echo $FAKE_HOST $STARLING_RANK")
            self.assertEqual((code, sorted(out.splitlines())), (0, expected), (options, err))

    def test_an_unreachable_host_is_named(self):
        for hosts in ("far.example", "a,far.example,b"):
            code, out, err = self.over(hosts, "-n", 3, "echo", "ran")
            self.assertNotEqual(code, 0)
            self.assertEqual(out, "")
            self.assertRegex(err, r"far\.example.*no route to far\.example")
        code, _, err = self.mpiexec("--launcher-agent", "/no/such/agent", "--host", "a", "true")
        self.assertNotEqual(code, 0)
        self.assertIn("/no/such/agent", err)

    def test_a_program_that_is_missing_on_one_host_ends_all(self):
        agent = self.script('host=$1; shift; [ $host = b ] && PATH=/nowhere && export PATH; exec /bin/sh -c "$* apart $host"', "uneven")
        directory = pathlib.Path(self.directory, "elsewhere")
        directory.mkdir()
        code, out, err = self.over("a:1,b:1", "--launcher-agent", agent, "-n", 1, "sleep", 60, ":", "-n", 1, "./nonesuch")
        self.assertEqual((code, out, err.count("\n")), (127, "", 1))
        self.assertRegex(err, r"'\./nonesuch'.*No such file.*on host b")


class Windows(HostsCase):
    def test_memory_where_windows_were(self):
        program = str(BUILD / "tests" / "mpi" / "window_freed")
        code, out, err = self.over("a:2,b:2", "-n", 4, program)
        self.assertEqual((code, err), (0, ""), out)

    def test_the_lock_of_a_target_that_computes(self):
        program = str(BUILD / "tests" / "mpi" / "window_far_lock")
        code, out, err = self.over("a:2,b:1", "-n", 3, program)
        self.assertEqual((code, err), (0, ""), out)


class Revocations(HostsCase):
    """One rank revokes an object for which the others wait."""

    def expect_success(self, name):
        for hosts in ("a:2,b:1", "a:1,b:2"):
            code, out, err = self.over(hosts, "-n", 3, BUILD / "tests" / "mpi" / name)
            self.assertEqual((code, err), (0, ""), out)

    def test_communicators(self):
        self.expect_success("ulfm_revoke")

    def test_windows(self):
        self.expect_success("ulfm_window")

    def test_files(self):
        self.expect_success("ulfm_file")


class Streams(HostsCase):
    def test_output_of_all_hosts_is_whole(self):
        code, out, _ = self.over("a:2,b:2", "-n", 4, "sh", "-c", "seq 1 20000; echo no newline >&2 | printf end$STARLING_RANK")
        # Counts characters: a line is split if its rank gets no core for a second between two blocks.
        whole = "".join(f"{i}\n" for i in range(1, 20001)) * 4 + "end0end1end2end3"
        self.assertEqual((code, collections.Counter(out)), (0, collections.Counter(whole)))

    def test_tagged_lines(self):
        code, out, err = self.over("a,b", "-ppn", 1, "-n", 2, "-l", "sh", "-c", 'printf "x\\ny"; echo e >&2')
        self.assertEqual((code, sorted(out.splitlines())), (0, ["[0] x", "[0] y", "[1] x", "[1] y"]))
        self.assertEqual(sorted(err.splitlines()), ["[0] e", "[1] e"])

    def test_a_slow_reader_holds_the_ranks_back(self):
        file = pathlib.Path(self.directory, "written")
        process = self.popen(MPIEXEC, "--host", "a", "-n", 1, "sh", "-c",
                             f"i=0; while [ $i -lt 100 ]; do head -c 100000 /dev/zero; i=$((i+1)); echo $i > {file}; done")
        self.wait_for(lambda: file.exists() and file.read_text(), "nothing was written")
        seen = -1
        while seen != (now := int(file.read_text() or 0)):
            seen = now
            time.sleep(0.5)
        self.assertLess(seen, 30)  # about a megabyte is in transit, not ten
        self.assertEqual(len(process.communicate(timeout=LIMIT)[0]), 10000000)

    def test_nothing_is_lost_on_a_reader_that_comes_late(self):
        process = self.popen(MPIEXEC, "--host", "a", "-n", 1, "sh", "-c", "head -c 250000 /dev/zero")
        self.wait_for(lambda: not any(command.startswith("head") for command in marked(self.mark).values()), "it still writes")
        time.sleep(3)
        self.assertEqual(len(process.communicate(timeout=LIMIT)[0]), 250000)

    def test_a_full_disk_is_told(self):
        code, _, err = self.run_command("sh", "-c", f"{MPIEXEC} --host a,b -n 2 echo hello > /dev/full")
        self.assertEqual((code, err.count("\n")), (1, 1), err)
        self.assertIn("No space left on device", err)

    def test_a_reader_that_goes_ends_the_job(self):
        process = self.popen(MPIEXEC, "--host", "a,b", "-n", 2, "yes")
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGPIPE)
        self.assertIn("standard output has no reader any more", process.stderr.read())

    def test_a_signal_ends_a_job_whose_output_is_not_read(self):
        self.end_unread_jobs("--host", "a,b")

    def test_lines_come_whole_whatever_their_pieces(self):
        out = self.without_pauses(MPIEXEC, "--host", "a:2,b:2", "-n", 4, sys.executable, "-c", PIECES, 100, 1)
        self.assertEqual(sorted(out.splitlines()), sorted([f"rank says {i} and {i} again" for i in range(100)] * 4))

    def test_input_goes_to_rank_0_wherever_it_is(self):
        text = "line\n" * 40000
        code, out, _ = self.over("a:1,b:1", "-n", 2, "wc", "-l", input=text)
        self.assertEqual((code, sorted(out.split())), (0, ["0", "40000"]))
        code, out, _ = self.over("a", "sh", "-c", "read x; echo got $x", input="one\nmore\n")
        self.assertEqual((code, out), (0, "got one\n"))

    def test_input_from_a_file(self):
        path = pathlib.Path(self.directory, "text")
        path.write_text("abc\n" * 30000)
        with open(path) as stream:
            code, out, _ = self.over("a,b", "-n", 1, "cat", stdin=stream)
        self.assertEqual((code, out), (0, path.read_text()))


class Ending(HostsCase):
    def test_exit_codes(self):
        code, _, err = self.over("a:2,b:2", "-n", 4, "sh", "-c", "[ $STARLING_RANK = 3 ] && exit 9; sleep 60")
        self.assertEqual((code, err.count("\n")), (9, 1))
        self.assertRegex(err, r"rank 3 \(sh\).*exited with code 9; ending the others")

    def test_a_killed_rank(self):
        code, _, err = self.over("a:1,b:1", "-n", 2, "sh", "-c", "[ $STARLING_RANK = 1 ] && kill -SEGV $$; sleep 60")
        self.assertEqual(code, 128 + signal.SIGSEGV)
        self.assertIn("SIGSEGV", err)

    def test_abort(self):
        code, _, err = self.over("a:1,b:1", "-n", 2, PROBE, "init", "abort 5")
        self.assertEqual(code, 5)
        self.assertIn("called MPI_Abort with code 5", err)

    def test_signals_are_passed_on(self):
        process = self.popen(MPIEXEC, "--host", "a:1,b:1", "-n", 2, "sh", "-c",
                             f"trap 'echo told; exit 0' USR1; echo 1 > {self.directory}/up$STARLING_RANK; while :; do sleep 0.05; done")
        self.files("up0", "up1")
        process.send_signal(signal.SIGUSR1)
        out, _ = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, out), (0, "told\ntold\n"))

    def test_who_is_left_alone_by_the_dead_and_the_ended_waits_for_none(self):
        program = str(BUILD / "tests" / "mpi" / "recover_alone")
        code, out, _ = self.over("a:2,b:1", "--timeout", 100, "--enable-recovery", "-n", 3, program)
        self.assertEqual((code, out), (128 + signal.SIGKILL, "every call has ended\n"))

    def test_dead_ranks_of_all_hosts_are_replaced(self):
        program = str(BUILD / "tests" / "mpi" / "replace")
        for first, second in (("0", "0"), ("4", "3"), ("0,2,4", "1,2")):
            with self.subTest(first=first, second=second):
                code, out, err = self.over("a:2,b:2,c:1", "--timeout", 100, "--enable-recovery", "-n", 5, program, first, second)
                self.assertEqual((code, out), (128 + signal.SIGKILL, "all 5 ranks are there again\n"), err)

    def test_deaths_while_ranks_of_all_hosts_are_replaced(self):
        program = str(BUILD / "tests" / "mpi" / "replace_kills")
        for seed in range(1, 7):
            with self.subTest(seed=seed):
                code, out, err = self.over("a:2,b:2,c:1", "--timeout", 100, "--enable-recovery", "-n", 5, program, seed)
                self.assertEqual((code, out), (128 + signal.SIGKILL, "all ranks are there again\n"), err)

    def test_to_hang_up_ends_all(self):
        process = self.popen(MPIEXEC, "--host", "a:1,b:1", "-n", 2, "sh", "-c", f"echo 1 > {self.directory}/up$STARLING_RANK; exec sleep 60")
        self.files("up0", "up1")
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGHUP)

    def test_below_nohup_nobody_is_hung_up(self):
        self.hang_up_below_nohup("--host", "a:1,b:1")

    def test_a_job_is_suspended_everywhere_and_for_as_long_as_one_likes(self):
        environment = dict(self.environment, STARLING_SILENCE_MS="5000", STARLING_HEARTBEAT_MS="100", STARLING_REATTACH_MS="500")
        go = pathlib.Path(self.directory, "go")
        os.mkfifo(go)
        # Ranks must not be shells that start children: a process in vfork cannot be stopped before its child's exec.
        process = self.popen(MPIEXEC, "--host", "localhost:1,a:1,b:1,c:1", "-n", 3, "sh", "-c",
                             f"echo $$ > {self.directory}/up$STARLING_RANK; exec cat {go}", env=environment)
        ranks = [int(pid) for pid in self.files("up0", "up1", "up2")]
        for _ in range(2):
            process.send_signal(signal.SIGTSTP)
            for pid in (process.pid, *ranks):
                self.wait_for(lambda: status(pid, "State").startswith("T"), f"{marked(self.mark).get(pid)} runs on")
            time.sleep(7)  # daemons count as lost after 5 s
            process.send_signal(signal.SIGCONT)
            for pid in (process.pid, *ranks):
                self.wait_for(lambda: not status(pid, "State").startswith("T"), f"{marked(self.mark).get(pid)} is still stopped")

        def ended():
            with contextlib.suppress(OSError):  # nothing has opened it
                os.close(os.open(go, os.O_WRONLY | os.O_NONBLOCK))  # lets go each rank that has opened it so far
            return process.poll() is not None

        self.wait_for(ended, "the ranks do not end")
        self.assertEqual((process.communicate(timeout=LIMIT), process.returncode), (("", ""), 0))

    def test_who_is_killed_while_suspended_leaves_nothing(self):
        process = self.start_sleepers()
        process.send_signal(signal.SIGTSTP)
        self.wait_for(lambda: status(process.pid, "State").startswith("T"), "it runs on")
        process.kill()
        process.wait()
        self.assertEqual(self.left_after(), {})

    def test_termination(self):
        process = self.popen(MPIEXEC, "--host", "a:1,b:1", "-n", 2, "sh", "-c", f"echo 1 > {self.directory}/up$STARLING_RANK; sleep 60")
        self.files("up0", "up1")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGTERM)

    def test_timeout_shows_stacks_from_all_hosts(self):
        for seconds in (1, 10):
            code, _, err = self.over("a:1,b:1", "-n", 2, "--timeout", seconds, "sleep", 60)
            self.assertEqual(code, 124)
            if "nanosleep" in err:
                break  # on a busy machine, the ranks may not have come to it at first
        for rank in range(2):
            self.assertIn(f"---- rank {rank} (sleep)", err)

    def start_sleepers(self, *options):
        process = self.popen(MPIEXEC, "--host", "a:1,b:1", *options, "-n", 2, "sh", "-c",
                             f"echo $$ > {self.directory}/up$STARLING_RANK; sleep 60")
        self.files("up0", "up1")
        return process

    def test_mpiexec_is_killed(self):
        process = self.start_sleepers()
        process.kill()
        process.wait()
        self.assertEqual(self.left_after(), {})

    def test_a_daemon_is_killed(self):
        process = self.start_sleepers()
        self.kill_a_daemon(min)
        _, err = process.communicate(timeout=LIMIT)
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(err, r"host (a|b).*daemon")
        self.assertEqual(self.left_after(), {})

    def test_recovery_goes_on_without_the_dead(self):
        process = self.popen(MPIEXEC, "--host", "a:1,b:2", "--enable-recovery", "-n", 3, "sh", "-c",
                             "[ $STARLING_RANK = 2 ] && kill -9 $$; while [ ! -e go ]; do sleep 0.02; done; echo lives")
        self.assertIn("the others go on", process.stderr.readline())
        pathlib.Path(self.directory, "go").touch()
        self.assertEqual((process.communicate(timeout=LIMIT)[0], process.returncode), ("lives\nlives\n", 128 + 9))

    def test_recovery_on_this_machine(self):
        process = self.popen(MPIEXEC, "--enable-recovery", "-n", 3, "sh", "-c",
                             "[ $STARLING_RANK = 1 ] && exit 4; while [ ! -e go ]; do sleep 0.02; done; echo lives")
        self.assertIn("the other 2 go on", process.stderr.readline())
        pathlib.Path(self.directory, "go").touch()
        self.assertEqual((process.communicate(timeout=LIMIT)[0], process.returncode), ("lives\nlives\n", 4))


class Spawning(HostsCase):
    def test_children_spread_over_hosts(self):
        code, out, err = self.over("a:1,b:1,c:1", "-n", 1, PROBE, "init",
                                   "spawn 4 sh -c echo~child~$FAKE_HOST;while~[~!~-e~go~];do~sleep~0.02;done", "pid go", "finalize")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("spawn 0 codes 0 0 0 0", out)
        self.assertIn("size 4", out)
        # The parent's host has a process already, so mpiexec must place only one child on it.
        self.assertEqual(sorted(re.findall(r"child (\w)", out)), ["a", "b", "b", "c"])

    def test_a_child_takes_the_slot_of_a_dead_rank(self):
        # Rank 2 dies on b, where rank 3 lives on. Before its death all slots are taken.
        process = self.popen(MPIEXEC, "--host", "a:2,b:2,c:2", "--enable-recovery", "-n", 6, "sh", "-c",
                             "until [ -e go ]; do sleep 0.02; done; [ $STARLING_RANK = 2 ] && kill -9 $$; "
                             "[ $STARLING_RANK = 0 ] || { until [ -e end ]; do sleep 0.02; done; exit; }; "
                             f"until [ -e dead ]; do sleep 0.02; done; exec {PROBE} init 'spawn 1 sh -c echo~child~$FAKE_HOST' "
                             "'sleep 300' finalize")
        pathlib.Path(self.directory, "go").touch()
        self.assertIn("the others go on", process.stderr.readline())
        pathlib.Path(self.directory, "dead").touch()
        line = ""
        while "child" not in line:
            line = process.stdout.readline()
            self.assertTrue(line, "no child has written")
        pathlib.Path(self.directory, "end").touch()
        process.communicate(timeout=LIMIT)
        self.assertIn("child b", line)

    def test_children_are_in_the_same_universe(self):
        child = f"{PROBE} init universe finalize"
        for options, size in (([], 5), (["-usize", "9"], 9), (["-usize", "infinite"], 0)):
            code, out, err = self.over("a:2,b:3", *options, "-n", 1, PROBE, "init", "universe", f"spawn 7 {child}", "wait-child", "finalize")
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(re.findall(r"universe (\d+)", out), [str(size)] * 8, options)

    def test_the_info_keys(self):
        for key, where in (("host=c", "ccc"), ("host=b:1,c:2", "bcc")):
            code, out, _ = self.over("a:1,b:1,c:1", "-n", 1, PROBE, "init", f"spawn-info {key} 3 sh -c echo~child~$FAKE_HOST",
                                     "sleep 300", "finalize")
            self.assertEqual((code, "".join(sorted(re.findall(r"child (\w)", out)))), (0, where))
        path = pathlib.Path(self.directory, "two")
        path.write_text("c\nb\n")
        code, out, _ = self.over("a:1,b:1,c:1", "-n", 1, PROBE, "init", f"spawn-info hostfile={path} 2 sh -c echo~child~$FAKE_HOST",
                                 "sleep 300", "finalize")
        self.assertEqual((code, sorted(re.findall(r"child (\w)", out))), (0, ["b", "c"]))

    def test_a_host_that_is_new_gets_a_daemon(self):
        code, out, _ = self.over("a", "-n", 1, PROBE, "init", "spawn-info add-host=new 1 sh -c echo~child~$FAKE_HOST", "sleep 300", "finalize")
        self.assertEqual(code, 0)
        self.assertIn("child new", out)

    def test_a_request_that_is_too_long_harms_nobody(self):
        # The first size is the frame limit to the byte; the subtracted bytes are the headers of the daemons' tree.
        for bytes in ((64 << 20) - 8 - 4 - 4 - 1 - 8, 40 << 20):
            code, out, err = self.over("a:1,b:1", "-n", 1, "sleep", 1, ":", "-n", 1, PROBE, "init", f"publish-long {bytes}", "publish a b",
                                       "lookup a", "finalize")
            self.assertEqual((code, err), (0, ""))
            self.assertIn("hung up", out)
            self.assertIn("name 0 port 'b'", out)

    def test_a_host_by_another_name_is_the_same(self):
        """Parents and children then share memory. If they took the names for two hosts, one would wait for messages that the other sends
        elsewhere."""
        for key in ("host=a-ib", "add-host=a-ib", "host=A"):
            child = "echo~daemon~$FAKE_HOST~${STARLING_JOB%%:*}"
            code, out, err = self.over("a:3", "-n", 1, "sh", "-c", f"echo daemon $FAKE_HOST ${{STARLING_JOB%%:*}}; exec {PROBE} init "
                                       f"'spawn-info {key} 2 sh -c {child}' 'sleep 300' finalize")
            self.assertEqual((code, err), (0, ""))
            daemons = re.findall(r"daemon a (\d+)", out)
            self.assertEqual((len(daemons), len(set(daemons))), (3, 1), out)

    def test_a_host_that_is_not_there_fails_the_spawn_only(self):
        code, out, _ = self.over("a", "-n", 1, PROBE, "init", "spawn-info host=far.example 2 true", "print on", "finalize")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"spawn \d+ codes [1-9]\d* [1-9]\d* text '.*far\.example")
        self.assertIn("on\n", out)

    def test_a_missing_program(self):
        code, out, _ = self.over("a:1,b:1", "-n", 1, PROBE, "init", "spawn 2 ./nonesuch", "print on", "finalize")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"spawn [1-9]\d* .*text '.*\./nonesuch.*on host")
        self.assertIn("on\n", out)

    def test_a_spawn_that_fails_after_its_parent_has_ended(self):
        """mpiexec must not wait for another end of a job."""
        process = self.popen(MPIEXEC, "--host", "a:1,b:1", "-n", 1, PROBE, "init", "pid up", "await go", "spawn-info host=b 1 ./nonesuch")
        parent, = self.files("up")
        daemon, = [pid for pid in self.both_daemons() if marked(self.mark)[pid].split()[-1] == "b"]
        os.kill(daemon, signal.SIGSTOP)
        pathlib.Path(self.directory, "go").touch()
        time.sleep(0.5)  # the order to start is on its way
        os.kill(parent, signal.SIGKILL)
        self.wait_for(lambda: not os.path.exists(f"/proc/{parent}"), "the parent has not ended")
        time.sleep(0.5)
        os.kill(daemon, signal.SIGCONT)
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGKILL)

    def test_children_end_with_their_parent_unless_disconnected(self):
        code, _, err = self.over("a:1,b:1", "-n", 1, PROBE, "init", "spawn-info host=b 1 sleep 60", "exit 3")
        self.assertEqual(code, 3)
        code, out, err = self.over("a:1,b:1", "-n", 1, PROBE, "init",
                                   "spawn-info host=b 1 sh -c while~[~!~-e~go~];do~sleep~0.02;done;sleep~1;echo~finished", "disconnect",
                                   "pid go", "finalize", "exit 3")
        self.assertEqual((code, out.count("finished")), (3, 1))

    def test_the_end_of_children_is_seen_on_another_host(self):
        for command, state in (("true", 2), ("false", 3)):
            code, out, _ = self.over("a:1,b:1", "-n", 1, PROBE, "init", f"spawn-info host=b 1 sh -c while~[~!~-e~go~];do~sleep~0.02;done;{command}",
                                     "pid go", "wait-child", "finalize")
            os.remove(f"{self.directory}/go")
            self.assertEqual(code, 0)
            self.assertIn(f"child state {state}", out)

    def test_names_are_shared(self):
        code, out, _ = self.over("a:1,b:1", "-n", 1, PROBE, "init", "publish s port-of-a", "pid published", "await read",
                                 "finalize", ":", "-n", 1, PROBE, "init", "await published", "lookup s", "pid read", "finalize")
        self.assertEqual(code, 0)
        self.assertIn("port 'port-of-a'", out)


class NameTaken(HostsCase):
    def test_by_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        code = ("import os,socket,sys,time\nos.setgid(65534); os.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\n"
                "s.bind('\\0' + sys.argv[1]); s.listen(); print('up', flush=True); time.sleep(60)")
        holder = self.popen(sys.executable, "-c", code, f"starling-0-names-{self.environment['STARLING_UNIVERSE']}.hosts")
        self.assertEqual(holder.stdout.readline(), "up\n")
        code, _, err = self.run_command(STARLING, "daemon", "start", "--host", "a")
        self.assertEqual(code, 1)
        self.assertRegex(err, "another user, .*holds the abstract socket name .*set XDG_RUNTIME_DIR .*or STARLING_UNIVERSE")
        self.assertNotIn("run already", err)
        holder.kill()


class Standing(HostsCase):
    def setUp(self):
        super().setUp()
        code, out, err = self.run_command(STARLING, "daemon", "start", "--host", "a:2,b:2")
        self.assertEqual((code, err), (0, ""))

    def tearDown(self):
        code, _, _ = self.run_command(STARLING, "daemon", "stop")
        super().tearDown()

    def test_placement_within_hosts(self):
        cpu = str(sorted(os.sched_getaffinity(0))[-1])
        code, out, err = self.mpiexec("--via", "daemons", "--display-map", "--report-bindings", "--cpu-list", cpu, "-n", 1, "grep", "Cpus_allowed_list", "/proc/self/status")
        self.assertEqual((code, out.split()), (0, ["Cpus_allowed_list:", cpu]), err)
        self.assertIn("mpiexec: host a has rank 0 of 1\n", err)
        self.assertRegex(err, rf"mpiexec: rank 0 on \S+ is bound to (core|cpus) {cpu}\b")

    def test_a_dry_run_shows_the_placement_of_the_real_run(self):
        show = ("sh", "-c", "echo $STARLING_RANK $FAKE_HOST")
        for options in ((), ("-n", 3), ("--host", "b,a", "-n", 3), ("-n", 3, "--map-by", "node"), ("-ppn", "1"), ("-n", 5)):
            code, out, err = self.mpiexec("--dry-run", *options, *show)
            self.assertEqual((code, err), (0, ""), options)
            places = {}
            for host, ranks in re.findall(r"^host (\w+) would have ranks? (\S+)$", out, re.M):
                for part in ranks.split(","):
                    first, _, last = part.partition("-")
                    places.update({rank: host for rank in range(int(first), int(last or first) + 1)})
            _, real, _ = self.mpiexec(*options, *show)
            self.assertEqual(places, {int(rank): host for rank, host in map(str.split, real.splitlines())}, options)
        self.assertIn("ranks 0-3: true\n", self.mpiexec("--dry-run", "true")[1])  # as many as the daemons' hosts have slots

    def test_a_dry_run_leaves_output_files_alone(self):
        file = pathlib.Path(self.directory, "out")
        file.write_text("of an earlier job\n", encoding="utf-8")
        code, out, err = self.mpiexec("--dry-run", "-outfile-pattern", file, "-errfile-pattern", file.with_name("err"), "-n", 2, "true")
        self.assertEqual((code, err, out.splitlines()[-1]), (0, "", "ranks 0-1: true"))
        self.assertEqual((file.read_text(encoding="utf-8"), file.with_name("err").exists()), ("of an earlier job\n", False))

    def test_a_dry_run_counts_the_jobs_that_run(self):
        job = self.popen(MPIEXEC, "-n", 2, "sh", "-c", "echo ready; exec sleep 60")
        self.assertEqual([job.stdout.readline() for _ in range(2)], ["ready\n"] * 2)
        asked = ("-n", 2, "sh", "-c", "echo $STARLING_RANK $FAKE_HOST")
        code, out, err = self.mpiexec("--dry-run", *asked)
        self.assertEqual((code, err), (0, ""))
        _, real, _ = self.mpiexec(*asked)
        self.assertEqual(out.splitlines()[0], f"host {real.split()[1]} would have ranks 0-1")
        code, _, err = self.mpiexec("--dry-run", "--stdin", 7, *asked)
        self.assertEqual(code, 127)
        self.assertIn("the job has 2 processes", err)
        code, out, err = self.mpiexec("--dry-run", "--host", "elsewhere:2", *asked)  # the daemons do not have that host
        self.assertEqual((code, out.splitlines()[0]), (0, "host elsewhere would have ranks 0-1"), err)
        job.send_signal(signal.SIGTERM)
        job.communicate(timeout=LIMIT)

    def test_jobs_come_and_go(self):
        for _ in range(3):
            code, out, err = self.mpiexec("-n", 3, "-v", "sh", "-c", "echo $FAKE_HOST")
            self.assertEqual((code, sorted(out.split())), (0, ["a", "a", "b"]))
            self.assertIn("through the standing daemons of 2 hosts", err)
        _, out, _ = self.run_command(STARLING, "daemon", "status")
        self.assertRegex(out, r"0 jobs.*\n  a: up, 0 of 2 slots in use\n  b: up")

    def test_the_user_s_environment_and_directory(self):
        environment = dict(self.environment, STARLING_SPIN_US="77")
        code, out, _ = self.mpiexec("-n", 1, "-x", "A=1", "sh", "-c", "echo $A $STARLING_SPIN_US $PWD", env=environment)
        self.assertEqual((code, out), (0, f"1 77 {os.path.realpath(self.directory)}\n"))

    def test_streams_and_exit_codes(self):
        code, out, err = self.mpiexec("-n", 2, "sh", "-c", "wc -l; [ $STARLING_RANK = 0 ] && exit 6; sleep 60", input="x\n" * 50000)
        self.assertEqual(code, 6)
        self.assertIn("50000", out)
        self.assertIn("exited with code 6", err)

    def test_a_missing_program(self):
        code, _, err = self.mpiexec("-n", 2, "./nonesuch")
        self.assertEqual((code, err.count("\n")), (127, 1))
        self.assertRegex(err, r"'\./nonesuch'.*on host a")
        _, _, err = self.mpiexec("--profile", "./file", "-n", 2, "echo")
        self.assertRegex(err, r"'\./file'.*on host a\); '--profile' takes a value only as '--profile=VALUE', so '\./file' was taken as the program")

    def test_signals(self):
        process = self.popen(MPIEXEC, "-n", 3, "sh", "-c", f"echo 1 > {self.directory}/up$STARLING_RANK; sleep 60")
        self.files("up0", "up1", "up2")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGTERM)

    def test_output_that_nobody_takes(self):
        code, _, err = self.run_command("sh", "-c", f"{MPIEXEC} -n 2 echo hello > /dev/full")
        self.assertEqual((code, err.count("\n")), (1, 1), err)
        process = self.popen(MPIEXEC, "-n", 2, "yes")
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGPIPE)

    def test_a_signal_ends_a_job_whose_output_is_not_read(self):
        self.end_unread_jobs()

    def sleepers(self):
        return {pid for pid, command in marked(self.mark).items() if command.startswith("sleep 60")}

    def test_a_killed_client_takes_its_job_along_and_no_other(self):
        os.mkfifo(self.directory + "/wait")
        first = self.popen(MPIEXEC, "-n", 2, "sleep", 60)
        second = self.popen(MPIEXEC, "-n", 1, "sh", "-c", f"read x < {self.directory}/wait; echo whole")
        self.wait_for(lambda: len(self.sleepers()) == 2, "no sleepers")
        first.kill()
        self.wait_for(lambda: not self.sleepers(), "they stay")
        pathlib.Path(self.directory, "wait").write_text("x\n")
        self.assertEqual((second.communicate(timeout=LIMIT), second.returncode), (("whole\n", ""), 0))

    def test_hosts_elsewhere_are_started_by_the_agent(self):
        code, out, err = self.mpiexec("--host", "c", "-v", "sh", "-c", "echo $FAKE_HOST")
        self.assertEqual((code, out), (0, "c\n"))
        self.assertIn("host 'c' is not one of the 2 hosts of the standing daemons", err)
        code, _, err = self.mpiexec("--host", "c", "--via", "daemons", "true")
        self.assertNotEqual(code, 0)
        self.assertIn("'c'", err)

    def test_loads_of_all_jobs_count(self):
        first = self.popen(MPIEXEC, "-n", 3, "sleep", 60)
        self.wait_for(lambda: len(self.sleepers()) == 3, "no sleepers")
        code, out, _ = self.mpiexec("-n", 1, "sh", "-c", "echo $FAKE_HOST")
        self.assertEqual((code, out), (0, "b\n"))
        first.kill()

    def test_a_daemon_dies_and_the_others_stay(self):
        process = self.popen(MPIEXEC, "-n", 4, "sh", "-c", f"echo 1 > {self.directory}/up$STARLING_RANK; sleep 60")
        self.files("up0", "up1", "up2", "up3")
        self.kill_a_daemon(max)
        _, err = process.communicate(timeout=LIMIT)
        self.assertNotEqual(process.returncode, 0)
        # A rank may run before mpiexec knows that all have started. If the daemon dies at this moment, mpiexec reports a failed start.
        self.assertRegex(err, r"host (a|b): lost the connection to the daemon on (a|b)(.*ending the job|: it closed the connection)")
        code, out, _ = self.mpiexec("-n", 3, "echo", "still")
        self.assertEqual((code, out), (0, "still\n" * 3))

    def test_a_lost_host_that_comes_back_offers_its_slots_again(self):
        self.kill_a_daemon(max)
        lost = None

        def is_lost():
            nonlocal lost
            lost = re.search(r"(\w): lost", self.run_command(STARLING, "daemon", "status")[1])
            return lost

        self.wait_for(is_lost, "no host is lost")
        code, out, err = self.mpiexec("-n", 1, PROBE, "init", f"spawn-info add-host={lost[1]} 1 sh -c echo~child~$FAKE_HOST", "sleep 300",
                                      "finalize")
        self.assertEqual((code, err), (0, ""))
        self.assertIn(f"child {lost[1]}", out)
        code, out, err = self.mpiexec("-n", 4, "sh", "-c", "echo $FAKE_HOST")
        self.assertEqual((code, sorted(out.split()), err), (0, ["a", "a", "b", "b"], ""))

    def test_the_root_dies_and_nothing_stays(self):
        process = self.popen(MPIEXEC, "-n", 4, "sh", "-c", f"echo 1 > {self.directory}/up$STARLING_RANK; sleep 60")
        self.files("up0", "up1", "up2", "up3")
        kill_all(pid for pid, command in marked(self.mark).items() if "starlingd universe" in command)
        _, err = process.communicate(timeout=LIMIT)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("the standing daemon has ended", err)
        self.assertEqual(self.left_after(), {})

    def root(self):
        return next(pid for pid, command in marked(self.mark).items() if "starlingd universe" in command)

    def test_daemons_that_do_not_answer_keep_nobody(self):
        process = self.popen(MPIEXEC, "-n", 1, "sh", "-c", "echo up; exec sleep 60")
        self.assertEqual(process.stdout.readline(), "up\n")  # so mpiexec knows that the job has begun
        root = self.root()
        os.kill(root, signal.SIGSTOP)
        try:
            def ended():
                process.send_signal(signal.SIGINT)
                time.sleep(0.2)  # longer than signals may be apart that are taken for one
                return process.poll() is not None

            self.wait_for(ended, "mpiexec waits for the daemons")
            _, err = process.communicate(timeout=LIMIT)
            self.assertEqual((process.returncode, err), (130, "mpiexec: the standing daemons have not ended the job yet; "
                                                              "mpiexec does not wait for that\n"))
            # Larger than the socket's buffer: mpiexec must not block in sending it.
            large = dict(self.environment, **{f"LARGE_{i}": "x" * 100000 for i in range(6)})
            process = self.popen(MPIEXEC, "-n", 1, "echo", "ran", env=large)
            self.wait_for(lambda: status(process.pid, "SigBlk") not in ("", "0" * 16), "no signal is watched for")
            process.send_signal(signal.SIGTERM)
            self.assertEqual((process.communicate(timeout=LIMIT)[0], process.returncode), ("", 128 + signal.SIGTERM))
            for environment in (large, self.environment):
                code, out, err = self.mpiexec("-n", 1, "echo", "ran", env=dict(environment, STARLING_SILENCE_MS="300"))
                self.assertEqual((code, out), (127, ""))
                self.assertRegex(err, rf"process {root}\) have not answered for 300 ms.*starling daemon stop")
        finally:
            os.kill(root, signal.SIGCONT)
        self.wait_for(lambda: not self.sleepers(), "the job continues without its mpiexec")
        code, out, err = self.mpiexec("-n", 1, "echo", "still", env=dict(self.environment, STARLING_SILENCE_MS="100000"))
        self.assertEqual((code, out, err), (0, "still\n", ""))

    def test_a_job_that_is_silent_is_not_taken_for_dead(self):
        code, out, err = self.mpiexec("-n", 2, "sleep", 8, env=dict(self.environment, STARLING_SILENCE_MS="5000"))
        self.assertEqual((code, out, err), (0, "", ""))

    def test_daemons_without_hosts_are_passed_by(self):
        kill_all(self.both_daemons())
        self.wait_for(lambda: self.run_command(STARLING, "daemon", "status")[1].count("lost,") == 2, "the hosts are not lost")
        code, out, err = self.mpiexec("-v", "-n", 2, "echo", "here")
        self.assertEqual((code, out), (0, "here\n" * 2))
        self.assertRegex(err, "on this machine: the standing daemons have lost all their hosts .*end them with 'starling daemon stop'")
        code, _, err = self.mpiexec("--via", "daemons", "-n", 2, "true")
        self.assertNotEqual(code, 0)
        self.assertIn("'starling daemon stop'", err)
        code, out, err = self.mpiexec("--host", "a", "-v", "-n", 1, "sh", "-c", "echo $FAKE_HOST")
        self.assertEqual((code, out), (0, "a\n"))
        self.assertIn("have lost host 'a'", err)

    def test_hosts_that_are_lost_while_a_job_starts_are_passed_by(self):
        kill_all(self.both_daemons())
        code, out, err = self.mpiexec("-v", "-n", 2, "echo", "here")  # most often before the root notices
        self.assertEqual((code, out), (0, "here\n" * 2), err)
        self.assertIn("lost", err)

    def test_there_is_one_at_a_time(self):
        code, _, err = self.run_command(STARLING, "daemon", "start", "--host", "c")
        self.assertEqual(code, 1)
        self.assertIn("run already", err)

    def test_spawned_children_spread(self):
        code, out, _ = self.mpiexec("-n", 1, PROBE, "init", "spawn 3 sh -c echo~child~$FAKE_HOST", "sleep 300", "finalize")
        self.assertEqual((code, sorted(re.findall(r"child (\w)", out))), (0, ["a", "b", "b"]))


class StandingStart(HostsCase):
    def test_many_hosts_and_a_start_that_is_given_up(self):
        # The host list exceeds the length of one argument, and all agents hang. If `starling daemon start` is interrupted, they must end too.
        hosts = pathlib.Path(self.directory, "hosts")
        hosts.write_text("".join(f"a-host-with-quite-a-long-name-{i}\n" for i in range(6000)))
        hanging = self.script("exec sleep 60", "hanging")
        process = self.popen(STARLING, "daemon", "start", "--hostfile", hosts, "--launcher-agent", hanging)
        self.wait_for(lambda: any("sleep 60" in command for command in marked(self.mark).values()), "no agent was called")
        process.send_signal(signal.SIGINT)
        self.assertNotEqual(process.wait(LIMIT), 0)
        self.assertEqual(self.left_after(), {})

    def test_a_dry_run_does_without_daemons_that_return_no_placement(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"\0starling-{os.geteuid()}-names-{self.environment['STARLING_UNIVERSE']}.hosts")
            listener.listen()
            process = self.popen(MPIEXEC, "--dry-run", "--host", "a:2", "true")
            connection, _ = listener.accept()
            connection.close()
            out, err = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, out), (0, "host a would have ranks 0-1\nranks 0-1: true\n"))
        self.assertIn("the standing daemons closed the connection", err)

    def test_the_limit_is_the_user_s(self):
        slow = self.script('host=$1; shift; sleep 11; exec sh -c "$* apart $host"', "slow")
        environment = dict(self.environment, STARLING_LAUNCH_TIMEOUT="100", STARLING_LAUNCHER_AGENT=slow)
        code, _, err = self.run_command(STARLING, "daemon", "start", "--host", "a", env=environment)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.run_command(STARLING, "daemon", "stop")[0], 0)
        environment["STARLING_LAUNCH_TIMEOUT"] = "1"
        code, _, err = self.run_command(STARLING, "daemon", "start", "--host", "a", env=environment)
        self.assertEqual(code, 1)
        self.assertIn("no daemon after 1 s", err)
        self.assertEqual(self.left_after(), {})

    def test_problems_are_told_and_nothing_stays(self):
        for arguments, part in ((["--host", "a,far.example"], "far.example"), (["--hostfile", "/no/file"], "/no/file"),
                                (["--hots", "a"], "hots"), (["--host"], "value")):
            code, _, err = self.run_command(STARLING, "daemon", "start", *arguments)
            self.assertNotEqual(code, 0)
            self.assertIn(part, err)
            self.assertEqual(self.left_after(), {})


if __name__ == "__main__":
    import sys
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
