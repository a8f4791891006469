#!/usr/bin/env python3
"""Tests that profiles name the lines of the program: through shims, Fortran, tools, and mpi4py.

    sites_test.py BUILD [TestClass[.test]]...

STARLING_TEST_PYTHON is another interpreter for the class Python, one that has mpi4py.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from launcher_test import BUILD, MPIEXEC, Case  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
STARLING = BUILD / "bin" / "starling"
MPICC = BUILD / "bin" / "mpicc"
PYTHON = os.environ.get("STARLING_TEST_PYTHON", "/usr/bin/python3")  # that of Debian's python3-mpi4py


def line_of(file, comment):
    """Returns the number of the line with this comment."""
    [number] = [i for i, line in enumerate((HERE / file).read_text().splitlines(), 1) if re.search(rf"(/\*|!|#) {comment}", line)]
    return number


class SitesCase(Case):
    def path(self, name):
        return pathlib.Path(self.directory, name)

    def compile(self, *arguments, compiler=MPICC, name="lines"):
        subprocess.run([compiler, "-g", "-O2", "-o", self.path(name), *arguments], check=True, timeout=240)
        return self.path(name)

    def run_profiled(self, *arguments):
        code, _, err = self.mpiexec(f"--profile={self.path('p.jsonl')}", *arguments)
        self.assertEqual(code, 0, err)
        return [json.loads(line) for line in self.path("p.jsonl").read_text().splitlines()]

    def shown(self):
        done = subprocess.run([STARLING, "profile", "show", self.path("p.jsonl")], text=True, capture_output=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def sites_of(self, table):
        """Returns {(site, call)} of a table of the report."""
        rows = re.search(rf"\n{table}.*\n.*\n((?:  .*\n)+)", self.shown()).group(1).splitlines()
        return {tuple(re.split(r"  +", row.strip())[:2]) for row in rows}

    def check(self, file, function, receiver=None):
        """Both tables must have the program's line; `receiver` is the function with the late receive."""
        self.assertIn((f"{file}:{line_of(file, 'reduction')} ({function})", "allreduce <=64"), self.sites_of("Collective calls"))
        if receiver:
            waits = {(site, call.removesuffix("_c")) for site, call in self.sites_of("Waits by call site")}
            self.assertIn((f"{file}:{line_of(file, 'receive')} ({receiver})", "MPI_Recv"), waits)


class Lines(SitesCase):
    def test_a_program_with_debug_information(self):
        """The functions are inlined into main, and must be named nevertheless."""
        self.run_profiled("-n", 3, self.compile(HERE / "lines.c"))
        self.check("lines.c", "sum", "take")
        self.assertIn("\nRank 1 is late: the others wait ", self.shown())

    def test_the_profile_is_read_where_the_program_is_not(self):
        self.run_profiled("-n", 3, self.compile(HERE / "lines.c"))
        self.path("lines").unlink()
        self.check("lines.c", "sum", "take")

    def test_without_the_lines_of_mpiexec_the_same_build_is_needed(self):
        """A profile of a killed mpiexec has no lines of sites: `show` then looks into the program, unless it is another build."""
        lines = self.run_profiled("-n", 3, self.compile(HERE / "lines.c"))
        self.assertTrue([line for line in lines if line["kind"] == "site"])
        self.path("p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines if line["kind"] != "site"))
        self.check("lines.c", "sum", "take")
        self.compile("-DOTHER", "-O0", HERE / "lines.c")
        self.assertRegex(str(self.sites_of("Collective calls")), r"'lines\+0x[0-9a-f]+', 'allreduce")

    def test_a_program_without_debug_information(self):
        program = self.compile("-g0", "-fno-inline", HERE / "lines.c")
        self.run_profiled("-n", 2, program)
        self.assertIn(("sum (lines)", "allreduce <=64"), self.sites_of("Collective calls"))

    def test_the_use_of_cores(self):
        [end, _] = [line for line in self.run_profiled("-n", 2, self.compile(HERE / "lines.c")) if line["kind"] == "end"]
        cpus = {cpu for first, last in end["cores"]["cpus"] for cpu in range(first, last + 1)}
        self.assertEqual(cpus, os.sched_getaffinity(0))
        self.assertGreater(end["cores"]["cpu"], 0)
        self.assertGreaterEqual(end["cores"]["polled"], 0)


class Wrappers(SitesCase):
    def test_a_tool_that_defines_the_function(self):
        self.compile("-shared", "-fPIC", HERE / "layer.c", name="liblayer.so")
        self.run_profiled("-n", 3, self.compile(HERE / "lines.c", self.path("liblayer.so"), f"-Wl,-rpath,{self.directory}"))
        self.check("lines.c", "sum", "take")

    def test_a_tool_within_the_program(self):
        self.run_profiled("-n", 3, self.compile(HERE / "lines.c", HERE / "layer.c"))
        self.check("lines.c", "sum", "take")

    def test_fortran(self):
        self.run_profiled("-n", 2, self.compile(HERE / "lines.f90", compiler=BUILD / "bin" / "mpifort"))
        self.check("lines.f90", "sum")

    def test_shims(self):
        for interface in ("openmpi", "mpich"):
            self.compile(HERE / "lines.c", compiler=f"/usr/bin/mpicc.{interface}")
            self.run_profiled("--compat", interface, "-n", 3, self.path("lines"))
            self.check("lines.c", "sum", "take")


class Python(SitesCase):
    def test_mpi4py(self):
        self.run_profiled("-n", 3, PYTHON, HERE / "lines.py")
        self.check("lines.py", "total", "take")

    def test_with_a_second_thread(self):
        """Another thread may hold the interpreter's lock, so each call must find its thread's line without it."""
        self.run_profiled("-n", 3, PYTHON, HERE / "lines.py", "threads")
        self.check("lines.py", "total", "take")
        sites = self.sites_of("Collective calls")
        self.assertIn(f"lines.py:{line_of('lines.py', 'barrier')} (follow)", {site for site, call in sites if call.startswith("barrier")})
        self.assertFalse([site for site, _ in sites if "MPI." in site], sites)


if __name__ == "__main__":
    groups = sys.argv[2:]
    unittest.main(argv=[sys.argv[0], *groups], verbosity=1)
