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
        cls.program, cls.stubborn = {}, {}
        for mpi in ("mpich", "openmpi"):
            cls.program[mpi] = str(folder / mpi)
            subprocess.run([f"mpicc.{mpi}", "-w", str(folder / "one.c"), "-o", cls.program[mpi]], check=True)
            cls.stubborn[mpi] = cls.program[mpi] + "-rpath"
            subprocess.run([f"mpicc.{mpi}", "-w", str(folder / "one.c"), "-o", cls.stubborn[mpi],
                            "-Wl,--disable-new-dtags,-rpath,/usr/lib/x86_64-linux-gnu"], check=True)
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
                              capture_output=True, text=True, timeout=240)

    def assertBothMeet(self, done):
        self.assertEqual((done.returncode, done.stdout), (0, "one of 2\none of 2\n"), done.stderr)

    def test_every_function_has_its_twin_for_tools(self):
        for library in BUILD.glob("lib*/compat/*/libmpi.so.*"):
            listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True, stdout=subprocess.PIPE).stdout
            names = {line.split()[2]: line.split()[1] for line in listing.splitlines()}
            functions = [name for name in names if name.startswith("MPI_") and names[name] == "W"]
            self.assertGreater(len(functions), 600)
            self.assertEqual([f for f in functions if names.get("P" + f) != "T"], [], library)

    def script(self, name, text):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def test_when_it_is_off_the_remedy_is_named(self):
        for program in (*self.program.values(), *self.stubborn.values()):
            done = self.run_it("--compat", "off", program)
            self.assertEqual((done.returncode, done.stdout), (127, ""))
            self.assertIn("add --compat auto", done.stderr)

    def test_auto_finds_out(self):
        for program in self.program.values():
            self.assertBothMeet(self.run_it(program))
            self.assertBothMeet(self.run_it("--compat", "auto", program))

    def test_an_rpath(self):
        for program in self.stubborn.values():
            self.assertBothMeet(self.run_it(program))

    def test_start_scripts_and_interpreters(self):
        """A script that sets the path itself, as R's does, and a program that loads its MPI with dlopen, from a module with an RPATH."""
        folder = pathlib.Path(self.folder.name)
        for mpi, program in self.program.items():
            self.assertBothMeet(self.run_it(self.script("start", f"#!/bin/sh\nexport LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu\nexec {program}\n")))
            (folder / "module.c").write_text(SOURCE.replace("int main(", "int run("))
            subprocess.run([f"mpicc.{mpi}", "-w", "-shared", "-fPIC", folder / "module.c", "-o", folder / "module.so",
                            "-Wl,--disable-new-dtags,-rpath,/usr/lib/x86_64-linux-gnu"], check=True)
            load = f"import ctypes; ctypes.CDLL('{folder}/module.so').run(0, None)"
            self.assertBothMeet(self.run_it(sys.executable, "-c", load))

    def test_a_file_that_has_another_name_than_its_library(self):
        """mpi4py loads lib/libmpi.so of its environment, then a module that needs libmpi.so.12, which the loader takes for loaded."""
        folder = pathlib.Path(self.folder.name) / "environment"
        folder.mkdir()
        (folder / "module.c").write_text(SOURCE.replace("int main(", "int run("))
        for mpi, original, name in (("mpich", "libmpich.so.12", "libmpi.so"), ("openmpi", "libmpi.so.40", "libmpi.so.40.9.9")):
            (folder / name).symlink_to(f"/usr/lib/x86_64-linux-gnu/{original}")
            subprocess.run([f"mpicc.{mpi}", "-w", "-shared", "-fPIC", folder / "module.c", "-o", folder / "module.so"], check=True)
            load = f"import ctypes; ctypes.CDLL('{folder}/{name}', 0); ctypes.CDLL('{folder}/module.so').run(0, None)"
            with self.subTest(mpi):
                self.assertBothMeet(self.run_it(sys.executable, "-c", load))

    def test_fortran_with_an_rpath(self):
        folder = pathlib.Path(self.folder.name)
        (folder / "one.f90").write_text("program one\nuse mpi\ninteger n, e\ncall MPI_Init(e)\ncall MPI_Comm_size(MPI_COMM_WORLD, n, e)\n"
                                        "print '(A,I0)', 'one of ', n\ncall MPI_Finalize(e)\nend\n")
        for mpi in self.program:
            subprocess.run([f"mpif90.{mpi}", folder / "one.f90", "-J", folder, "-o", folder / "fortran",
                            "-Wl,--disable-new-dtags,-rpath,/usr/lib/x86_64-linux-gnu"], check=True)
            self.assertBothMeet(self.run_it(folder / "fortran"))

    def test_another_vendors_library_of_the_standards_interface(self):
        """It has the same name as Starling's: found by RUNPATH, by RPATH, by LD_LIBRARY_PATH, and not found."""
        folder = pathlib.Path(self.folder.name) / "vendor"
        folder.mkdir()
        (folder / "vendor.c").write_text("int MPI_Init(int* c, char*** v) { return 0; }\nint MPI_Finalize(void) { return 0; }\n"
                                         "int MPI_Comm_size(void* comm, int* n) { *n = 1; return 0; }")
        library = folder / "libmpi_abi.so.1"
        subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libmpi_abi.so.1", folder / "vendor.c", "-o", library], check=True)
        for tags in (["-Wl,--enable-new-dtags,-rpath," + str(folder)], ["-Wl,--disable-new-dtags,-rpath," + str(folder)], []):
            program = folder / "program"
            subprocess.run(["gcc", f"-I{BUILD}/include", folder.parent / "one.c", library, "-o", program, *tags], check=True)
            self.assertBothMeet(self.run_it(program))
            self.assertBothMeet(self.run_it(program, LD_LIBRARY_PATH=str(folder)))
            self.assertBothMeet(self.run_it(self.script("vendors", f"#!/bin/sh\nexport LD_LIBRARY_PATH={folder}\nexec {program}\n")))
        alone = self.run_it("-n", "2", program, LD_LIBRARY_PATH=str(folder), STARLING_SINGLETON="allow")
        self.assertEqual((alone.returncode, alone.stdout), (0, "one of 1\none of 1\n"), alone.stderr)

    def test_a_library_that_was_not_replaced_is_an_error(self):
        """With --compat off an interpreter loads Open MPI: mpiexec ends the job."""
        folder = pathlib.Path(self.folder.name)
        load = "import ctypes, time; ctypes.CDLL('libmpi.so.40', ctypes.RTLD_GLOBAL); time.sleep(60)"
        done = self.run_it("--compat", "off", sys.executable, "-c", load)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has loaded Open MPI (libmpi.so.40", done.stderr)
        self.assertIn("STARLING_SINGLETON=allow", done.stderr)

    def test_a_shim_is_accepted_before_it_has_loaded_the_library(self):
        """The loader maps a shim, which has another MPI's name, before the library behind it; mpiexec may look between both."""
        shims = [str(BUILD / "lib/compat" / name) for name in ("mpich/libmpi.so.12", "openmpi/libmpi.so.40")]
        load = ("import mmap, sys, time\n"
                f"files = [open(shim, 'rb') for shim in {shims}]\n"
                "maps = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) for file in files]\n"
                "time.sleep(1.5)\nprint('was not ended')")  # two looks or more
        done = self.run_it(sys.executable, "-c", load)
        self.assertEqual((done.returncode, done.stdout), (0, 2 * "was not ended\n"), done.stderr)

    def test_mpich_that_was_not_replaced_does_not_start_alone(self):
        """Its MPI_Init fails, however short the program is."""
        folder = pathlib.Path(self.folder.name)
        (folder / "quick.c").write_text(SOURCE.replace("int main(", "int run("))
        subprocess.run(["mpicc.mpich", "-w", "-shared", "-fPIC", folder / "quick.c", "-o", folder / "quick.so"], check=True)
        load = f"import ctypes; ctypes.CDLL('{folder}/quick.so').run(0, None)"
        done = self.run_it("--compat", "off", sys.executable, "-c", load)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("one of 1", done.stdout)

    def test_another_launcher_within_a_rank(self):
        """Its processes are one job, as without Starling's mpiexec around it."""
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        for mpi, launcher in (("mpich", ["mpiexec.mpich"]), ("openmpi", ["mpirun.openmpi", "--oversubscribe"])):
            for program in (self.program[mpi], self.stubborn[mpi]):
                done = self.run_it("-n", "1", *launcher, "-n", "2", program, **root)
                self.assertBothMeet(done)

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
        self.assertIn("STARLING_COMPAT=lam is ignored", done.stderr)
        self.assertBothMeet(done)


if __name__ == "__main__":
    unittest.main()
