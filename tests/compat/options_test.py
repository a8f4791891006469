#!/usr/bin/env python3
"""Tests mpiexec's handling of programs built for other MPIs: options_test.py BUILD"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
SOURCE = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("one of %d\\n", size);
    MPI_Finalize();
    return 0;
}
"""


# A program in which all pairs of ranks exchange a derived type and check the status. Then it calls reductions, one of them user-defined.
MEETING = """
#include <mpi.h>
#include <stdio.h>
static void least(void* in, void* inout, int* length, MPI_Datatype* type) {
    for (int i = 0; i < *length; ++i)
        if (((int*)in)[i] < ((int*)inout)[i]) ((int*)inout)[i] = ((int*)in)[i];
}
int main(int argc, char** argv) {
    int rank, size, sent[6], got[6], count, sum = 0, low, faults = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Datatype every_second;
    MPI_Type_vector(3, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    for (int step = 1; step < size; ++step) {
        const int to = (rank + step) % size;
        for (int i = 0; i < 6; ++i) sent[i] = 100 * rank + i, got[i] = -1;
        MPI_Status status;
        MPI_Sendrecv(sent, 1, every_second, size - 1 - to, 7, got, 3, MPI_INT, MPI_ANY_SOURCE, 7, comm, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        const int from = size - 1 - status.MPI_SOURCE;
        faults += count != 3 || status.MPI_TAG != 7 || from != (rank - step + size) % size || got[0] != 100 * from || got[2] != 100 * from + 4 || got[3] != -1;
        MPI_Barrier(comm);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Op op;
    MPI_Op_create(least, 1, &op);
    low = rank + 5;
    MPI_Allreduce(MPI_IN_PLACE, &low, 1, MPI_INT, op, comm);
    faults += sum != size * (size - 1) / 2 || low != 5;
    printf("%d of %d met with %d faults\\n", rank, size, faults);
    MPI_Finalize();
    return faults;
}
"""


class Options(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        (folder / "one.c").write_text(SOURCE)
        cls.program = {}
        for mpi in ("mpich", "openmpi"):
            cls.program[mpi] = str(folder / mpi)
            subprocess.run([f"mpicc.{mpi}", "-w", str(folder / "one.c"), "-o", cls.program[mpi]], check=True)
        (folder / "meeting.c").write_text(MEETING)
        cls.meeting = []
        for compiler in ("mpicc.mpich", BUILD / "bin" / "mpicc", "mpicc.openmpi"):
            cls.meeting.append(str(folder / f"meeting{len(cls.meeting)}"))
            subprocess.run([compiler, "-w", str(folder / "meeting.c"), "-o", cls.meeting[-1]], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_it(self, *arguments, **environment):
        return subprocess.run([BUILD / "bin" / "mpiexec", "-n", "2", *arguments], env={**os.environ, **environment},
                              capture_output=True, text=True, timeout=30)

    def assertBothMeet(self, done):
        self.assertEqual((done.returncode, done.stdout), (0, "one of 2\none of 2\n"), done.stderr)

    def test_every_function_has_its_twin_for_tools(self):
        for library in BUILD.glob("lib*/compat/*/libmpi.so.*"):
            listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True, stdout=subprocess.PIPE).stdout
            names = {line.split()[2]: line.split()[1] for line in listing.splitlines()}
            functions = [name for name in names if name.startswith("MPI_") and names[name] == "W"]
            self.assertGreater(len(functions), 600)
            self.assertEqual([f for f in functions if names.get("P" + f) != "T"], [], library)

    def test_without_it_the_remedy_is_named(self):
        for program in self.program.values():
            done = self.run_it(program)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("add --compat auto", done.stderr)

    def test_auto_finds_out(self):
        for program in self.program.values():
            self.assertBothMeet(self.run_it("--compat", "auto", program))

    def test_the_variable_does_the_same(self):
        self.assertBothMeet(self.run_it(self.program["mpich"], STARLING_COMPAT="mpich"))
        self.assertBothMeet(self.run_it("-x", "STARLING_COMPAT=openmpi", self.program["openmpi"]))

    def test_programs_of_both_in_one_job(self):
        done = self.run_it("--compat", "auto", "-n", "1", self.program["mpich"], ":", "-n", "1", self.program["openmpi"])
        self.assertBothMeet(done)

    def test_programs_of_three_interfaces_in_one_job(self):
        parts = [word for program in self.meeting for word in (":", "-n", "2", program)]
        done = self.run_it("--compat", "auto", self.meeting[0], *parts)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), [f"{rank} of 8 met with 0 faults" for rank in range(8)])

    def test_the_wrong_one_is_refused(self):
        done = self.run_it("--compat", "openmpi", self.program["mpich"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("it is linked with MPICH", done.stderr)
        self.assertIn("--compat auto", done.stderr)

    def test_libraries_that_no_shim_stands_in_for(self):
        """Libraries with their MPIs' names, or with names that differ from Starling's in a digit."""
        folder = pathlib.Path(self.folder.name)
        (folder / "other.c").write_text("int MPI_Init(int* argc, char*** argv) { return 0; }")
        (folder / "uses.c").write_text("int MPI_Init(int*, char***); int main(void) { return MPI_Init(0, 0); }")
        for library, mpi in (("libmpi.so.20", "neither MPICH of 3.1 to 5 nor Open MPI 4 or 5"), ("libmpi.so.120", "neither MPICH"),
                             ("libmpi.so.1", "neither MPICH"), ("libmpich.so.10", "MPICH older than 3.1"),
                             ("libmpi_mpifh.so.20", "Open MPI of another series"), ("libmpi_cray.so.12", "Cray MPICH")):
            subprocess.run(["gcc", folder / "other.c", "-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", folder / library], check=True)
            subprocess.run(["gcc", folder / "uses.c", folder / library, f"-Wl,-rpath,{folder}", "-o", folder / "uses"], check=True)
            for setting in ("auto", "mpich", "openmpi"):
                with self.subTest(library=library, setting=setting):
                    done = self.run_it("--compat", setting, folder / "uses")
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(mpi, done.stderr)
                    self.assertIn(f"({library}), whose binary interface Starling has no shim for; compile it with Starling's mpicc", done.stderr)
            done = self.run_it(folder / "uses")
            self.assertNotEqual(done.returncode, 0)
            self.assertNotIn("--compat", done.stderr)

    def test_a_wrong_word(self):
        done = self.run_it("--compat", "lam", self.program["mpich"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("'--compat lam' is neither auto", done.stderr)

    def test_a_wrong_word_in_the_environment(self):
        done = self.run_it(self.program["mpich"], STARLING_COMPAT="lam")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("STARLING_COMPAT=lam is ignored", done.stderr)
        self.assertIn("add --compat auto", done.stderr)


if __name__ == "__main__":
    unittest.main()
