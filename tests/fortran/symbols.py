#!/usr/bin/env python3
"""symbols.py LIBRARY FILE...: checks that the library has every procedure that the modules and mpif.h declare."""

import re
import subprocess
import sys

NAME = re.compile(r"^\s*(?:[\w()=,* ]*\s)?(?:subroutine|function)\s+(\w+)\s*\(", re.I)
BOUND = re.compile(r"bind\(C, *name='(\w+)'\)", re.I)


def declared(path):
    """Returns the declared procedures' symbols: names in lower case with an underscore, or the names given by bind(C)."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"&\s*\n\s*&?", "", file.read())
    abstract = False
    for line in text.splitlines():
        word = line.strip().lower()
        if word.startswith("abstract interface"):
            abstract = True
        elif word.startswith("end interface"):
            abstract = False
        elif word.startswith("external "):
            names = (name.strip(" :") for name in word.removeprefix("external ").split(","))
            yield from (f"{name}_" for name in names if name.startswith(("mpi_", "pmpi_")))  # others are arguments
        elif not abstract and not word.startswith("end") and (found := NAME.match(line)):
            bound = BOUND.search(line)
            yield bound.group(1) if bound else found.group(1).lower() + "_"


def main():
    library, *files = sys.argv[1:]
    listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True, stdout=subprocess.PIPE).stdout
    symbols = {line.split()[-1] for line in listing.splitlines()}
    for path in files:
        wanted = set(declared(path))
        assert len(wanted) > 15, f"{path} declares {len(wanted)} procedures"
        assert not wanted - symbols, f"{path} declares what {library} does not have: {sorted(wanted - symbols)}"


main()
