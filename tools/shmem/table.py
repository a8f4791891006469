"""The OpenSHMEM C interface as data: reads functions.tsv, types.tsv and generics.tsv beside this file.

A row of functions.tsv describes one function, or one per type of the set in its last column. Then TYPENAME and TYPE, or SIZE, are
replaced by the entries of the set in types.tsv.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Types that equal others on the supported machines (LP64). In C11 _Generic each type may appear once.
SAME = {"int8_t": "signed char", "int16_t": "short", "int32_t": "int", "int64_t": "long", "uint8_t": "unsigned char",
        "uint16_t": "unsigned short", "uint32_t": "unsigned int", "uint64_t": "unsigned long", "size_t": "unsigned long",
        "ptrdiff_t": "long"}


def rows(name):
    with open(HERE / name, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def type_sets():
    """Returns a map: set -> [(name in functions, C type)]."""
    return {r["set"]: [tuple(t.strip().split("=")) for t in r["types"].split(",")] for r in rows("types.tsv")}


@dataclass
class Function:
    """One C function of the table; pshmem_ names have no entries of their own."""

    name: str
    topic: str
    since: str
    deprecated: str  # version that deprecated it; "-": none
    returns: str
    parameters: str  # as in a prototype
    row: str         # name in the table
    type: str        # C type for TYPE; "" if the row has none
    bytes: int       # element size for SIZE; 0 if the row has none

    @property
    def profiled(self):
        return "p" + self.name

    @property
    def arguments(self):
        if self.parameters == "void":
            return []
        return [re.search(r"(\w+)$", p.strip()).group(1) for p in self.parameters.split(",") if p.strip() != "..."]

    def prototype(self, name=None):
        space = "" if self.returns.endswith("*") else " "
        return f"{self.returns}{space}{name or self.name}({self.parameters})"


def expand(row, name, ctype):
    def replace(text):
        return re.sub(r"\bTYPE\b", ctype, text.replace("TYPENAME", name).replace("SIZE", name))
    if row["types"] == "SIZES":
        return Function(row["name"].replace("SIZE", name), row["topic"], row["since"], row["deprecated"], row["returns"],
                        row["parameters"], row["name"], "", int(ctype))
    return Function(row["name"].replace("TYPENAME", name), row["topic"], row["since"], row["deprecated"], replace(row["returns"]),
                    replace(row["parameters"]), row["name"], ctype, 0)


def functions():
    sets = type_sets()
    out = []
    for row in rows("functions.tsv"):
        if row["types"] == "-":
            out.append(Function(row["name"], row["topic"], row["since"], row["deprecated"], row["returns"], row["parameters"],
                                row["name"], "", 0))
        else:
            out += [expand(row, name, ctype) for name, ctype in sets[row["types"]]]
    return out


def distinct(types):
    """Removes types that equal another type of the set. Returns [(name in functions, C type)]."""
    out = {}
    for name, ctype in types:
        out.setdefault(SAME.get(ctype, ctype), name)
    return [(name, ctype) for ctype, name in out.items()]


def generics():
    """Returns [(name, [(name in functions, C type)], first parameter)]; the latter is "context" (optional), "team" or "-"."""
    sets = type_sets()
    return [(r["name"], distinct(sets[r["types"]]), r["first"]) for r in rows("generics.tsv")]
