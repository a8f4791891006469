#!/usr/bin/env python3
"""Generates sources and headers from the table of the MPI 5.0 C interface.

    generate.py header FILE              mpi.h, and mpi-ext.h beside it
    generate.py entries SOURCE-DIR DIR   the library's entry points and the list of built functions;
                                         SOURCE-DIR is src/mpi, whose headers declare the implementations
    generate.py compat INTERFACE DIR     the sources of the shim for another interface (mpich, openmpi)
    generate.py fortran DIR INCLUDE-DIR MODULE-DIR
                                         the Fortran interfaces: entry points, mpif.h, modules

A file is only written when its content changes.
"""

import sys
from pathlib import Path

import header


def write_if_changed(path, text):
    path = Path(path)
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "header":
        write_if_changed(arguments[1], header.write())
        write_if_changed(Path(arguments[1]).with_name("mpi-ext.h"), header.write_extensions())
    elif len(arguments) == 3 and arguments[0] == "entries":
        import entries

        for name, text in entries.write(Path(arguments[1])).items():
            write_if_changed(Path(arguments[2]) / name, text)
    elif len(arguments) == 3 and arguments[0] == "compat":
        import compat
        import fortran
        import sections

        files = compat.write(arguments[1]) | {"fortran.cpp": fortran.entries(compat.extensions())}
        if arguments[1] == "mpich":
            files["sections.cpp"] = sections.entries(sections.mpich)
        for name, text in files.items():
            write_if_changed(Path(arguments[2]) / name, text)
    elif len(arguments) == 4 and arguments[0] == "fortran":
        import fortran
        import sections

        library, headers, modules = fortran.write()
        library["sections.cpp"] = sections.entries(sections.native)
        for folder, files in zip(arguments[1:], (library, headers, modules)):
            for name, text in files.items():
                write_if_changed(Path(folder) / name, text)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
