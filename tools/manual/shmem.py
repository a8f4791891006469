"""Manual pages of the OpenSHMEM functions: one page for all variants of type, size and context."""

import functools
import importlib.util
import pathlib
import re
import sys

from page import Page, prototype_lines

ROOT = pathlib.Path(__file__).resolve().parents[2]


def module_at(path, name):
    """Loads a module under another name, because tools/abi has a module of the same name."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


table = module_at(ROOT / "tools" / "shmem" / "table.py", "shmem_table")


@functools.cache
def summaries():
    return {row["name"]: row["summary"] for row in table.rows("manual.tsv")}


@functools.cache
def parameter_rows():
    return [(re.compile(row["functions"]), re.compile(row["parameter"]), row) for row in table.rows("manual-parameters.tsv")]


def page_of(row):
    """Returns the name of the page for a row of the table: the row's function name without type, size and context."""
    name = row if row in ("shmem_ctx_create", "shmem_ctx_destroy", "shmem_ctx_get_team") or "ctx_session" in row else row.replace("_ctx_", "_")
    name = re.sub(r"(put|get)(SIZE|mem)", r"\1", name.replace("TYPENAME_", ""))
    return re.sub(r"(collect|broadcast|alltoalls?)(32|64|mem|SIZE)$", r"\1", name)


def parameter_row(name, argument):
    return next((row for functions, parameter, row in parameter_rows()
                 if functions.fullmatch(name) and parameter.fullmatch(argument)), None)


def direction(parameter, row):
    if row["direction"]:
        return {"in": "in", "out": "out", "inout": "in and out"}[row["direction"]]
    return "in"


def prototypes(rows):
    lines, types = [], []
    for row in rows:
        space = "" if row["returns"].endswith("*") else " "
        lines += prototype_lines(f"{row['returns']}{space}{row['name']}({row['parameters']});")
        if row["types"] != "-" and row["types"] not in types:
            types.append(row["types"])
    return lines, types


def page(name, rows, names):
    out = Page(name, "3", summaries()[name], [name])
    lines, types = prototypes(rows)
    generic = next((g for g in table.generics() if g[0] == name), None)
    out.add("Synopsis", ("code", ["#include <shmem.h>", "", *lines]))
    sets = table.type_sets()
    words = [("SIZE is one of " if t == "SIZES" else "TYPENAME is one of ") + ", ".join(n for n, _ in sets[t]) + "." for t in types]
    if generic:
        words.append(f"In C11 {name} is a generic, which selects the function by the types of its arguments.")
    items, seen = [], set()
    for row in rows:
        for parameter in [] if row["parameters"] == "void" else row["parameters"].split(","):
            argument = parameter.strip() if parameter.strip() == "..." else re.search(r"(\w+)$", parameter.strip()).group(1)
            if argument in seen:
                continue
            seen.add(argument)
            found = parameter_row(name, argument)
            items.append((argument, f"{direction(parameter, found)}: {found['text']}"))
    out.add("Parameters", ("items", items))
    out.add("Description", ("text", " ".join([out.summary[0].upper() + out.summary[1:] + ".", *words])))
    old = sorted({row["deprecated"] for row in rows if row["deprecated"] != "-"})
    since = min(row["since"] for row in rows)
    text = f"An extension of Starling or other libraries, not part of OpenSHMEM {since}." if not re.match(r"\d", since) else f"OpenSHMEM {since} and later."
    out.add("Standard", ("text", text + (f" Deprecated, some or all of it, since {old[0]}." if old else "")))
    stem = re.sub(r"_nbi$|_vector$|_signal$", "", name)
    out.see = [(other, "3") for other in names if other != name and
               (other.startswith(stem + "_") or stem.startswith(other + "_") and other not in ("shmem_p", "shmem_g"))][:8]
    return out


def families():
    found = {}
    for row in table.rows("functions.tsv"):
        found.setdefault(page_of(row["name"]), []).append(row)
    return found


@functools.cache
def all_names():
    """Returns the names of all functions of each page."""
    found = {}
    for f in table.functions():
        found.setdefault(page_of(f.row), []).append(f.name)
    return found


def sizes(name):
    """Returns the functions of the page that have no type in their names."""
    return sorted({f.name for f in table.functions() if page_of(f.row) == name and not f.type})


def pages():
    groups = families()
    return [page(name, rows, list(groups)) for name, rows in groups.items()]
