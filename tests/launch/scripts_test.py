#!/usr/bin/env python3
"""Tests the interface of mpiexec to scripts: variables of each process, output files, standard input, and the time after a signal.

    scripts_test.py BUILD [TestClass[.test]]...
"""

import os
import pathlib
import re
import signal
import sys
import time
import unittest

from hosts_test import HostsCase
from launcher_test import BUILD, LIMIT, MPIEXEC, PROBE

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

    # Rank 0 ends at once, rank 1 when its checkpoint is written. $1: the signal. $2: the code of both.
    CHECKPOINT = """
        trap 'code=$2' $1
        code=; echo ready
        while [ -z "$code" ]; do sleep 0.02; done
        [ $STARLING_RANK = 1 ] && sleep 1 && echo written
        exit $code"""

    def end(self, name, code, *options):
        process = self.popen(MPIEXEC, *options, "-n", 2, "sh", "-c", self.CHECKPOINT.replace("$1", name).replace("$2", str(code)))
        for _ in range(2):
            self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(getattr(signal, "SIG" + name))
        out, err = process.communicate(timeout=LIMIT)
        return out, process.returncode, re.sub("(Terminated|Hangup)\n", "", err)  # the shell's words about its sleep

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
        self.assertEqual(self.end("TERM", 143)[:2], ("", 143))

    def test_the_rest_is_killed_after_the_grace(self):
        self.environment["STARLING_SIGNAL_GRACE"] = "1"
        process = self.popen(MPIEXEC, "-n", 2, "sh", "-c", "[ $STARLING_RANK = 1 ] && trap '' TERM; echo ready; while :; do sleep 0.02; done")
        for _ in range(2):
            process.stdout.readline()
        process.terminate()
        self.assertEqual((process.wait(LIMIT), process.stderr.read()), (143, ""))

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
