"""Manual pages of the commands, from the output of `starling help --tables`, and of the topics of `starling help`."""

import pathlib
import re

from page import Page

WRAPPERS = {"mpicc": "C", "mpicxx": "C++", "mpifort": "Fortran", "oshcc": "C", "oshcxx": "C++"}
ALSO_WRAPPERS = ("mpicc_abi", "mpicxx_abi", "mpic++", "mpiCC", "mpifort_abi", "mpif90", "mpif77", "oshc++", "oshCC")


RANK_VARIABLES_REMARK = ("mpiexec sets these variables for each process. Scripts use them, and programs that choose a device or a file name "
                         "before MPI_Init. A program that a process starts inherits them.")
RANK_VARIABLES = [
    ("STARLING_RANK, STARLING_SIZE", "rank in MPI_COMM_WORLD, and number of processes"),
    ("STARLING_LOCAL_RANK, STARLING_LOCAL_SIZE", "number of the process among those of its host, from 0, and number of those"),
    ("STARLING_NODE_RANK", "number of the host among the hosts of the job, from 0"),
    ("MPI_LOCALRANKID, MPI_LOCALNRANKS", "the same as STARLING_LOCAL_RANK and STARLING_LOCAL_SIZE, as Hydra and Intel MPI name them"),
    ("OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_SIZE, OMPI_COMM_WORLD_NODE_RANK",
     "Open MPI's names, with --compat openmpi, and with --compat auto unless the program is linked with MPICH. Open MPI's NODE_RANK "
     "numbers the processes of a host, as LOCAL_RANK does"),
    ("PMI_RANK, PMI_SIZE", "MPICH's names, with --compat mpich, and with --compat auto unless the program is linked with Open MPI"),
]


def rows_of(name):
    """Returns the rows of a table beside this file, as tuples."""
    lines = pathlib.Path(__file__).with_name(name).read_text().splitlines()
    return [tuple(line.split("\t")) for line in lines if not line.startswith("#")]


def exit_codes():
    """Returns the rows (command, code, meaning) of exit-codes.tsv."""
    return rows_of("exit-codes.tsv")


def examples(page):
    """Adds the examples of the page's command (examples.tsv)."""
    page.add("Examples", ("items", [(example, meaning) for name, example, meaning, _ in rows_of("examples.tsv") if name == page.names[0]]))


def exit_status(page):
    """Adds the exit codes of the page's command. Commands of starling share its codes, unless they have a row of their own."""
    name = page.names[0]
    own = [(code, meaning) for command, code, meaning in exit_codes() if command == name]
    shared = [(code, meaning) for command, code, meaning in exit_codes()
              if command == "starling" and name.startswith("starling-") and code not in dict(own)]
    page.add("Exit status", ("items", sorted(shared + own, key=lambda row: not row[0].isdigit() or int(row[0])) if shared else own))


def dashes(name):
    return ("--" if len(name) > 2 else "-") + name


def blocks_of(text):
    """Splits the text of a topic into paragraphs and indented lines (code)."""
    blocks = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        lines, code = part.split("\n"), None
        for line in lines:
            kind = "code" if line.startswith("  ") else "text"
            if kind != code:
                blocks.append((kind, []))
            code = kind
            blocks[-1][1].append(line[4:] if kind == "code" and line.startswith("    ") else line)
    return [(kind, lines if kind == "code" else " ".join(lines)) for kind, lines in blocks]


def mpiexec(tables):
    table = tables["mpiexec"]
    out = Page("mpiexec", "1", "start an MPI or OpenSHMEM program as a job of several processes", ["mpiexec", "mpirun", "oshrun"])
    out.add("Synopsis", ("code", [table["synopsis"]]))
    groups = {}
    for option in table["options"]:
        groups.setdefault(option["group"], []).append(option)
    for group, options in groups.items():
        title, _, remark = group.partition(" (")
        items = []
        for option in options:
            term = ", ".join(dashes(name) for name in option["names"].split(","))
            value = option["values"]
            items.append((term + ("" if value.startswith("[") or not value else " ") + value, option["doc"] or "ignored"))
        out.add(title, ("text", (remark[0].upper() + remark[1:].rstrip(")") + ".") if remark else ""), ("items", items))
    out.add("Input, output and end", ("text", table["remarks"].replace("\n", " ").strip()))
    out.add("Environment of the processes", ("text", RANK_VARIABLES_REMARK), ("items", RANK_VARIABLES))
    exit_status(out)
    examples(out)
    out.see = [("starling", "1"), ("mpicc", "1"), ("starling-hosts", "7"), ("starling-variables", "7")]
    return out


def option_items(command):
    """Returns (term, description) of the command's options, without -h, which all commands have."""
    items = []
    for option in command["options"]:
        if option["names"] == "-h,--help":
            continue
        value = option["value"] if not option["positional"] else ""
        value = re.sub(r":.*", "", value)
        term = option["names"].replace(",", ", ") if not option["positional"] else option["names"].upper()
        words = option["doc"] + (f" ({option['default']})" if option["default"] and option["default"] != '""' else "")
        items.append((term + (f" {value}" if value else ""), words))
    return items


def below(page, command, path):
    for inner in command["commands"]:
        page.add(f"{path} {inner['name']}", ("text", inner["doc"] + "."), ("items", option_items(inner)))


def starling(tables):
    top = tables["starling"]
    out = Page("starling", "1", "inspect MPI jobs and an installation of Starling", ["starling"])
    out.add("Synopsis", ("code", ["starling COMMAND [options]", "starling help [TOPIC]"]))
    out.add("Commands", ("items", [(c["name"], c["doc"] + f". See starling-{c['name']}(1).") for c in top["commands"]]))
    out.add("Topics of starling help", ("items", [(t["name"], t["title"]) for t in tables["topics"]]))
    exit_status(out)
    out.add("Environment", ("items", [("NO_COLOR", "starling top uses no colors if this is set and not empty")]))
    examples(out)
    out.see = [("mpiexec", "1")] + [(f"starling-{c['name']}", "1") for c in top["commands"]]
    pages = [out]
    for command in top["commands"]:
        name = f"starling-{command['name']}"
        doc = command["doc"]
        page = Page(name, "1", doc[0].lower() + doc[1:] if not doc.startswith("MPI") else doc, [name])
        positional = [o["names"].upper() for o in command["options"] if o["positional"]]
        synopsis = [line.strip() for line in command["footer"].split("\n") if line.startswith("  starling")]
        inner = [c["name"] for c in command["commands"]]
        page.add("Synopsis", ("code", synopsis or [" ".join(["starling", command["name"]] + (["|".join(inner)] if inner else []) +
                                                            ["[options]"] + [f"[{p}]" for p in positional])]))
        page.add("Options", ("items", option_items(command)))
        rest = " ".join(line for line in command["footer"].split("\n") if line and not line.startswith("  "))
        page.add("Description", ("text", rest))
        below(page, command, f"starling {command['name']}")
        exit_status(page)
        examples(page)
        page.see = [("starling", "1"), ("mpiexec", "1")]
        pages.append(page)
    return pages


def starlingd():
    out = Page("starlingd", "1", "daemons that run beside MPI jobs on their hosts", ["starlingd"])
    out.add("Description", ("text", "Starling starts it on demand, and it ends by itself. It runs on each host of a job on several hosts, as the daemon that stores "
                            "published names, as the launcher of a program that was started without mpiexec, as the helper of a job that another "
                            "manager has started, and as a standing daemon. It is not called by hand."))
    out.see = [("starling-daemon", "1"), ("mpiexec", "1")]
    return out


def wrappers():
    out = Page("mpicc", "1", "compile a program that uses MPI or OpenSHMEM", [*WRAPPERS, *ALSO_WRAPPERS])
    out.add("Synopsis", ("code", ["mpicc [options] [the compiler's options] files"]))
    out.add("Description", ("text", "Each calls the system's compiler with the flags that a program needs to find headers, modules and libraries. mpicc, mpicxx and "
                            "mpifort are for C, C++ and Fortran, oshcc and oshcxx for OpenSHMEM programs; the others are further names of these."))
    out.add("Options", ("items", [
        ("-show, --showme", "only print the command"),
        ("--showme:compile, --showme:link", "print the options for compiling or linking"),
        ("--showme:command, --showme:incdirs, --showme:libdirs, --showme:libs, --showme:version, --showme:help", "print the part that the name says"),
        ("-compile_info, -link_info", "print the command for compiling or linking"),
        ("-echo", "print the command, then run it"),
        ("-cc=COMPILER, -cxx=COMPILER, -fc=COMPILER", "call another compiler")]))
    out.add("Environment", ("items", [
        ("STARLING_CC, STARLING_CXX, STARLING_FC", "the compiler to call; MPICH_CC, OMPI_CC and so on do the same"),
        ("STARLING_CACHE", "folder in which mpifort stores the compiled modules")]))
    exit_status(out)
    examples(out)
    out.see = [("mpiexec", "1"), ("starling-fortran", "7")]
    return out


def topics(tables):
    pages = []
    for topic in tables["topics"]:
        name = f"starling-{topic['name']}"
        page = Page(name, "7", topic["title"][0].lower() + topic["title"][1:], [name])
        page.add("Description", *blocks_of(topic["text"]))
        if topic["name"] == "variables":
            page.add("All variables", ("items", [(v["name"], v["doc"]) for v in tables["variables"]]))
        page.see = [("starling", "1"), ("mpiexec", "1")]
        pages.append(page)
    return pages


def pages(tables):
    return [mpiexec(tables), *starling(tables), starlingd(), wrappers(), *topics(tables)]
