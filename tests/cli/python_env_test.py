#!/usr/bin/env python3
"""Tests `starling python-env` with mpi4py packages of each kind: a wheel's, one that is linked with another MPI, and one of Starling's.

    python_env_test.py BUILD [TestClass[.test]]...
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
STARLING = BUILD / "bin/starling"
MPICH = BUILD / "lib/compat/mpich/libmpi.so.12"
CLEAN = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "MPI4PY_LIBMPI", "MPI4PY_MPIABI")}
DEBIANS = pathlib.Path("/usr/lib/python3/dist-packages/mpi4py")


def run(*command, code=0, **environment):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=240, check=False,
                            env={**CLEAN, **environment})
    assert result.returncode == code, (command, result)
    return result.stdout if code == 0 else result.stderr


class Case(unittest.TestCase):
    """Each test has a virtual environment, into which it puts a package called mpi4py."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        run("/usr/bin/python3", "-m", "venv", "--without-pip", self.folder / "env")
        self.python = self.folder / "env/bin/python"
        self.packages = next((self.folder / "env/lib").glob("python*/site-packages"))
        self.file = self.packages / "starling-mpi4py.pth"

    def put_mpi4py(self, *modules):
        (self.packages / "mpi4py").mkdir()
        for name in ("__init__.py", *modules):
            (self.packages / "mpi4py" / name).touch()
        return self.packages / "mpi4py"

    def link(self, file, *words):
        run("cc", "-shared", "-nostdlib", "-o", file, "-Wl,--no-as-needed", *words, "-x", "c", "/dev/null")

    def python_env(self, *words, code=0, **environment):
        return run(STARLING, "python-env", *words, self.python, code=code, **environment)

    def value_in_shell(self, name, **environment):
        """Returns the value of a variable after a shell has evaluated the output, once as one line and once as it is."""
        values = {run("sh", "-c", f'eval {quote}$({STARLING} python-env {self.python}){quote}; echo "${name}"', **environment)
                  for quote in ("", '"')}
        self.assertEqual(len(values), 1)
        return values.pop().strip()


class Wheel(Case):
    def setUp(self):
        super().setUp()
        self.put_mpi4py("MPI.mpich.cpython-311.so", "MPI.openmpi.cpython-311.so")

    def test_variable(self):
        self.assertEqual(self.value_in_shell("MPI4PY_LIBMPI"), str(MPICH))
        self.assertEqual(self.value_in_shell("MPI4PY_MPIABI", MPI4PY_MPIABI="openmpi"), "")
        self.assertTrue(self.python_env("--shell", "fish").startswith(f"set -gx MPI4PY_LIBMPI '{MPICH}';\n"))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_reads_its_commands(self):
        self.assertEqual(run("fish", "--no-config", "-c", f"{STARLING} python-env --shell fish {self.python} | source; echo $MPI4PY_LIBMPI").strip(),
                         str(MPICH))

    def test_install_and_remove(self):
        ask = (self.python, "-c", "import os; print(os.environ.get('MPI4PY_LIBMPI'))")
        self.assertEqual(run(*ask).strip(), "None")
        self.assertIn(str(self.file), self.python_env("--install"))
        library = run(*ask).strip()
        self.assertEqual(library, str(MPICH))
        load = f"import ctypes, sys; library = ctypes.CDLL('{library}'); print(library.MPI_Init(None, None), library.MPI_Finalize())"
        self.assertEqual(run(self.python, "-c", load).strip(), "0 0")
        self.assertEqual(run(*ask, MPI4PY_LIBMPI="/another").strip(), "/another")  # the user's own value counts
        self.assertIn(str(self.file), self.python_env("--remove"))
        self.assertEqual(run(*ask).strip(), "None")
        self.assertIn("nothing was removed", self.python_env("--remove", code=1))

    def test_folder_that_is_not_there(self):
        self.packages.rename(self.packages.with_name("elsewhere"))
        error = self.python_env("--install", code=1, PYTHONPATH=str(self.packages.with_name("elsewhere")))
        self.assertIn(f"cannot write {self.file}", error)

    def test_module_for_the_standard_abi_is_preferred(self):
        (self.packages / "mpi4py/MPI.mpiabi.cpython-311.so").touch()
        self.assertEqual(self.value_in_shell("MPI4PY_LIBMPI"), str(BUILD / "lib/libmpi_abi.so.1"))


class Linked(Case):
    def test_with_another_mpi(self):
        self.link(self.folder / "libmpi.so.40", "-Wl,-soname,libmpi.so.40")
        self.link(self.put_mpi4py() / "MPI.cpython-311.so", self.folder / "libmpi.so.40")
        shim = str(BUILD / "lib/compat/openmpi")
        self.assertEqual(self.value_in_shell("LD_LIBRARY_PATH"), shim)
        self.assertEqual(self.value_in_shell("LD_LIBRARY_PATH", LD_LIBRARY_PATH="/before"), shim + ":/before")
        self.assertIn("linked with libmpi.so.40", self.python_env())
        self.assertIn("only LD_LIBRARY_PATH", self.python_env("--install", code=1))
        self.assertFalse(self.file.exists())

    def test_with_starling(self):
        self.link(self.put_mpi4py() / "MPI.cpython-311.so", BUILD / "lib/libmpi_abi.so", f"-Wl,-rpath,{BUILD / 'lib'}")
        self.assertTrue(self.python_env().startswith("# nothing is needed"))
        self.python_env("--install")
        self.assertFalse(self.file.exists())

    def test_with_no_mpi(self):
        self.link(self.put_mpi4py() / "MPI.cpython-311.so")
        self.assertIn("linked with no MPI library", self.python_env(code=1))

    @unittest.skipUnless(DEBIANS.is_dir(), "python3-mpi4py is not installed")
    def test_debians(self):
        code = "from mpi4py import MPI; print(MPI.Get_library_version())"
        command = f"eval \"$({STARLING} python-env /usr/bin/python3)\"; /usr/bin/python3 -c '{code}'"
        self.assertTrue(run("sh", "-c", command).startswith("Starling"))


class Errors(Case):
    def test_no_mpi4py(self):
        self.assertIn("has no mpi4py; install it by", self.python_env(code=1))

    def test_what_is_no_python(self):
        self.assertIn("cannot be started: No such file", run(STARLING, "python-env", "/nowhere/at/all", code=1))
        self.assertIn("is not a Python 3 interpreter", run(STARLING, "python-env", "true", code=1))
        endless = self.folder / "endless"
        endless.write_text("#!/bin/sh\nexec yes\n")
        endless.chmod(0o755)
        self.assertIn("has not answered", run(STARLING, "python-env", endless, code=1))

    def test_options_that_exclude_each_other(self):
        self.assertIn("--install excludes --remove", self.python_env("--install", "--remove", code=2))


if __name__ == "__main__":
    unittest.main()
