#!/usr/bin/env python3
"""Makes manual pages, the texts of `starling help`, and completion for shells.

    build.py functions RELEASE MAN-DIR         MAN-DIR/man3: the functions; RELEASE: version and date, separated by a blank
    build.py help FILE                         the texts of `starling help`, packed
    build.py commands RELEASE TABLES MAN-DIR SHELL-DIR
                                               MAN-DIR/man1 and man7, SHELL-DIR/bash-completion/completions and so on;
                                               TABLES: the output of `starling help --tables`

Needs only Python.
"""

import json
import pathlib
import shutil
import struct
import sys
import zlib

sys.dont_write_bytecode = True

import commands  # noqa: E402
import completion  # noqa: E402
import mpi  # noqa: E402
import page as pages  # noqa: E402
import shmem  # noqa: E402

TOPICS = mpi.ROOT / "tools" / "starling" / "help"


def write_pages(all_pages, release, man):
    for page in all_pages:
        folder = man / f"man{page.section}"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{page.name}.{page.section}"
        file.write_text(pages.roff(page, release))
        for name in other_names(page):
            (folder / f"{name}.{page.section}").symlink_to(file.name)


def other_names(page):
    """Returns further names under which man finds the page; for OpenSHMEM those without a type in their names."""
    profiled = ["P" + name for name in page.names if page.section == "3" and name.startswith("MPI")]
    return page.names[1:] + profiled + [name for name in shmem.sizes(page.name) if name != page.name]


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def functions():
    return mpi.pages() + shmem.pages()


def packed_help():
    out = []
    for file in sorted(TOPICS.glob("*.txt")):
        title, _, text = file.read_text().partition("\n")
        out.append("\x1f".join(["topic", file.stem, title, text.strip("\n") + "\n"]))
    for page in functions():
        out.append("\x1f".join(["function", " ".join([*page.names, *shmem.all_names().get(page.name, ())]), page.summary, pages.plain(page)]))
    text = "\x1e".join(out).encode()
    return struct.pack("<Q", len(text)) + zlib.compress(text, 9)


def main(arguments):
    match arguments:
        case ["functions", release, man]:
            fresh(pathlib.Path(man) / "man3")
            write_pages(functions(), release, pathlib.Path(man))
        case ["help", file]:
            pathlib.Path(file).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(file).write_bytes(packed_help())
        case ["commands", release, tables, man, shell]:
            read = json.loads(pathlib.Path(tables).read_text())
            for section in ("man1", "man7"):
                fresh(pathlib.Path(man) / section)
            write_pages(commands.pages(read), release, pathlib.Path(man))
            completion.write(read, pathlib.Path(shell))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
