"""Manual pages of the MPI functions: synopses from the table of functions, texts from tools/abi/manual*.tsv.

A function and its large-count form share a page, which is also found under the PMPI_ name.
"""

import functools
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "abi"))

import entries  # noqa: E402
import fortran  # noqa: E402
import table  # noqa: E402
from page import Page, prototype_lines  # noqa: E402

# Parameters that a call both reads and changes, in addition to those marked in the table of parameters.
INOUT = re.compile(r"array_of_requests")
UNCHANGED = re.compile(r".*_(fn|function)$")
# Pairs of words in names of related functions, such as functions that undo each other.
RELATIVES = (("create", "free"), ("init", "finalize"), ("open", "close"), ("lock", "unlock"), ("attach", "detach"), ("get", "set"),
             ("start", "complete"), ("post", "wait"), ("begin", "end"), ("accept", "connect"), ("publish", "lookup"),
             ("publish", "unpublish"), ("send", "recv"), ("Send", "Recv"), ("set", "delete"), ("alloc", "free"), ("read", "write"),
             ("toint", "fromint"), ("Wait", "Test"), ("size", "rank"), ("start", "stop"), ("Pack", "Unpack"), ("put", "get"),
             ("Put", "Get"), ("commit", "free"), ("probe", "recv"), ("spawn", "get_parent"), ("Pready", "Parrived"))


@functools.cache
def summaries():
    return {row["name"]: row["summary"] for row in table.rows("manual.tsv")}


@functools.cache
def rules(name):
    return [{**row, "functions": re.compile(row["functions"]),
             "parameter": re.compile(row.get("parameter") or "")} for row in table.rows(name)]


def all_functions():
    """Returns a map from page names to lists: the function and, if there is one, its large-count form."""
    by_name = {f.name: f for f in table.functions() + table.extensions()}
    return {name: [f, *([by_name[name + "_c"]] if name + "_c" in by_name else [])]
            for name, f in by_name.items() if not (name.endswith("_c") and name[:-2] in by_name)}


def summary_of(function):
    return summaries()[function.name]


def parameter_row(function, argument):
    """Returns the first row of the table that describes this parameter of the function, or None."""
    base = function.name.removesuffix("_c")
    return next((row for row in rules("manual-parameters.tsv")
                 if row["functions"].fullmatch(base) and row["parameter"].fullmatch(argument)), None)


def direction(function, parameter, row):
    if row["direction"]:
        return row["direction"]
    name = table.parameter_name(parameter)
    pointer = "*" in parameter or "[" in parameter
    if not pointer or "const" in parameter or UNCHANGED.match(name):
        return "in"
    return "inout" if INOUT.match(name) else "out"


def arguments(functions):
    """Returns (name, description) of the parameters, including those that only the large-count form has."""
    items, seen = [], set()
    for f in functions:
        for argument, parameter in zip(f.arguments, f.parameters.split(",")):
            if argument in seen:
                continue
            seen.add(argument)
            row = parameter_row(f, argument)
            way = {"in": "in", "out": "out", "inout": "in and out"}[direction(f, parameter.strip(), row)]
            items.append((argument, f"{way}: {row['text']}"))
    return items


def fortran_lines(function, small):
    """Returns the declaration in module mpi_f08, without parts that only compilers need. `small`: the function whose generic name it
    shares if their arguments differ."""
    lines = "\n".join(fortran.body(function, fortran.BY_DESCRIPTOR, "")).split("\n")
    head = " ".join(line.strip().strip("&").strip() for line in lines[:next(i for i, line in enumerate(lines) if "::" in line or line == "implicit none")])
    head = re.sub(r"\s*bind\(.*\)", "", head)
    name = small.name if fortran.signature(small) != fortran.signature(function) else function.name
    head = re.sub(r"^(\w+) \w+\(", rf"\1 {name}(", head)
    folded = textwrap.wrap(head, 72, subsequent_indent="        ", break_long_words=False)
    declared = [line for line in lines if "::" in line and not line.startswith(("!", "import"))]
    return [line + " &" for line in folded[:-1]] + folded[-1:] + ["    " + line for line in declared]


def errors(function):
    items = []
    for row in rules("manual-errors.tsv"):
        if not row["functions"].fullmatch(function.name):
            continue
        wanted = row["parameter"].pattern
        if wanted != "-" and not any(row["parameter"].fullmatch(a) for a in function.arguments):
            continue
        if (row["class"], row["when"]) not in items:
            items.append((row["class"], row["when"]))
    return items


@functools.cache
def stem(name):
    """Returns the common name of all forms of an operation: MPI_Ibcast, MPI_Bcast_init -> bcast."""
    word = re.sub(r"^MPIX?_", "", name)
    word = re.sub(r"^I(?=[a-z])", "", word) if not word.startswith(("In", "Is_", "Init")) or word.startswith("Ineighbor") else word
    word = re.sub(r"_init$", "", word).lower()
    for long in ("send", "recv"):
        if re.fullmatch(rf"[bsrp]?{long}", word):
            return long
    return re.sub(r"(gather|catter|toall)[vw]$", r"\1", word)


def relatives(name, functions):
    """Returns related pages: other forms of the same operation, then counterparts."""
    found = [other for other in functions if other != name and stem(other) == stem(name)]
    for one, two in RELATIVES:
        for here, there in ((one, two), (two, one)):
            other = re.sub(rf"(?<![a-z]){here}(?![a-z])", there, name, count=1)
            if other != name and other in functions and other not in found:
                found.append(other)
    if name.endswith("_init") or re.match(r"MPI_P(send|recv)_init", name):
        found.append("MPI_Start")
    if re.match(r"MPI_I[a-z]", name) and name not in ("MPI_Info_create",) and "request" in functions[name][0].arguments:
        found.append("MPI_Wait")
    return [other for other in found if other in functions][:12]


def page(name, functions, built):
    f = functions[name][0]
    out = Page(name, "3", summary_of(f), [g.name for g in functions[name]])
    synopsis = [("code", [f"#include <{'mpi-ext.h' if f.doc else 'mpi.h'}>", ""] +
                 [line for g in functions[name] for line in prototype_lines(g.prototype() + ";")])]
    is_extension = name.startswith("MPIX_")
    if not fortran.NOT_THERE.match(name) and (is_extension or not f.doc) and not fortran.OLD.match(name):
        lines = ["use mpi_f08_ext" if is_extension else "use mpi_f08", ""]
        for g in functions[name]:
            lines += fortran_lines(g, f) + [""]
        synopsis.append(("code", lines[:-1]))
    out.add("Synopsis", *synopsis)
    out.add("Parameters", ("items", arguments(functions[name])))
    notes = [row for row in rules("manual-notes.tsv") if row["functions"].fullmatch(name)]
    out.add("Description", ("text", " ".join([out.summary[0].upper() + out.summary[1:] + "."] + ([f.doc] if f.doc else []) + [row["text"] for row in notes if row["kind"] == "standard"])))
    here = [row["text"] for row in notes if row["kind"] == "text"]
    if not built(f.prefixed):
        here.insert(0, "Not built yet: the call reports MPI_ERR_UNSUPPORTED_OPERATION." if f.returns == "int" else "Not built yet.")
    out.add("In Starling", *[("text", text) for text in here])
    if f.returns == "int" and not f.prefixed.endswith("_toint"):
        handler = "" if f.prefixed.startswith("T_") else " The error handler is called first; MPI_Error_string returns the details."
        out.add("Errors", ("text", f"The function returns MPI_SUCCESS, or a code of one of these classes, among others.{handler}"
                           if errors(f) else f"The function returns MPI_SUCCESS, or an error code.{handler}"), ("items", errors(f)))
    out.see = [(other, "3") for other in relatives(name, functions)]
    out.add("Standard", ("text", f"MPI {f.version}" + (", deprecated." if "deprecated" in f.topic else " and later."))
            if not f.doc else ("text", "An extension by Starling."))
    return out


def pages():
    functions = all_functions()
    known = {f.prefixed for group in functions.values() for f in group}
    implementations = entries.Built(ROOT / "src" / "mpi", known)
    return [page(name, functions, implementations.implementation) for name in functions]
