"""The links between documents: each must lead to a file of the tree and, if it has a fragment, to a heading of that document."""

import os
import re

CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|^    [^\n]*$", re.M | re.S)
BLOCKS = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(text):
    """Returns the fragments of a document's headings, as GitHub and mkdocs form them."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", BLOCKS.sub("", text), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        found.add(re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", plain)))
    return found


def broken(tree, page):
    """Returns a sentence for each link of `page` that leads nowhere."""
    out = []
    for target in LINK.findall(CODE.sub("", (tree / page).read_text())):
        if re.match(r"\w+:", target):
            continue
        path, _, fragment = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not (tree / file).exists():
            out.append(f"{page}: ({target}) leads to {file}, which does not exist")
        elif fragment and file.endswith(".md") and fragment not in anchors((tree / file).read_text()):
            out.append(f"{page}: ({target}): {file} has no heading with this fragment")
    return out
