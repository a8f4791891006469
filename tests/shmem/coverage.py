#!/usr/bin/env python3
"""Which OpenSHMEM functions no test calls: holds the table against the symbols that the test programs want.

    coverage.py LIST-OF-FUNCTIONS PROGRAM...
"""
import subprocess
import sys

generator, programs = sys.argv[1], sys.argv[2:]
functions = set(subprocess.run([sys.executable, "-B", generator, "list"], check=True, capture_output=True, text=True).stdout.split())
wanted = set()
for program in programs:
    symbols = subprocess.run(["nm", "-D", "--undefined-only", program], check=True, capture_output=True, text=True).stdout
    wanted |= {line.split()[-1].split("@")[0] for line in symbols.splitlines()}
untested = sorted(functions - wanted)
print(f"{len(functions) - len(untested)} of {len(functions)} functions are called by a test")
if untested:
    print("not called: " + " ".join(untested))
sys.exit(bool(untested) or not functions)
