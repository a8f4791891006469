"""The MPI 5.0 C interface as data: reads functions.tsv, constants.tsv and types.tsv beside this file."""

import csv
import re
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent


def rows(name):
    with open(HERE / name, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@dataclass
class Function:
    """One C function of the standard, without its PMPI_ twin."""

    name: str  # with MPI_
    topic: str
    version: str
    returns: str
    parameters: str  # as in a prototype
    arguments: list = field(init=False)  # the parameters' names

    def __post_init__(self):
        self.arguments = [parameter_name(p) for p in self.parameters.split(",")]
        if self.parameters in ("void", ""):
            self.arguments = []

    @property
    def variadic(self):
        return self.arguments and self.arguments[-1] == "..."

    @property
    def prefixed(self):
        """What the library calls it: MPI_Comm_rank -> Comm_rank, MPI_T_finalize -> T_finalize."""
        return self.name.removeprefix("MPI_")

    def prototype(self, name=None):
        space = "" if self.returns.endswith("*") else " "
        return f"{self.returns}{space}{name or self.name}({self.parameters or 'void'})"


def parameter_name(parameter):
    if parameter.strip() == "...":
        return "..."
    return re.search(r"(\w+)\s*(\[\w*\]\s*)*$", parameter.strip()).group(1)


def functions():
    return [Function(r["name"], r["topic"], r["version"], r["returns"], r["parameters"])
            for r in rows("functions.tsv")]


def constants():
    return rows("constants.tsv")


def types():
    return rows("types.tsv")
