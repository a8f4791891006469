#!/usr/bin/env python3
"""Builds small projects like users do, with a tree of Starling: check.py CASE BUILD-DIRECTORY

Cases: show, compile, cmake, autoconf, pkg-config, install, install-strip.
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RING = str(HERE / "ring.c")
RING_CXX = str(HERE / "ring.cpp")
KEPT = str(HERE / "kept.c")


class Failure(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


class Tree:
    """A build tree or an installed tree."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.environment = dict(os.environ, PATH=f"{self.root}/bin:{os.environ['PATH']}")
        for name in list(self.environment):
            if name.endswith(("_CC", "_CXX")) or name in ("CC", "CXX", "LD_LIBRARY_PATH", "DESTDIR"):
                del self.environment[name]

    def run(self, *command, cwd=None, fails=False, **variables):
        """Returns the command's standard output. Fails if its exit code is not as expected."""
        result = subprocess.run(command, cwd=cwd, env={**self.environment, **variables}, timeout=240, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        expect((result.returncode != 0) == fails, f"{' '.join(map(str, command))}: exit {result.returncode}\n"
                                                  f"{result.stdout}")
        return result.stdout

    def ring(self, program, ranks=3):
        out = self.run("mpiexec", "-n", str(ranks), str(program))
        expect(out == f"ring of {ranks}\n", f"{program} printed {out!r}")


def show(tree, work):
    for name, compiler in (("mpicc", "cc"), ("mpicc_abi", "cc"), ("mpicxx", "c++"), ("mpic++", "c++"),
                           ("mpiCC", "c++"), ("mpicxx_abi", "c++")):
        command = tree.run(name, "--showme:command").strip()
        expect(command.endswith((compiler, compiler.replace("cc", "gcc").replace("c++", "g++"))), command)
        compile_flags = tree.run(name, "--showme:compile").split()
        link_flags = tree.run(name, "--showme:link").split()
        expect(compile_flags == [f"-I{tree.root}/include"], compile_flags)
        expect(f"-L{tree.root}/lib" in link_flags and "-lmpi_abi" in link_flags, link_flags)
        expect(tree.run(name, "--showme:incdirs").strip() == f"{tree.root}/include", "incdirs")
        expect(tree.run(name, "--showme:libdirs").strip() == f"{tree.root}/lib", "libdirs")
        expect(tree.run(name, "--showme:libs").strip() == "mpi_abi", "libs")
        expect("Starling" in tree.run(name, "--showme:version"), "version")
        expect(tree.run(name, "-compile_info").split() == [command, *compile_flags], "-compile_info")
        expect(tree.run(name, "-link_info").split() == [command, *link_flags], "-link_info")
        full = [command, *compile_flags, *link_flags]
        for option in ("-show", "--showme", "-showme"):
            expect(tree.run(name, option).split() == full, option)
        expect(tree.run(name, "-show", "-c", "x.c").split() == [command, *compile_flags, "-c", "x.c"], "-show -c")
        expect("unknown option" in tree.run(name, "--showme:nothing", fails=True), "--showme:nothing")
        expect(tree.run(name, "-help") == tree.run(name, "--showme:help"), "-help")
        missing = tree.run(name, "-cc=nosuch -g", "x.c", fails=True)
        expect(missing.startswith(f"{name}: the compiler 'nosuch' is not in PATH"), missing)
    for variable in ("STARLING_CC", "MPICH_CC", "OMPI_CC"):
        expect(tree.run("mpicc", "-show", **{variable: "ccache gcc-99"}).startswith("ccache gcc-99 -I"), variable)
    expect(tree.run("mpicxx", "-show", "-cxx=clang++").startswith("clang++ -I"), "-cxx=")
    for name, flags in (("mpicc", "OMPI_CFLAGS"), ("mpicxx", "OMPI_CXXFLAGS"), ("mpicc", "OMPI_CPPFLAGS")):
        for option in ("--showme:compile", "-show", "-compile_info"):
            expect("-DADDED=1" in tree.run(name, option, **{flags: "-DADDED=1 -g"}).split(), f"{name} {option} with {flags}")
    for flags in ("OMPI_LDFLAGS", "OMPI_LIBS"):
        for option in ("--showme:link", "-show", "-link_info"):
            expect("-L/added" in tree.run("mpicc", option, **{flags: "-L/added -lm"}).split(), f"{option} with {flags}")
    shown = tree.run("mpicc", "-show", "-c", "-DTEXT=\"a b's\"", "two words.c")
    expect(shlex.split(shown)[-3:] == ["-c", "-DTEXT=\"a b's\"", "two words.c"], shown)
    show_fortran(tree, work)
    expect(tree.run("mpicc", "--version") == tree.run("cc", "--version"), "--version")


def show_fortran(tree, work):
    """Modules must be compiled once per compiler, in the directory STARLING_CACHE."""
    cache = {"STARLING_CACHE": str(work / "cache")}
    flags = tree.run("mpifort", "--showme:compile", **cache).split()
    expect(flags[0] == f"-I{tree.root}/include" and flags[1].startswith(f"-I{work}/cache/"), flags)
    expect(flags[2:] == ["-fallow-argument-mismatch", "-fallow-invalid-boz"], flags)
    folder = pathlib.Path(flags[1][2:])
    expect({"mpi.mod", "mpi_f08.mod"} <= {path.name for path in folder.iterdir()}, list(folder.iterdir()))
    made = (folder / "mpi.mod").stat().st_ino
    for name in ("mpifort", "mpif90", "mpif77", "mpifort_abi"):
        expect(tree.run(name, "--showme:compile", **cache).split() == flags, name)
        expect("-lmpifort_abi" in tree.run(name, "--showme:link", **cache).split(), name)
    expect((folder / "mpi.mod").stat().st_ino == made, "the modules were compiled again")
    out = tree.run("mpifort", "x.f90", fails=True, STARLING_FC="no-such-compiler", **cache)
    expect("no-such-compiler" in out and "install a Fortran compiler" in out, out)
    bare = work / "bare"
    bare.mkdir()
    for tool in ("sh", "dirname", "readlink", "cat", "cksum", "tr", "head"):
        (bare / tool).symlink_to(shutil.which(tool))
    out = tree.run(str(tree.root / "bin" / "mpifort"), "x.f90", fails=True, PATH=str(bare), **cache)
    expect("gfortran was not found" in out and "apt install gfortran" in out and "STARLING_FC" in out, out)

    def compiler(name, case):
        """Returns a script that calls gfortran, except for the arguments in `case`."""
        path = work / name
        path.write_text(f'#!/bin/sh\ncase "$*" in {case} esac\nexec gfortran "$@"\n')
        path.chmod(0o755)
        return path

    # Tests a compiler that is not a Fortran compiler, and one that cannot read the modules but must still compile programs with mpif.h.
    odd = compiler("odd", '*) echo "what is $*?" >&2; exit 1 ;;')
    out = tree.run("mpifort", f"-fc={odd}", "-c", "x.f90", fails=True, **cache)
    expect(f"{odd} can't read module mpi," in out and "what is -c" in out, out)
    bad = compiler("old-fortran", '*mpi_f08*.f90*) echo "no such thing as type(*)"; exit 1 ;;')
    (work / "p.f").write_text("      include 'mpif.h'\n      integer e\n      call MPI_INIT(e)\n      call MPI_FINALIZE(e)\n      end\n")
    out = tree.run("mpifort", f"-fc={bad}", "-o", "p", "p.f", cwd=work, **cache)
    expect("can't read module mpi_f08" in out and "no such thing" in out, out)
    tree.run("mpiexec", "-n", "2", str(work / "p"))
    # mpi_f08 must pass array sections by descriptor if the compiler's descriptors are known, otherwise by reference.
    (work / "s.f90").write_text("use mpi_f08\ncall MPI_Init()\nprint *, MPI_SUBARRAYS_SUPPORTED, MPI_ASYNC_PROTECTS_NONBLOCKING\n"
                                "call MPI_Finalize()\nend\n")
    strange = compiler("strange", '*descriptors.f90*) exit 1 ;;')
    for chosen, told in (("gfortran", "T T"), (strange, "F F")):
        expect(not tree.run("mpifort", f"-fc={chosen}", "-o", "s", "s.f90", cwd=work, **cache), f"{chosen} printed something")
        expect(tree.run("mpiexec", "-n", "1", str(work / "s")).split() == told.split(), chosen)
    # Modules must check arguments: valid calls compile, and invalid ones produce no file.
    for call, right in (("MPI_Comm_rank(MPI_COMM_WORLD, n)", True), ("MPI_Comm_rank(MPI_COMM_WORLD, 5)", False),
                        ("MPI_Comm_size(0, n)", False), ("MPI_Barrier(MPI_INTEGER)", False), ("MPI_Send([1], 1)", False)):
        (work / "call.f90").write_text(f"use mpi_f08\ncall {call}\nend\n")
        tree.run("mpifort", "-c", "call.f90", fails=not right, cwd=work, **cache)
    # Integers of 8 bytes must be refused in programs that use MPI.
    (work / "plain.f90").write_text("print *, bit_size(1)\nend\n")
    for source in ("s.f90", "p.f"):
        out = tree.run("mpifort", "-c", "-fdefault-integer-8", source, fails=True, cwd=work, **cache)
        expect(f"{source} uses MPI" in out and "-fdefault-integer-8" in out, out)
    (work / "hidden.inc").write_text("include 'mpif.h'\ninteger e\ncall MPI_Init(e)\n")
    (work / "hides.f90").write_text("include 'hidden.inc'\nend\n")
    (work / "hides.f").write_text("      include 'mpif.h'\n      end\n")
    out = tree.run("mpifort", "-c", "-fdefault-integer-8", "hides.f90", fails=True, cwd=work, **cache)
    expect("mpif.h:" in out and "integers have 4 bytes" in out, out)
    for source in ("hides.f90", "hides.f"):
        tree.run("mpifort", "-c", "-Wall", "-Werror", "-Wno-unused", source, cwd=work, **cache)
    (work / "own.f90").write_text("module own\nuse mpi\nend module\n")
    (work / "user.f90").write_text("use own\ninteger e\ncall MPI_Init(e)\nend\n")
    tree.run("mpifort", "-c", "own.f90", cwd=work, **cache)
    tree.run("mpifort", "-c", "-fdefault-integer-8", "user.f90", fails=True, cwd=work, **cache)
    # mpif.h must allow buffers of several types in one program.
    (work / "mixed.f90").write_text("include 'mpif.h'\ninteger i, e\nreal x\ncall MPI_Bcast(i, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, e)\n"
                                    "call MPI_Bcast(x, 1, MPI_REAL, 0, MPI_COMM_WORLD, e)\nend\n")
    tree.run("mpifort", "-c", "mixed.f90", cwd=work, **cache)
    tree.run("mpifort", "-fdefault-integer-8", "-o", "plain", "plain.f90", cwd=work, **cache)
    expect(tree.run(str(work / "plain")).strip() == "64", "wide integers without MPI")
    # Without a user's cache directory, never use one that another user could replace.
    homeless = {"STARLING_CACHE": "", "XDG_CACHE_HOME": "/proc/none", "TMPDIR": str(work / "shared")}
    shared = work / "shared" / f"starling-{os.getuid()}"
    shared.mkdir(mode=0o755, parents=True)
    for make in (lambda: None, lambda: (shared.rmdir(), (work / "target").mkdir(mode=0o700), shared.symlink_to(work / "target"))):
        make()
        out = tree.run("mpifort", "--showme:compile", fails=True, **homeless)
        expect("name one by STARLING_CACHE" in out, out)
    shared.unlink()
    flags = tree.run("mpifort", "--showme:compile", **homeless).split()
    expect(flags[1].startswith(f"-I{shared}/") and shared.stat().st_mode & 0o777 == 0o700, flags)
    # Several wrappers run at once without a cache: they must compile the modules only once.
    again = {"STARLING_CACHE": str(work / "again")}
    both = [subprocess.Popen(["mpifort", "--showme:compile"], env={**tree.environment, **again}, stdout=subprocess.PIPE, text=True)
            for _ in range(4)]
    said = {process.communicate(timeout=240)[0] for process in both}
    expect(len(said) == 1 and all(process.returncode == 0 for process in both), said)
    expect(len(list((work / "again" / "fortran").iterdir())) == 1, "folders left behind")


def compile_programs(tree, work):
    tree.run("mpicc", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-std=c99", RING, "-o", "one step", cwd=work)
    tree.ring(work / "one step")
    tree.run("mpicc", "-c", RING, "-o", "ring.o", '-DQUOTED="a b"', cwd=work)
    tree.run("mpicc", "ring.o", "-o", "two_steps", cwd=work)
    tree.ring(work / "two_steps")
    # MPICH's -echo must not reach the compiler, for which it is an option with an argument.
    out = tree.run("mpicc", "-echo", "-mt_mpi", RING, "-o", "with_echo", cwd=work)
    expect(out.strip() == tree.run("mpicc", "-show", RING, "-o", "with_echo", cwd=work).strip(), out)
    tree.ring(work / "with_echo")
    tree.run("mpicxx", "-Wall", "-Wextra", "-Wpedantic", "-Werror", RING_CXX, "-o", "ring_cxx", cwd=work)
    tree.ring(work / "ring_cxx")
    for language, compiler in (("c", "mpicc"), ("c++", "mpicxx")):
        tree.run(compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-x", language, KEPT, "-lstarling_keep", "-o", "kept", cwd=work)
        out = tree.run("mpiexec", "-n", "3", str(work / "kept"))
        expect(out == "the blocks' sum is 7\n", f"kept, as {language}, printed {out!r}")
    # Some build systems know only -L and -l, which do not record the library's path in the program.
    tree.run("cc", RING, f"-I{tree.root}/include", f"-L{tree.root}/lib", "-lmpi_abi", "-o", "without_path", cwd=work)
    tree.ring(work / "without_path")
    tree.run("cc", RING, f"-I{tree.root}/include", f"-L{tree.root}/lib", "-lmpi", "-o", "by_short_name", cwd=work)
    expect("[libmpi_abi.so.1]" in tree.run("readelf", "-d", "by_short_name", cwd=work), "-lmpi")
    tree.ring(work / "by_short_name")
    link = work / "elsewhere"
    link.symlink_to(tree.root / "bin" / "mpicc")
    tree.run(str(link), RING, "-o", "through_link", cwd=work)
    tree.ring(work / "through_link")


def cmake(tree, work):
    out = tree.run("cmake", "-S", str(HERE / "cmake-project"), "-B", str(work))
    expect("MPI_C_VERSION=5.0 MPI_CXX_VERSION=5.0" in out, out)
    expect(f"MPIEXEC={tree.root}/bin/mpiexec" in out and f"MPI_C_COMPILER={tree.root}/bin/mpicc" in out, out)
    tree.run("cmake", "--build", str(work))
    out = tree.run("ctest", "--test-dir", str(work), "--output-on-failure", "--timeout", "60")
    expect("100% tests passed, 0 tests failed out of 2" in out, out)


def autoconf(tree, work):
    project = work / "project"
    shutil.copytree(HERE / "autoconf-project", project)
    for source in (RING, RING_CXX):
        shutil.copy(source, work)
    tree.run("autoreconf", "--install", cwd=project)
    for compilers in ({}, {"MPICC": f"{tree.root}/bin/mpicc", "MPICXX": f"{tree.root}/bin/mpicxx"}):
        out = tree.run("./configure", cwd=project, **compilers)
        expect("checking size of MPI_Comm... 8" in out, out)
        tree.run("make", "-B", cwd=project)
        tree.ring(project / "ring_c")
        tree.ring(project / "ring_cxx")


def pkg_config(tree, work):
    for name in ("starling", "mpi_abi"):
        flags = tree.run("pkg-config", "--cflags", "--libs", name,
                         PKG_CONFIG_PATH=f"{tree.root}/lib/pkgconfig").split()
        tree.run("cc", RING, "-o", name, *flags, cwd=work)
        tree.ring(work / name)


def install(tree, work):
    tree.run("cmake", "--install", str(tree.root), "--prefix", "/opt/starling", DESTDIR=str(work / "stage"))
    staged = work / "stage" / "opt" / "starling"
    expect(not [p for p in (work / "stage").rglob("*") if p.is_file() and staged not in p.parents],
           "files outside the prefix")
    moved = work / "moved"
    staged.rename(moved)
    installed = Tree(moved)
    library = moved / "lib" / "libmpi_abi.so.1"
    expect(library.is_file() and os.readlink(moved / "lib" / "libmpi_abi.so") == "libmpi_abi.so.1", "library names")
    soname = tree.run("readelf", "-d", str(library))
    expect("soname: [libmpi_abi.so.1]" in soname and "stdc++" not in soname, soname)
    keep = tree.run("readelf", "-d", str(moved / "lib" / "libstarling_keep.so.1"))
    expect("soname: [libstarling_keep.so.1]" in keep and "stdc++" not in keep and "[$ORIGIN]" in keep, keep)
    for path in (p for p in moved.rglob("*") if p.is_file()):
        text = path.read_bytes()
        # Only ELF files may name the build tree: debuggers find the sources there by the debug information.
        expect(text.startswith(b"\x7fELF") or str(tree.root).encode() not in text, f"{path} names the build tree")
    show(installed, work)
    compile_programs(installed, work)
    pkg_config(installed, work)
    out = installed.run("ldd", str(work / "ring_cxx"))
    expect(f"{moved}/lib/libmpi_abi.so.1" in out, out)


def install_strip(tree, work):
    """An installation without debug information works, and no file names the build tree."""
    tree.run("cmake", "--install", str(tree.root), "--prefix", str(work / "stripped"), "--strip")
    installed = Tree(work / "stripped")
    for path in (p for p in (work / "stripped").rglob("*") if p.is_file() and not p.is_symlink()):
        data = path.read_bytes()
        expect(str(tree.root).encode() not in data, f"{path} names the build tree")
        if data.startswith(b"\x7fELF"):
            sections = tree.run("readelf", "--section-headers", "--wide", str(path))
            expect(".symtab" not in sections and ".debug_" not in sections, f"{path} is not stripped")
    compile_programs(installed, work)


CASES = {"show": show, "compile": compile_programs, "cmake": cmake, "autoconf": autoconf, "pkg-config": pkg_config,
         "install": install, "install-strip": install_strip}


def main():
    case, build = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="wrappers-") as work:
        try:
            CASES[case](Tree(build), pathlib.Path(work).resolve())
        except (Failure, subprocess.TimeoutExpired) as failure:
            sys.exit(f"{case}: {failure}")
    print(f"{case}: ok")


if __name__ == "__main__":
    main()
