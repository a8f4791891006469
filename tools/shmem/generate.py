#!/usr/bin/env python3
"""Generates sources and headers from the table of the OpenSHMEM C interface.

    generate.py header DIR               shmem.h, pshmem.h, shmemx.h and mpp/shmem.h
    generate.py entries SOURCE-DIR DIR   liboshmem's entry points and the list of built functions; SOURCE-DIR is src/oshmem
    generate.py list                     all functions, one name per line

A file is only written when its content changes.
"""

import sys
from pathlib import Path

import entries
import header
import table


def write_if_changed(path, text):
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "header":
        files, target = header.write_all(), Path(arguments[1])
    elif len(arguments) == 3 and arguments[0] == "entries":
        files, target = entries.write(Path(arguments[1])), Path(arguments[2])
    elif arguments == ["list"]:
        print("\n".join(f.name for f in table.functions()))
        return
    else:
        sys.exit(__doc__)
    for name, text in files.items():
        write_if_changed(target / name, text)


if __name__ == "__main__":
    main(sys.argv[1:])
