# SPDX-License-Identifier: Apache-2.0
"""The contents of a page: its fenced blocks, its links, its included files and its headings."""
import dataclasses
import pathlib
import re

FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([\w+-]*)(.*)$")
TITLE = re.compile(r'\btitle="([^"]+)"')
INCLUDED = re.compile(r'^\s*--8<-- "([^"]+)"\s*$')
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$")
LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|!\[[^\]]*\]\(\s*([^)\s]+)\s*\)")
CODE = re.compile(r"(`+)(?:(?!\1).)*?\1(?!`)")
# Files of the built site that are not pages: the reference of the headers, which doxygen writes.
BUILT = {"docs/reference/api/index.html"}


class Mistake(Exception):
    """A mistake in a page, which its author must fix."""

    def __init__(self, page, line, message, output=""):
        super().__init__(message)
        self.page, self.line, self.message, self.output = page, line, message, output

    def __str__(self):
        text = f"{self.page}:{self.line}: {self.message}"
        return text + "".join(f"\n    | {line}" for line in self.output.rstrip().splitlines()[-30:])


@dataclasses.dataclass
class Block:
    page: str
    line: int  # number of its first line, counted from 1
    language: str
    lines: list
    notes: dict = dataclasses.field(default_factory=dict)
    check: str = ""  # what the page's sidecar expects to be done with it
    in_sidecar: bool = False

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"


@dataclasses.dataclass
class Page:
    name: str
    blocks: list = dataclasses.field(default_factory=list)
    setups: list = dataclasses.field(default_factory=list)
    readings: list = dataclasses.field(default_factory=list)  # (line, text on the page, text to run)
    links: list = dataclasses.field(default_factory=list)  # (line, target)
    included: list = dataclasses.field(default_factory=list)  # (line, file below docs/)
    headings: list = dataclasses.field(default_factory=list)
    driver: str = ""  # "fake": programs of the page find the fake CUDA driver

    def read_as_meant(self, text):
        for _, written, meant in self.readings:
            text = text.replace(written, meant)
        return text


def plain(heading):
    """Returns the text of a heading without markup."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[`*]|<[^>]+>", "", heading)


class Reader:
    def __init__(self, name):
        self.page = Page(name)
        self.block = None
        self.fence = ""
        self.indent = 0

    def line(self, number, line):
        if self.block is not None:
            return self.inside(line)
        if opened := FENCE.match(line):
            self.fence, self.indent = opened[2], len(opened[1])
            self.block = Block(self.page.name, number + 1, opened[3].lower(), [])
            if title := TITLE.search(opened[4]):
                self.block.notes["file"] = title[1]
        elif found := INCLUDED.match(line):
            self.page.included.append((number, found[1]))
        else:
            self.prose(number, line)

    def inside(self, line):
        closing = line.strip()
        if closing.startswith(self.fence) and not closing.strip(self.fence[0]):
            self.page.blocks.append(self.block)
            self.block = None
        else:
            self.block.lines.append(line[self.indent:] if not line[:self.indent].strip() else line)

    def prose(self, number, line):
        if found := HEADING.match(line):
            self.page.headings.append(plain(found[1]))
        for link in LINK.finditer(CODE.sub(lambda code: "x" * len(code[0]), line)):
            self.page.links.append((number, link[1] or link[2]))


def read_page(root, name):
    reader = Reader(name)
    for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), 1):
        reader.line(number, line)
    if reader.block is not None:
        raise Mistake(name, reader.block.line - 1, "this block is not closed")
    return reader.page


def page_names(root):
    """Returns all user-visible pages of the source tree: README, CONTRIBUTING and the like, docs, examples."""
    names = sorted(path.name for path in root.glob("*.md"))
    for folder in ("docs", "examples", "bindings"):
        names += sorted(str(path.relative_to(root)) for path in (root / folder).rglob("*.md"))
    return [name for name in names if not {".venv", "build", "_generated"} & set(pathlib.PurePath(name).parts)]
