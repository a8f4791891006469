#!/usr/bin/env python3
"""prose_test.py TREE [--list]: checks the project's prose against its rules (CONTRIBUTING.md, "Names and prose").

Checks comments of sources and scripts, sentences of documents, names of files and subjects of commits. A rule fails only above a share of
hits, because a pattern sometimes matches a good sentence. With --list it prints every hit with its file and line."""
import re
import subprocess
import sys
from pathlib import Path

# Turns of phrase that hide the subject of a sentence or make it a person.
PHRASES = {
    "begins with Of": r"(^|[.:;] )Of (?!course)",
    "Who as the subject": r"(^|[.:;,] )(Who|Whoever|Whom|Whose)\b(?![^.]*\?)|(?<=[.:;,] )(who|whoever) (?!\w+s? which)",
    "What as the subject": r"(^|[.] )What (?![^.]*\?)",
    "a person for a process": r"\b(nobody|somebody|anybody|everybody|no one)\b",
    "told, tells": r"\b(told|tells|tell)\b",
    "comes, goes for an event": r"\b(has come|have come|is gone|are gone|goes on|come of|let go|lets go|given up|takes it back|gives it back)\b",
    "who for a thing": r"\bwho (is|has|waits|reads|sends|writes|wants|asks|comes|looks|polls|uses|can|may|does|needs|takes)\b",
    "dialect": r"\b(so many|so much|of late|for want of|and its kin|lest|likewise|of its own|of their own|by now|one another)\b",
}
NO_PROSE = re.compile(r"copyright|license|SPDX|clang-format|NOLINT|^namespace\b|^end (of )?namespace|@file|^\W*$", re.I)
C_ENDINGS = (".h", ".c", ".cpp", ".def")
LONGEST = 30  # words in a sentence
MOST = {"comments with a phrase": 1.0, "comments' sentences over 30 words": 2.0, "documents' sentences over 30 words": 10.0}
SUBJECT = re.compile(r"^[a-z0-9][\w./+*-]*(, [a-z0-9][\w./+*-]*)*: [a-z0-9`\"'*]")
LONGEST_SUBJECT = 72


def git(tree, *command):
    """Returns the lines of a git command's output. Works in a tree of any owner."""
    whole = ["git", "-c", "safe.directory=*", "-C", tree, *command]
    return subprocess.run(whole, capture_output=True, text=True, check=True).stdout.splitlines()


def tracked(tree):
    """Returns the tracked files of a clone. In a tree without history: all files of the folders that hold text."""
    if Path(tree, ".git").exists():
        return [name for name in git(tree, "ls-files") if Path(tree, name).is_file()]
    tops = [Path(tree, top) for top in ("src", "tests", "tools", "bench", "examples", "docs")]
    found = [path for top in tops for path in top.rglob("*") if path.is_file()]
    return [str(path.relative_to(tree)) for path in found] + ["README.md", "CONTRIBUTING.md"]


def is_script(path):
    if path.suffix == ".py":
        return True
    if path.suffix:
        return False
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def comment_blocks(path):
    """Returns (line, text) of every comment of four words or more. Consecutive comment lines are one comment."""
    lines = path.read_text(errors="replace").split("\n")
    like_c = path.suffix in C_ENDINGS
    mark = "//" if like_c else "#"
    blocks = []
    at = 0
    while at < len(lines):
        begin, line = at, lines[at].strip()
        at += 1
        if like_c and line.startswith("/*"):
            while "*/" not in lines[at - 1] and at < len(lines):
                at += 1
            text = " ".join(re.sub(r"^/\*+!?<?|\*+/.*$|^\*+", "", part.strip()) for part in lines[begin:at])
        elif line.startswith(mark) and not line.startswith("#!"):
            while at < len(lines) and lines[at].strip().startswith(mark):
                at += 1
            text = " ".join(part.strip().lstrip("/#!<") for part in lines[begin:at])
        elif like_c and (behind := re.search(r"\s///?<?\s*(\S.*)$", lines[begin])) and '"' not in behind[0] and "http" not in behind[0]:
            text = behind[1]
        else:
            continue
        text = " ".join(text.split())
        if len(text.split()) >= 4 and not NO_PROSE.search(text[:200]):
            blocks.append((begin + 1, text))
    return blocks


def sentences(text):
    return [part for part in re.split(r"(?<=[.?!])\s+", text) if len(part.split()) >= 3]


def paragraphs(path):
    """Returns (line, text) of a document's paragraphs and list items, without code, tables and headings."""
    found, begin, words, code = [], 0, [], False

    def finish():
        if words:
            found.append((begin, " ".join(words)))
            words.clear()

    for number, line in enumerate(path.read_text().split("\n"), 1):
        text = line.strip()
        if text.startswith("```"):
            code = not code
        if code or not text or text.startswith(("```", "#", "|", "<", "![")) or line.startswith("    "):
            finish()
            continue
        if re.match(r"([-*]|\d+\.) ", text):
            finish()
        if not words:
            begin = number
        words.append(re.sub(r"^([-*]|\d+\.) ", "", text))
    finish()
    return found


class Tally:
    def __init__(self, name):
        self.name, self.all, self.hits = name, 0, []

    def add(self, is_hit, where):
        self.all += 1
        if is_hit:
            self.hits.append(where)

    def share(self):
        return 100 * len(self.hits) / max(self.all, 1)


def measure(tree, files):
    phrases, long_comments, long_documents = (Tally(name) for name in MOST)
    for name in files:
        path = Path(tree, name)
        if path.suffix == ".md":
            for line, text in paragraphs(path):
                for sentence in sentences(text):
                    long_documents.add(len(sentence.split()) > LONGEST, f"{name}:{line}: {sentence}")
        elif path.suffix in C_ENDINGS or is_script(path):
            for line, text in comment_blocks(path):
                kinds = [kind for kind, pattern in PHRASES.items() if re.search(pattern, text)]
                phrases.add(bool(kinds), f"{name}:{line}: {', '.join(kinds)}: {text}")
                for sentence in sentences(text):
                    long_comments.add(len(sentence.split()) > LONGEST, f"{name}:{line}: {sentence}")
    return phrases, long_comments, long_documents


def bad_names(files):
    """Returns the files in src/ that have a name listed in file_names.txt, which does not describe their contents."""
    rows = (Path(__file__).parent / "file_names.txt").read_text().split("\n")
    refused = {row.strip() for row in rows if row.strip() and not row.startswith("#")}
    return [name for name in files if name.startswith("src/") and Path(name).name.split(".")[0] in refused]


def bad_subjects(tree):
    """Returns the malformed subjects of commits since the one that added this test; none in a tree without history."""
    if not Path(tree, ".git").exists():
        return []
    first = git(tree, "log", "--diff-filter=A", "--format=%H", "--", "tests/prose/prose_test.py")
    if not first:
        return []
    subjects = git(tree, "log", "--no-merges", "--format=%s", f"{first[-1]}..HEAD")
    return [subject for subject in subjects if len(subject) > LONGEST_SUBJECT or not SUBJECT.match(subject)]


def main():
    tree = sys.argv[1]
    files = tracked(tree)
    failed = False
    for tally in measure(tree, files):
        over = tally.share() > MOST[tally.name]
        failed |= over
        print(f"{tally.name}: {len(tally.hits)} of {tally.all}, {tally.share():.1f} %, at most {MOST[tally.name]:.0f} %")
        if over or "--list" in sys.argv:
            print("\n".join("  " + hit[:200] for hit in tally.hits))
    for what, found in (("names of files that do not say what they hold (tests/prose/file_names.txt)", bad_names(files)),
                        (f"subjects of commits that are not `room: imperative` or longer than {LONGEST_SUBJECT}", bad_subjects(tree))):
        print(f"{what}: {len(found)}")
        print("".join(f"  {one}\n" for one in found), end="")
        failed |= bool(found)
    sys.exit(failed)


if __name__ == "__main__":
    main()
