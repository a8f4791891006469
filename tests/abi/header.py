#!/usr/bin/env python3
"""header.py FUNCTIONS.TSV COMPILER...: compiles a call of every function that mpi.h declares, with arguments of its parameters' types and
with the constants allowed for them. No compiler may warn. Each compiler is one word with its language: gcc:c g++:c++."""

import csv
import pathlib
import re
import subprocess
import sys
import tempfile

# Patterns of parameters' declarations, each with the constants that may be passed in place of an ordinary value.
CONSTANTS = (
    (r"(const )?int (source|dest)?weights\[\]", ("MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY")),
    (r"MPI_Status \*status", ("MPI_STATUS_IGNORE",)),
    (r"MPI_Status array_of_statuses\[\]", ("MPI_STATUSES_IGNORE",)),
    (r"int array_of_errcodes\[\]", ("MPI_ERRCODES_IGNORE",)),
    (r"char \*argv\[\]", ("MPI_ARGV_NULL",)),
    (r"char \*\*array_of_argv\[\]", ("MPI_ARGVS_NULL",)),
    (r"(const )?void \*(send|recv)?buf(fer)?", ("MPI_BOTTOM", "MPI_IN_PLACE")),
)


def split(parameters):
    return [p.strip() for p in re.split(r",(?![^(]*\))", parameters) if p.strip() not in ("", "void", "...")]


def name_of(parameter):
    return re.search(r"(\w+)\s*(\[\w*\]\s*)*$", parameter).group(1)


def choices(parameter):
    return next((constants for pattern, constants in CONSTANTS if re.fullmatch(pattern, parameter)), ())


def calls(row):
    """Returns calls with plain arguments, and with each set of constants."""
    parameters = split(row["parameters"])
    plain = [name_of(p) for p in parameters]
    yield plain
    for turn in range(2):
        special = [(choices(p) * 2)[turn] if choices(p) else name_of(p) for p in parameters]
        if special != plain:
            yield special


def program(rows):
    out = ["#include <mpi.h>"]
    for row in rows:
        for i, arguments in enumerate(calls(row)):
            out.append(f"{row['returns']} call{i}_{row['name']}({row['parameters'] or 'void'});")
            out.append(f"{row['returns']} call{i}_{row['name']}({row['parameters'] or 'void'}) {{ return {row['name']}({', '.join(arguments)}); }}")
    return "\n".join(out) + "\n"


def main():
    functions, include, *compilers = sys.argv[1:]
    with open(functions, encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "calls")
        source.write_text(program(rows), encoding="utf-8")
        for word in compilers:
            compiler, language = word.rsplit(":", 1)
            subprocess.run([compiler, "-x", language, "-I", include, "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-c",
                            "-o", f"{folder}/calls.o", str(source)], check=True, timeout=240)


main()
