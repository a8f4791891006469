"""The navigation of the site: a section for each reader in docs/README.md, and pages for the READMEs of the source folders."""

import os
import re

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)[^)]*\)")
SECTION = re.compile(r"^## (For .*)\n((?:(?!^## ).*\n?)*)", re.M)
GUIDE = "docs/guide/README.md"
MEASUREMENTS = "docs/measurements/README.md"


def linked(tree, page, text):
    """Returns (title, path) of the documents to which `text`, a part of `page`, links; paths begin at the tree's root."""
    found = []
    for title, target in LINK.findall(text):
        path = os.path.normpath(os.path.join(os.path.dirname(page), target))
        if path.endswith(".md") and (tree / path).is_file():
            found.append((title, path))
    return found


def contents(tree, page):
    """Returns a section that begins with `page`, a list of documents, followed by those documents."""
    inside = [(title, path) for title, path in linked(tree, page, (tree / page).read_text())
              if os.path.dirname(path) == os.path.dirname(page) and path != page]
    unique = dict((path, title) for title, path in reversed(inside))
    ordered = list(dict.fromkeys(path for _, path in inside))
    return [page] + [{unique[path]: path} for path in ordered]


def folders(paths):
    """Returns an entry for each document in a source folder. A README.md is named after its folder."""
    return [{re.sub(r"(/README)?\.md$", "", path): path} for path in sorted(paths)]


def navigation(tree, documents):
    """Returns mkdocs' nav. `documents`: paths of all staged documents. Each document stands once, with its first reader."""
    page = "docs/README.md"
    used = {"README.md", page}
    out = [{"Starling": ["README.md", page]}]
    for reader, text in SECTION.findall((tree / page).read_text()):
        entries = []
        for _, path in linked(tree, page, text):
            if path in used:
                continue
            if path == GUIDE:
                entries.append({"User's guide": contents(tree, path)})
            elif path == MEASUREMENTS:
                entries.append({"Measurements": contents(tree, path)})
            elif path.startswith(("docs/", "CONTRIBUTING")) or "/" not in path:
                entries.append(path)
            else:
                continue  # a README of the sources: below
            used.add(path)
        if reader == "For developers":
            entries.append({"Folders of the sources": folders(path for path in documents if not path.startswith("docs/") and "/" in path)})
        out.append({reader: entries})
    return out


def pages(entries):
    """Returns the paths of a navigation, in its order."""
    found = []
    for entry in entries:
        if isinstance(entry, str):
            found.append(entry)
        else:
            for value in entry.values():
                found += [value] if isinstance(value, str) else pages(value)
    return found
