"""A manual page as data, and its two output formats: roff for man, and plain text for `starling help`."""

import re
import textwrap
from dataclasses import dataclass, field

WIDTH = 78
# Text between backquotes, which is printed in bold.
BOLD = re.compile(r"`([^`]+)`")


@dataclass
class Page:
    name: str
    section: str
    summary: str
    names: list = field(default_factory=list)  # all names that the page describes; its own is the first
    parts: list = field(default_factory=list)  # (heading, [block])
    see: list = field(default_factory=list)    # (name, section)

    def add(self, heading, *blocks):
        """Adds a section of blocks: ("text", words), ("code", lines), ("items", [(term, words)]). Omits empty blocks and empty sections."""
        blocks = [block for block in blocks if block[1]]
        if blocks:
            self.parts.append((heading, blocks))
        return self


def prototype_lines(prototype):
    """Splits a C declaration into lines, between parameters."""
    kept = re.sub(r"(?<!,) ", "\0", prototype)
    return [line.replace("\0", " ") for line in
            textwrap.wrap(kept, WIDTH - 4, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)]


def escaped(text):
    """Escapes text for roff. Hyphens stay ASCII, so that they can be copied to a shell; no line begins with a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha").replace("`", "\\(ga")
    text = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", text)
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def running(text):
    """Formats a paragraph as roff: hyphens within words may be typographic, text between backquotes is bold."""
    out = []
    for i, piece in enumerate(BOLD.split(text)):
        if i % 2:
            out.append(f"\\fB{escaped(piece)}\\fR")
        else:
            piece = escaped(piece)
            out.append(re.sub(r"(?<=[a-z])\\-(?=[a-z])", "-", piece))
    return "\n".join(textwrap.wrap("".join(out), 110, break_long_words=False, break_on_hyphens=False))


def roff(page, release):
    """Returns the page as roff. `release`: version and date, separated by a blank."""
    version, date = release.split()
    out = [f'.TH {page.name.upper()} {page.section} {date} "Starling {version}"', ".SH NAME",
           f"{', '.join(escaped(name) for name in page.names)} \\- {escaped(page.summary)}"]
    for heading, blocks in page.parts:
        out.append(f".SH {heading.upper()}")
        for i, (kind, content) in enumerate(blocks):
            if kind == "text":
                out += [".PP"] * (i > 0) + [running(content)]
            elif kind == "code":
                out += [".PP"] * (i > 0) + [".nf", *(escaped(line) if line else ".sp" for line in content), ".fi"]
            else:
                for term, words in content:
                    out += [".TP", f"\\fB{escaped(term)}\\fR", running(words)]
    if page.see:
        out += [".SH SEE ALSO", ",\n".join(f".BR {escaped(name)} ({section})" if i + 1 == len(page.see) else
                                           f".BR {escaped(name)} ({section}) ," for i, (name, section) in enumerate(page.see))
                .replace(",\n", "\n")]
    return re.sub(r"\n{2,}", "\n", "\n".join(out)) + "\n"


def filled(text, indent, first=None):
    text = BOLD.sub(r"\1", text)
    return textwrap.fill(text, WIDTH, initial_indent=indent if first is None else first, subsequent_indent=indent,
                         break_on_hyphens=False, break_long_words=False)


def plain(page):
    out = [filled(f"{', '.join(page.names)} - {page.summary}", "    ", "")]
    for heading, blocks in page.parts:
        out += ["", heading.upper()]
        for i, (kind, content) in enumerate(blocks):
            if i:
                out.append("")
            if kind == "text":
                out.append(filled(content, "    "))
            elif kind == "code":
                out += ["    " + line if line else "" for line in content]
            else:
                for term, words in content:
                    first = f"    {term}  "
                    if len(first) <= 24:
                        out.append(filled(words, " " * 24, first.ljust(24)))
                    else:
                        out += [f"    {term}", filled(words, " " * 24)]
    if page.see:
        out += ["", "SEE ALSO", filled(", ".join(f"{name}({section})" for name, section in page.see), "    ")]
    return "\n".join(out) + "\n"
