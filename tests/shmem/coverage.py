#!/usr/bin/env python3
"""Lists the OpenSHMEM functions that no test calls. Compares the table with the undefined symbols of all programs that are run, and the
C11 generics, which leave no symbols, with the source of the program that calls them all.

    coverage.py LIST-OF-FUNCTIONS GENERICS.C PROGRAM...
"""
import csv
import pathlib
import re
import subprocess
import sys

generator, generics_program, programs = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text(), sys.argv[3:]
functions = set(subprocess.run([sys.executable, "-B", generator, "list"], check=True, capture_output=True, text=True).stdout.split())
wanted = set()
for program in programs:
    symbols = subprocess.run(["nm", "-D", "--undefined-only", program], check=True, capture_output=True, text=True).stdout
    wanted |= {line.split()[-1].split("@")[0] for line in symbols.splitlines()}
untested = sorted(functions - wanted)
with open(generator.with_name("generics.tsv")) as table:
    generics = {row["name"] for row in csv.DictReader(table, delimiter="\t")}
unused = sorted(name for name in generics if not re.search(rf"\b{name}\(", generics_program))
print(f"{len(functions) - len(untested)} of {len(functions)} functions are called by a test")
print(f"{len(generics) - len(unused)} of {len(generics)} generics are")
if untested or unused:
    print("not called: " + " ".join(untested + unused))
sys.exit(bool(untested or unused) or not functions or not generics)
