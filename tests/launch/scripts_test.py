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
