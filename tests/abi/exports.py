#!/usr/bin/env python3
"""Checks that the library exports exactly the tables' symbols: exports.py LIBRARY FUNCTIONS.TSV EXTENSIONS.TSV DOOR OUTSIDE

DOOR declares the functions that liboshmem calls (src/shmem/runtime_abi.h), OUTSIDE those that the Fortran interfaces call
(src/base/fortran_hooks.h)."""

import csv
import pathlib
import re
import subprocess
import sys

library, *tables, door, outside = sys.argv[1:]
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(tables[0]).parent))
import table as abi  # noqa: E402

names = []
for table in tables:
    with open(table, newline="") as file:
        names += [row["name"] for row in csv.DictReader(file, delimiter="\t")]
names += [f.name for f in abi.conversions()]
wanted = {name: "W" for name in names} | {"P" + name: "T" for name in names}
wanted["starling_set_foreign"] = "T"  # for shims (src/base/shim_hooks.h)
wanted |= {name: "T" for name in re.findall(r"\b(starling_shmem_\w+)\(", pathlib.Path(door).read_text())}
wanted["starling_shmem_near"] = "D"
wanted |= {name: "T" for name in re.findall(r"\b(starling_\w+)\(", pathlib.Path(outside).read_text())}
listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True, stdout=subprocess.PIPE).stdout
found = {line.split()[2]: line.split()[1] for line in listing.splitlines()}
wrong = [f"missing: {name}" for name in wanted.keys() - found.keys()]
wrong += [f"in no table: {name}" for name in found.keys() - wanted.keys()]
wrong += [f"{name} is {found[name]}, not {wanted[name]}" for name in wanted.keys() & found.keys()
          if found[name] != wanted[name]]
needed = subprocess.run(["readelf", "-d", library], check=True, text=True, stdout=subprocess.PIPE).stdout
wrong += [line.strip() for line in needed.splitlines()
          if "NEEDED" in line and "[libc.so" not in line and "[ld-linux" not in line]
if "Library soname: [libmpi_abi.so.1]" not in needed:
    wrong.append("the soname is not libmpi_abi.so.1")
if wrong:
    sys.exit("\n".join(sorted(wrong)))
print(f"{len(names)} functions, each with its PMPI_ twin, and nothing else")
