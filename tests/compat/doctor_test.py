#!/usr/bin/env python3
"""Tests the output of `starling doctor` for programs: doctor_test.py BUILD"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.kept.name)
        cls.write("plain.c", "int main(void) { return 0; }")
        cls.write("one.c", "#include <mpi.h>\nint main(void) { MPI_Init(0, 0); return MPI_Finalize(); }")
        cls.write("file.c", "#include <mpi.h>\nint save(void) { MPI_File file; return MPI_File_open(MPI_COMM_SELF, \"x\", "
                            "MPI_MODE_CREATE, MPI_INFO_NULL, &file); }")
        cls.write("caller.c", "#include <mpi.h>\nint save(void);\nint main(void) { MPI_Init(0, 0); save(); return MPI_Finalize(); }")
        cls.write("maybe.c", "#include <mpi.h>\n__attribute__((weak)) int MPIX_Of_nobody(void);\nint call(void) { MPI_Finalize(); return "
                             "MPIX_Of_nobody ? MPIX_Of_nobody() : 0; }")
        cls.write("odd.c", "#include <mpi.h>\nint MPIX_Of_nobody(void);\nint call(void) { MPI_Finalize(); return MPIX_Of_nobody(); }")

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    @classmethod
    def write(cls, name, text):
        (cls.folder / name).write_text(text)

    def make(self, compiler, source, program, *options):
        made = self.folder / program
        subprocess.run([compiler, "-w", self.folder / source, "-o", made, *options], check=True)
        return made

    def library(self, compiler, source, name):
        return self.make(compiler, source, f"lib{name}.so", "-shared", "-fPIC", f"-Wl,-soname,lib{name}.so")

    def ask(self, *words):
        return subprocess.run([BUILD / "bin" / "starling", "doctor", *words], capture_output=True, text=True, timeout=240)

    def examine(self, program, code=0):
        done = self.ask("--json", program)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        found, = json.loads(done.stdout)
        self.assertEqual(found["healthy"], code == 0)
        return found

    def test_programs_of_each_mpi(self):
        for compiler, interface in (("mpicc.mpich", "mpich"), ("mpicc.openmpi", "openmpi")):
            with self.subTest(interface):
                program = self.make(compiler, "one.c", interface)
                found = self.examine(program)
                self.assertEqual((found["compat"], found["mpi"][0]["interface"], found["absent"]), (interface, interface, {}))
                self.assertEqual(found["mpi"][0]["by"], [interface])
                said = self.ask(program).stdout
                self.assertIn(f"Starling replaces it: mpiexec -n 4 {program}", said)

    def test_a_program_of_starlings_own(self):
        program = self.make(BUILD / "bin" / "mpicc", "one.c", "own")
        self.assertEqual(self.examine(program)["mpi"][0]["interface"], "standard")
        self.assertIn(f"start it by: mpiexec -n 4 {program}", self.ask(program).stdout)

    def test_a_program_in_the_working_directory_needs_no_slash(self):
        """The loader takes a name without a slash for that of a library. A file of another machine it calls missing."""
        program = self.make(BUILD / "bin" / "mpicc", "one.c", "here")
        done = subprocess.run([BUILD / "bin" / "starling", "doctor", "here"], cwd=self.folder, capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("start it by: mpiexec -n 4 here\n", done.stdout)
        content = bytearray(program.read_bytes())
        content[18:20] = (0x5441).to_bytes(2, "little")  # e_machine: an old number of MicroBlaze
        (self.folder / "elsewhere").write_bytes(content)
        self.assertIn("neither a program or library of this machine", self.examine(self.folder / "elsewhere", 1)["problem"])

    def test_a_program_that_needs_no_mpi(self):
        program = self.make("gcc", "plain.c", "plain")
        self.assertEqual(self.examine(program)["mpi"], [])
        self.assertIn("is not linked with an MPI", self.ask(program).stdout)

    def test_an_interface_that_has_no_shim(self):
        """No shim replaces Open MPI before version 4."""
        self.write("old.c", "int MPI_Init(int* argc, char*** argv) { return 0; }")
        self.write("uses.c", "int MPI_Init(int*, char***); int main(void) { return MPI_Init(0, 0); }")
        self.make("gcc", "old.c", "libmpi.so.20", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.20")
        program = self.make("gcc", "uses.c", "uses", str(self.folder / "libmpi.so.20"), f"-Wl,-rpath,{self.folder}")
        self.examine(program, code=1)
        self.assertIn("whose interface Starling has no shim for", self.ask(program).stdout)

    def test_two_mpis_in_one_process(self):
        self.library("mpicc.openmpi", "file.c", "save")
        program = self.make("mpicc.mpich", "caller.c", "both", f"-L{self.folder}", "-lsave", f"-Wl,-rpath,{self.folder}")
        found = self.examine(program, code=1)
        self.assertEqual(found["several"], ["MPICH", "Open MPI"])
        said = self.ask(program).stdout
        self.assertIn("2 MPIs into one process", said)
        self.assertIn("Open MPI libmpi.so.40, for both > libsave.so:", said)

    def test_functions_on_files_are_built(self):
        self.library("mpicc.openmpi", "file.c", "save")
        program = self.make("mpicc.openmpi", "caller.c", "files", f"-L{self.folder}", "-lsave", f"-Wl,-rpath,{self.folder}")
        self.assertEqual(self.examine(program)["unbuilt"], {})
        self.assertNotIn("MPI_ERR_UNSUPPORTED_OPERATION", self.ask(program).stdout)

    def test_functions_of_nobody(self):
        library = self.library("mpicc.mpich", "odd.c", "odd")
        self.assertEqual(self.examine(library, code=1)["absent"], {"MPIX_Of_nobody": "libodd.so"})
        self.assertIn("calls functions that Starling does not have: MPIX_Of_nobody (libodd.so)", self.ask(library).stdout)

    def test_functions_that_a_library_can_do_without(self):
        self.assertEqual(self.examine(self.library("mpicc.mpich", "maybe.c", "maybe"))["absent"], {})

    def test_a_library_that_is_not_there(self):
        library = self.library("mpicc.openmpi", "file.c", "gone")
        program = self.make("mpicc.openmpi", "caller.c", "loses", f"-L{self.folder}", "-lgone")
        library.unlink()
        self.assertEqual(self.examine(program, code=1)["not_found"], {"libgone.so": "loses"})
        self.assertIn("libgone.so is not found, which loses needs", self.ask(program).stdout)

    def test_an_rpath_does_not_prevent_the_shim(self):
        for compiler in ("mpicc.openmpi", "mpicc.mpich"):
            program = self.make(compiler, "one.c", "stubborn", "-Wl,--disable-new-dtags,-rpath,/usr/lib/x86_64-linux-gnu")
            found = self.examine(program)
            self.assertEqual((found["in_spite"], found["absent"]), ("", {}))
            self.assertIn("Starling replaces it", self.ask(program).stdout)

    def test_the_file_is_judged_and_not_its_name(self):
        """Another vendor's libmpi_abi.so.1, found by RUNPATH and by RPATH, and no such file at all."""
        folder = self.folder / "vendor"
        folder.mkdir()
        self.write("vendor.c", "int MPI_Init(int* argc, char*** argv) { return 0; }\nint MPI_Finalize(void) { return 0; }")
        library = self.make("gcc", "vendor.c", "vendor/libmpi_abi.so.1", "-shared", "-fPIC", "-Wl,-soname,libmpi_abi.so.1")
        for tags in ("--enable-new-dtags", "--disable-new-dtags"):
            program = self.make("gcc", "one.c", "abi", f"-I{BUILD}/include", library, f"-Wl,{tags},-rpath,{folder}")
            mpi, = self.examine(program)["mpi"]
            self.assertEqual((mpi["path"], mpi["own"]), (str(library), False))
            self.assertIn(f"that file is not Starling's; mpiexec has it load Starling's instead: mpiexec -n 4 {program}", self.ask(program).stdout)
        program = self.make("gcc", "one.c", "pathless", f"-I{BUILD}/include", library)
        found = self.examine(program)
        self.assertEqual((found["mpi"][0]["path"], found["absent"]), ("", {}))
        self.assertIn(f"which the loader does not find without it: mpiexec -n 4 {program}", self.ask(program).stdout)
        own = self.make(BUILD / "bin" / "mpicc", "one.c", "ours")
        self.assertTrue(self.examine(own)["mpi"][0]["own"])

    def test_scripts(self):
        (self.folder / "inner").write_text(f"#!{self.make('mpicc.mpich', 'one.c', 'shell')} -x\n")
        (self.folder / "script").write_text(f"#!{self.folder / 'inner'}\n")
        found = self.examine(self.folder / "script")
        self.assertEqual((found["interpreter"], found["compat"]), (str(self.folder / "shell"), "mpich"))

    def test_folders(self):
        folder = self.folder / "folder" / "below"
        folder.mkdir(parents=True)
        for source, name in (("plain.c", "folder/plain"), ("one.c", "folder/below/one")):
            self.make("mpicc.mpich", source, name, "-Wl,--as-needed")
        done = self.ask("--json", self.folder / "folder")
        self.assertEqual([pathlib.Path(found["file"]).name for found in json.loads(done.stdout)], ["one"])
        (folder / "one").unlink()
        done = self.ask(self.folder / "folder")
        self.assertEqual((done.returncode, done.stdout), (2, "nothing there is linked with an MPI\n"))

    def test_a_name_that_is_not_utf8(self):
        name = bytes(self.folder) + b"/caf\xe9"
        self.make("mpicc.mpich", "one.c", "cafe").rename(os.fsdecode(name))
        self.assertEqual(self.examine(os.fsdecode(name))["compat"], "mpich")

    def test_the_loader_that_a_file_names_is_not_run(self):
        self.write("proof.c", f'#include <stdio.h>\nint main(void) {{ return !fopen("{self.folder}/proof", "w"); }}')
        trap = self.make("gcc", "proof.c", "trap", "-static")
        found = self.examine(self.make("mpicc.mpich", "one.c", "trapped", f"-Wl,--dynamic-linker={trap}"))
        self.assertEqual((found["compat"], found["absent"]), ("mpich", {}))
        self.assertFalse((self.folder / "proof").exists())

    def test_what_is_no_program(self):
        for name, complaint in (("nosuch", "there is no such file"), (self.folder / "one.c", "neither a program or library")):
            done = self.ask(name)
            self.assertEqual(done.returncode, 1)
            self.assertIn(complaint, done.stdout)
        (self.folder / "cut").write_bytes((self.make("mpicc.mpich", "one.c", "whole")).read_bytes()[:5000])
        self.assertEqual(self.ask(self.folder / "cut").returncode, 1)


if __name__ == "__main__":
    unittest.main()
