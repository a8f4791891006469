"""The MPI 5.0 C interface as data: reads functions.tsv, constants.tsv and types.tsv beside this file, and
extensions.tsv and extensions-constants.tsv, which hold Starling's extensions."""

import csv
import re
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent


# The null handle of each type.
NULL_HANDLES = {f"MPI_{kind}": f"MPI_{null}_NULL" for kind, null in (
    ("Comm", "COMM"), ("Group", "GROUP"), ("Datatype", "DATATYPE"), ("Op", "OP"), ("Errhandler", "ERRHANDLER"),
    ("Info", "INFO"), ("Request", "REQUEST"), ("Message", "MESSAGE"), ("Session", "SESSION"), ("Win", "WIN"),
    ("File", "FILE"))}
# Functions whose handle parameters are valid before the call, so that the call does not create them.
CONSUMES = re.compile(r"_(free|disconnect|finalize|commit|close)$|^MPI_(Wait|Test|Start|Cancel|Mrecv)(_c)?$|^MPI_T_")
ALSO_READ = {("MPI_Imrecv", "message"), ("MPI_Imrecv_c", "message")}


def rows(name):
    with open(HERE / name, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@dataclass
class Function:
    """One C function of the table; PMPI_ names have no entries of their own."""

    name: str  # with MPI_, or MPIX_ for an extension
    topic: str
    version: str
    returns: str
    parameters: str  # as in a prototype
    doc: str = ""  # for extensions only
    arguments: list = field(init=False)  # the parameters' names

    def __post_init__(self):
        self.arguments = [parameter_name(p) for p in self.parameters.split(",")]
        if self.parameters in ("void", ""):
            self.arguments = []

    @property
    def variadic(self):
        return self.arguments and self.arguments[-1] == "..."

    @property
    def makes(self):
        """Returns (name, type) of the parameters in which the call returns new handles: pointers to handles that are not read."""
        if CONSUMES.search(self.name):
            return []
        found = [re.fullmatch(r"(MPI_\w+) ?\*(\w+)", p.strip()) for p in self.parameters.split(",")]
        return [(m[2], m[1]) for m in found if m and m[1] in NULL_HANDLES and (self.name, m[2]) not in ALSO_READ]

    @property
    def prefixed(self):
        """Returns the name inside the library: MPI_Comm_rank -> Comm_rank, MPI_T_finalize -> T_finalize."""
        return self.name.removeprefix("MPI_").removeprefix("MPIX_")

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


def extensions():
    return [Function(r["name"], r["topic"], r["version"], r["returns"], r["parameters"], r["doc"])
            for r in rows("extensions.tsv")]


def conversions():
    """Returns the conversions of handles and statuses between C and Fortran (MPI 5.0 section 19.3.4): other names for MPI_X_toint and
    MPI_X_fromint."""
    found = []
    for handle in NULL_HANDLES:
        kind = "MPI_Type" if handle == "MPI_Datatype" else handle
        found += [Function(f"{kind}_c2f", "fortran", "2.0", "MPI_Fint", f"{handle} handle"),
                  Function(f"{kind}_f2c", "fortran", "2.0", handle, "MPI_Fint handle")]
    return found + [Function("MPI_Status_c2f", "fortran", "2.0", "int", "const MPI_Status *c_status, MPI_Fint *f_status"),
                    Function("MPI_Status_f2c", "fortran", "2.0", "int", "const MPI_Fint *f_status, MPI_Status *c_status")]


def constants():
    return rows("constants.tsv")


def extension_constants():
    return rows("extensions-constants.tsv")


def types():
    return rows("types.tsv")
