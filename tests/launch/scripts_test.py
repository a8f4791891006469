#!/usr/bin/env python3
"""Tests the interface of mpiexec to scripts: variables of each process, output files, standard input, and the time after a signal.

    scripts_test.py BUILD [TestClass[.test]]...
"""

import collections
import os
import pathlib
import re
import select
import shutil
import signal
import sys
import time
import unittest

from hosts_test import STARLING, HostsCase
from launcher_test import BUILD, LIMIT, MPIEXEC, PROBE, marked

FOREIGN = "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE PMI_RANK PMI_SIZE".split()


class Variables(HostsCase):
    def show(self, *names):
        return "echo " + " ".join(f"${{{name}-none}}" for name in names)

    def test_own_names_over_hosts(self):
        names = "STARLING_RANK STARLING_SIZE STARLING_LOCAL_RANK STARLING_LOCAL_SIZE STARLING_NODE_RANK".split()
        code, out, err = self.over("a:2,b:1", "-n", 3, "sh", "-c", self.show(*names))
        self.assertEqual((code, sorted(out.splitlines()), err), (0, ["0 3 0 2 0", "1 3 1 2 0", "2 3 0 1 1"], ""))

    def test_names_of_hydra_are_always_set(self):
        code, out, _ = self.over("a:2,b:1", "-n", 3, "sh", "-c", self.show("MPI_LOCALRANKID", "MPI_LOCALNRANKS"))
        self.assertEqual((code, sorted(out.splitlines())), (0, ["0 1", "0 2", "1 2"]))

    def test_names_of_other_launchers_need_compat(self):
        for compat, wanted in (("off", "none none none none none none"), ("openmpi", "1 2 1 2 none none"),
                               ("mpich", "none none none none 1 2"), ("auto", "1 2 1 2 1 2")):
            code, out, _ = self.mpiexec("--compat", compat, "-n", 2, "sh", "-c", self.show(*FOREIGN))
            self.assertEqual((code, sorted(out.splitlines())[1]), (0, wanted), compat)

    def test_a_script_chooses_its_device(self):
        """The order in which Kokkos, LAMMPS and wrappers of nsys look for the local rank."""
        choose = ("for v in OMPI_COMM_WORLD_LOCAL_RANK MPI_LOCALRANKID MV2_COMM_WORLD_LOCAL_RANK SLURM_LOCALID; do "
                  'eval x=\\$$v; [ -n "$x" ] && echo device $x && exit; done')
        code, out, _ = self.mpiexec("-n", 3, "sh", "-c", choose)
        self.assertEqual((code, sorted(out.splitlines())), (0, ["device 0", "device 1", "device 2"]))

    def test_numbers_of_an_outer_job_do_not_reach_an_inner_one(self):
        inner = f"{MPIEXEC} -n 1 sh -c '{self.show('STARLING_SIZE', 'STARLING_LOCAL_RANK', 'MPI_LOCALNRANKS')}'"
        code, out, err = self.mpiexec("-n", 2, "sh", "-c", inner)
        self.assertEqual((code, out.splitlines(), err), (0, ["1 0 1"] * 2, ""))
        inner = f"{MPIEXEC} --compat mpich -n 1 sh -c '{self.show('OMPI_COMM_WORLD_SIZE', 'PMI_SIZE')}'"
        code, out, err = self.mpiexec("--compat", "openmpi", "-n", 2, "sh", "-c", inner)
        self.assertEqual((code, out.splitlines(), err), (0, ["none 1"] * 2, ""))

    def test_a_program_without_its_job_runs_alone_in_spite_of_the_names(self):
        """Variables of other launchers that Starling's mpiexec has set do not count as those of a launcher without a job."""
        alone = f"unset STARLING_JOB STARLING_RANK; exec {BUILD}/tests/launch/alone"
        code, out, err = self.mpiexec("--compat", "auto", "-n", 2, "sh", "-c", alone)
        self.assertEqual((code, out.splitlines(), err), (0, ["0 of 1"] * 2, ""))
        code, out, err = self.mpiexec("--compat", "auto", "-n", 2, "sh", "-c", "export PMI_SIZE=5; " + alone)
        self.assertEqual(code, 1, out + err)
        self.assertIn("a PMI process manager has started 5 processes", err)


class Grace(HostsCase):
    """The time that ranks have after a signal that asks them to end."""

    # Rank 0 ends at once, rank 1 when its checkpoint is written. $1: the signal. $2: the code of both. $3: the time of writing.
    CHECKPOINT = """
        trap 'code=$2' $1
        code=; echo ready
        while [ -z "$code" ]; do sleep 0.02; done
        [ $STARLING_RANK = 1 ] && sleep $3 && echo written
        exit $code"""

    def end(self, name, code, *options, seconds=1):
        script = self.CHECKPOINT.replace("$1", name).replace("$2", str(code)).replace("$3", str(seconds))
        process = self.popen(MPIEXEC, *options, "-n", 2, "sh", "-c", script)
        for _ in range(2):
            self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(getattr(signal, "SIG" + name))
        out, err = process.communicate(timeout=LIMIT)
        # The shell's words about its sleep, and mpiexec's if rank 1 takes more than two seconds.
        return out, process.returncode, re.sub("(Terminated|Hangup|mpiexec: other processes still run.*)\n", "", err)

    def test_the_slow_rank_writes_its_checkpoint(self):
        for name, code in (("TERM", 143), ("INT", 130), ("HUP", 129)):
            self.assertEqual(self.end(name, code), ("written\n", code, ""), name)

    def test_whatever_the_code(self):
        out, code, err = self.end("TERM", 7)
        self.assertEqual((out, code, err.count("\n")), ("written\n", 7, 1), err)
        self.assertRegex(err, "rank 0 .*exited with code 7")

    def test_over_hosts(self):
        self.assertEqual(self.end("TERM", 143, "--host", "a:1,b:1"), ("written\n", 143, ""))

    def test_without_grace_the_others_end(self):
        self.environment["STARLING_SIGNAL_GRACE"] = "0"
        self.assertEqual(self.end("TERM", 143, seconds=60)[:2], ("", 143))

    def test_the_rest_is_killed_after_the_grace(self):
        self.environment["STARLING_SIGNAL_GRACE"] = "1"
        process = self.popen(MPIEXEC, "-n", 2, "sh", "-c", "[ $STARLING_RANK = 1 ] && trap '' TERM; echo ready; while :; do sleep 0.02; done")
        for _ in range(2):
            process.stdout.readline()
        process.terminate()
        self.assertEqual((process.wait(LIMIT), process.stderr.read()), (143, ""))

    def test_the_grace_of_a_client_that_left_does_not_end_the_next_job(self):
        self.environment["STARLING_SIGNAL_GRACE"] = "2"
        self.assertEqual(self.run_command(STARLING, "daemon", "start", "--host", "a:2")[0], 0)
        try:
            first = self.popen(MPIEXEC, "-n", 2, "sh", "-c", "[ $STARLING_RANK = 1 ] && trap '' TERM; echo ready; while :; do sleep 0.02; done")
            for _ in range(2):
                first.stdout.readline()
            first.terminate()
            self.wait_for(lambda: sum("trap" in command and "mpiexec" not in command for command in marked(self.mark).values()) <= 1,
                          "rank 0 does not end")
            first.kill()
            first.wait(LIMIT)
            code, out, err = self.mpiexec("-n", 1, "sh", "-c", "sleep 3; echo done")
            self.assertEqual((code, out, err), (0, "done\n", ""))
        finally:
            self.run_command(STARLING, "daemon", "stop")

    def test_another_signal_ends_the_rest_at_once(self):
        process = self.popen(MPIEXEC, "-n", 2, "sh", "-c",
                             "[ $STARLING_RANK = 1 ] && trap '' INT; echo ready; while :; do sleep 0.02; done")
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        self.assertIn("Another Ctrl-C ends them at once", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(LIMIT), 130)

    def test_interrupts_with_pauses_are_all_passed_on(self):
        process = self.popen(MPIEXEC, "-n", 1, sys.executable, "-u", "-c",
                             "import signal, time\nsignal.signal(signal.SIGINT, lambda *_: print('interrupt'))\nprint('ready')\n"
                             "while True: time.sleep(1)")
        self.assertEqual(process.stdout.readline(), "ready\n")
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.stdout.readline(), "interrupt\n")
            time.sleep(2.1)
        self.assertIsNone(process.poll())
        process.kill()

    def test_a_failure_long_after_an_interrupt_ends_all(self):
        self.environment["STARLING_SIGNAL_GRACE"] = "1"
        go = pathlib.Path(self.directory, "go")
        process = self.popen(MPIEXEC, "-n", 2, "sh", "-c",
                             f"trap '' INT; echo ready; while [ ! -e {go} ]; do sleep 0.02; done; [ $STARLING_RANK = 0 ] && exit 5; exec sleep 60")
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        time.sleep(1.1)
        go.touch()
        self.assertEqual(process.wait(LIMIT), 5)


class Input(HostsCase):
    def test_one_rank(self):
        for hosts in ((), ("--host", "a:1,b:1")):
            code, out, err = self.mpiexec(*hosts, "--stdin", 1, "-n", 2, "sh", "-c", "echo $STARLING_RANK $(wc -l)", input="line\n" * 40000)
            self.assertEqual((code, sorted(out.splitlines()), err), (0, ["0 0", "1 40000"], ""))

    def test_all_ranks(self):
        for hosts in ((), ("--host", "a:2,b:1")):
            for option in ("--stdin", "-s"):
                code, out, err = self.mpiexec(*hosts, option, "all", "-n", 3, "wc", "-l", input="line\n" * 40000)
                self.assertEqual((code, out.split(), err), (0, ["40000"] * 3, ""))

    def test_some_ranks(self):
        code, out, _ = self.over("a:2,b:2", "-s", "0,2-3", "-n", 4, "sh", "-c", "echo $STARLING_RANK $(wc -l)", input="x\ny\n")
        self.assertEqual((code, sorted(out.splitlines())), (0, ["0 2", "1 0", "2 2", "3 2"]))

    def test_none(self):
        for hosts in ((), ("--host", "a:1,b:1")):
            code, out, _ = self.mpiexec(*hosts, "--stdin", "none", "-n", 2, "wc", "-l", input="line\n" * 10)
            self.assertEqual((code, out.split()), (0, ["0", "0"]))

    def test_a_rank_that_does_not_read_holds_no_other_back(self):
        """A rank that ends or closes its input counts as one that has taken it."""
        for quit in ("exit 0", "exec <&-; sleep 0.5; exit 0"):
            code, out, err = self.mpiexec("--stdin", "all", "-n", 2, "sh", "-c", f"if [ $STARLING_RANK = 0 ]; then {quit}; fi; wc -l",
                                          input="line\n" * 100000)
            self.assertEqual((code, out.split(), err), (0, ["100000"], ""))

    def test_through_standing_daemons(self):
        self.assertEqual(self.run_command(STARLING, "daemon", "start", "--host", "a:1,b:2")[0], 0)
        code, out, err = self.mpiexec("-s", "all", "-n", 3, "wc", "-l", input="line\n" * 40000)
        self.assertEqual((code, out.split(), err), (0, ["40000"] * 3, ""))
        code, out, err = self.mpiexec("-s", "none", "-n", 1, "wc", "-l", input="line\n")
        self.assertEqual((code, out.split(), err), (0, ["0"], ""))
        self.assertEqual(self.run_command(STARLING, "daemon", "stop")[0], 0)

    def test_what_is_not_a_rank(self):
        for word in ("some", "1-", "2-1", "0,,1", ""):
            code, _, err = self.mpiexec("--stdin", word, "-n", 2, "true")
            self.assertEqual(code, 1)
            self.assertIn("a rank, all, none", err)
        code, _, err = self.mpiexec("--stdin", 2, "-n", 2, "true")
        self.assertEqual(code, 127)
        self.assertIn("the job has 2 processes", err)

    def test_a_reader_of_tagged_output_that_has_closed_ends_the_job(self):
        for hosts in ((), ("--host", "a:1,b:1")):
            process = self.popen(MPIEXEC, *hosts, "-l", "-n", 2, "yes")
            self.assertRegex(process.stdout.readline(), r"^\[[01]\] y$")
            process.stdout.close()
            process.stdout = None
            self.assertEqual(process.wait(LIMIT), 128 + signal.SIGPIPE)


class Files(HostsCase):
    BOTH = "echo out of $STARLING_RANK; echo err of $STARLING_RANK >&2"

    def tree(self, name):
        """Returns {path within the directory: text} of all files."""
        top = pathlib.Path(self.directory, name)
        return {str(path.relative_to(top)): path.read_text() for path in sorted(top.rglob("*")) if path.is_file()}

    def both(self, *options, n=2):
        code, out, err = self.mpiexec("-q", *options, "-n", n, "sh", "-c", self.BOTH)
        self.assertEqual(code, 0, err)
        return sorted(out.splitlines()), sorted(err.splitlines())

    def test_a_directory_as_with_open_mpi_4(self):
        wanted = {f"1/rank.{rank}/std{name}": f"{name} of {rank}\n" for rank in (0, 1) for name in ("out", "err")}
        for hosts in ((), ("--host", "a:1,b:1")):
            lines = self.both(*hosts, "--output-filename", "copied")
            self.assertEqual((self.tree("copied"), lines), (wanted, (["out of 0", "out of 1"], ["err of 0", "err of 1"])))
            self.assertEqual(self.both(*hosts, "--output-filename", "only:nocopy"), ([], []))
            self.assertEqual(self.tree("only"), wanted)
        self.both("--output-filename", "wide:nocopy,nojobid", n=11)
        self.assertEqual(self.tree("wide")["rank.03/stdout"], "out of 3\n")

    def test_words_as_with_open_mpi_5(self):
        self.assertEqual(self.both("--output", "dir=words:nocopy,tag"), ([], []))
        self.assertEqual(self.tree("words")["1/rank.1/stdout"], "[1] out of 1\n")
        self.assertEqual(self.both("--output", "file=plain,nocopy"), ([], []))
        self.assertEqual(pathlib.Path(self.directory, "plain.1.err").read_text(), "err of 1\n")
        self.assertEqual(self.both("--output", "tag"), (["[0] out of 0", "[1] out of 1"], ["[0] err of 0", "[1] err of 1"]))
        out, err = self.both("--output", "merge-stderr-to-stdout,tag")
        self.assertEqual((out, err), (["[0] err of 0", "[0] out of 0", "[1] err of 1", "[1] out of 1"], []))

    def test_merged_lines_keep_their_order(self):
        code, out, err = self.mpiexec("--merge-stderr-to-stdout", "-n", 1, "sh", "-c", "for i in 1 2 3; do echo o$i; echo e$i >&2; done")
        self.assertEqual((code, out, err), (0, "o1\ne1\no2\ne2\no3\ne3\n", ""))

    def test_timestamps(self):
        for hosts in ((), ("--host", "a:1,b:1")):
            out, err = self.both(*hosts, "--timestamp-output", "-l")
            for line in out + err:
                self.assertRegex(line, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[[01]\] (out|err) of [01]$")
            self.assertEqual((len(out), len(err)), (2, 2))

    def test_a_file_per_rank_as_with_hydra(self):
        for hosts in ((), ("--host", "a:1,b:1")):
            out, err = self.both(*hosts, "-outfile-pattern", "deep/o-%r-%h-%p-%g-%%")
            self.assertEqual((out, err), ([], ["err of 0", "err of 1"]))
            files = self.tree("deep")
            self.assertEqual(sorted(files.values()), ["out of 0\n", "out of 1\n"])
            for file in files:
                self.assertRegex(file, r"^o-[01]-[^-]+-[01]-0-%$")
            shutil.rmtree(pathlib.Path(self.directory, "deep"))

    def test_one_file_for_all_ranks(self):
        """mpiexec writes such a file itself: two hosts would overwrite each other's lines."""
        pathlib.Path(self.directory, "all").write_text("text of an earlier job\n")
        for hosts in ((), ("--host", "a:1,b:1")):
            self.assertEqual(self.both(*hosts, "-outfile-pattern", "all", "-errfile-pattern", "all"), ([], []))
            self.assertEqual(sorted(pathlib.Path(self.directory, "all").read_text().splitlines()),
                             ["err of 0", "err of 1", "out of 0", "out of 1"])

    def test_through_standing_daemons(self):
        self.assertEqual(self.run_command(STARLING, "daemon", "start", "--host", "a:1,b:1")[0], 0)
        self.assertEqual(self.both("-outfile-pattern", "one", "--output", "dir=d:nocopy"), ([], []))
        self.assertEqual(self.both("-outfile-pattern", "one", "-errfile-pattern", "e%r"), ([], []))
        self.assertEqual(sorted(pathlib.Path(self.directory, "one").read_text().splitlines()), ["out of 0", "out of 1"])
        self.assertEqual(pathlib.Path(self.directory, "e1").read_text(), "err of 1\n")
        self.assertEqual(sorted(self.tree("d")), ["1/rank.0/stderr", "1/rank.0/stdout", "1/rank.1/stderr", "1/rank.1/stdout"])
        self.assertEqual(self.run_command(STARLING, "daemon", "stop")[0], 0)

    def test_prefixes(self):
        self.assertEqual(self.both("-prepend-pattern", "%r of job %j> ")[0], ["0 of job 1> out of 0", "1 of job 1> out of 1"])

    def test_long_output_is_whole(self):
        code, out, _ = self.over("a:1,b:1", "--output-filename", "long", "-n", 2, "seq", 1, 100000)
        wanted = "".join(f"{i}\n" for i in range(1, 100001))
        self.assertEqual((code, len(out)), (0, 2 * len(wanted)))
        self.assertEqual([text == wanted for name, text in self.tree("long").items() if name.endswith("out")], [True, True])

    def test_files_of_spawned_jobs_have_their_own_names(self):
        code, _, err = self.mpiexec("-outfile-pattern", "job%g", "-n", 1, PROBE, "init", "spawn 1 echo child", "wait-child", "finalize")
        self.assertEqual(code, 0, err)
        self.assertEqual(pathlib.Path(self.directory, "job1").read_text(), "child\n")

    def test_a_file_that_cannot_be_written_is_named(self):
        for hosts in ((), ("--host", "a:1,b:1")):
            for options in (("-outfile-pattern", "/proc/no/%r"), ("-outfile-pattern", "/proc/no"), ("--output-filename", "/proc/no")):
                code, out, err = self.mpiexec(*hosts, *options, "-n", 2, "echo", "hello")
                self.assertEqual((code, out), (127, ""), err)
                self.assertIn("the output file '/proc/no", err)
                self.assertIn("No such file or directory", err)

    def test_the_reason_is_that_of_the_directory(self):
        code, _, err = self.mpiexec("--output-filename", "/sys/no", "-n", 1, "true")
        self.assertEqual(code, 127)
        self.assertRegex(err, "Operation not permitted|Permission denied|Read-only file system")

    def test_a_fifo_without_a_reader_is_named(self):
        """Opening it must not hold up mpiexec or a daemon."""
        fifo = pathlib.Path(self.directory, "fifo")
        for path in (fifo, f"{fifo}-0", f"{fifo}-1"):
            os.mkfifo(path)
        for hosts in ((), ("--host", "a:1,b:1")):
            for pattern in (fifo, f"{fifo}-%r"):
                code, out, err = self.mpiexec(*hosts, "-outfile-pattern", pattern, "-n", 2, "echo", "hello")
                self.assertEqual((code, out), (127, ""), err)
                self.assertIn(f"the output file '{fifo}", err)
                self.assertIn("No such device or address", err)

    def test_a_fifo_with_a_reader_gets_all_lines(self):
        fifo = pathlib.Path(self.directory, "fifo")
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        job = self.popen(MPIEXEC, "-outfile-pattern", fifo, "-n", 2, "seq", 1, 100000)
        self.assertTrue(select.select([reader], [], [], LIMIT)[0])
        os.set_blocking(reader, True)
        with open(reader) as lines:
            # Counts characters: a line is split if its rank gets no core for a second between two blocks.
            self.assertEqual(collections.Counter(lines.read()), collections.Counter(2 * "".join(f"{i}\n" for i in range(1, 100001))))
        self.assertEqual((job.wait(LIMIT), job.stderr.read()), (0, ""))

    def test_a_full_disk_is_named(self):
        os.symlink("/dev/full", pathlib.Path(self.directory, "full-0"))
        code, _, err = self.mpiexec("-outfile-pattern", "full-%r", "-n", 2, "echo", "hello")
        self.assertEqual(code, 1)
        self.assertRegex(err, "can't be written to '.*full-0' and is lost: No space left on device")

    def test_mistakes_are_explained(self):
        for options, part in ((("--output", "tags"), "use tag, "), (("--output", "xml"), "use tag, "), (("--output", "out.%t"), "-outfile-pattern"),
                              (("-outfile-pattern", "%t"), "'%t' is not valid"), (("-prepend-pattern", "%"), "is not valid"),
                              (("--output-filename", ""), "empty name")):
            code, out, err = self.mpiexec(*options, "-n", 1, "echo", "hello")
            self.assertEqual((code, out), (1, ""))
            self.assertIn(part, err)


class Messages(HostsCase):
    def test_a_profile_is_announced(self):
        code, _, err = self.mpiexec("--profile=p.jsonl", "-n", 2, f"{BUILD}/tests/launch/alone")
        self.assertEqual((code, err), (0, "mpiexec: the profile is in p.jsonl; to read it: starling profile show p.jsonl\n"))
        self.assertEqual(self.mpiexec("-q", "--profile=p.jsonl", "-n", 2, f"{BUILD}/tests/launch/alone")[2], "")

    def test_a_slow_start_names_the_host_that_it_waits_for(self):
        """On a terminal, after two seconds of silence."""
        go = pathlib.Path(self.directory, "go")
        self.environment["STARLING_LAUNCHER_AGENT"] = self.script(
            f'if [ $1 = slow ]; then while [ ! -e {go} ]; do sleep 0.05; done; fi; host=$1; shift; exec sh -c "$* apart $host"', "slow-agent")
        process, terminal = self.on_terminal("--host", "quick:1,slow:1", "-n", 2, "echo", "hello")
        text = self.read_terminal(terminal, until="waiting for slow")
        self.assertRegex(text, "starting: [01] of 2 hosts are up, waiting for (quick|slow)")
        go.touch()
        self.assertEqual(self.read_terminal(terminal).count("hello"), 2)
        self.assertEqual(process.wait(LIMIT), 0)
        os.close(terminal)

    def test_an_mpi_error_is_not_reported_as_a_call_of_abort(self):
        code, _, err = self.mpiexec("-n", 1, f"{BUILD}/tests/launch/alone", "error")
        self.assertEqual(code, 1)
        self.assertRegex(err, "MPI_Send: .*MPI_ERR_RANK")
        self.assertRegex(err, r"mpiexec: rank 0 \(.*\), process \d+ on \S+, ended because of an MPI or OpenSHMEM error, with code 1\n$")

    def test_messages_name_the_command_that_was_typed(self):
        code, _, err = self.run_command(BUILD / "bin" / "oshrun", "-n", 2, "sh", "-c", "exit 3")
        self.assertEqual(code, 3)
        self.assertRegex(err, "^oshrun: rank [01] ")


class Version(HostsCase):
    def test_programs_that_look_for_a_known_launcher_find_it(self):
        """horovodrun accepts an mpirun whose version names Open MPI or MPICH; others look for HYDRA."""
        code, out, _ = self.mpiexec("--version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^Starling mpiexec \d")
        for name in ("Open MPI", "MPICH", "HYDRA"):
            self.assertIn(name, out)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
