"""The contents of a page: its fenced blocks, the notes above them, its links and its headings."""
import dataclasses
import pathlib
import re

FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([\w+-]*)")
NOTE = re.compile(r"^\s*<!--\s*([a-z][a-z ]*?)(?::\s*(.*?))?\s*-->\s*$")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$")
LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|!\[[^\]]*\]\(\s*([^)\s]+)\s*\)")
CODE = re.compile(r"(`+)(?:(?!\1).)*?\1(?!`)")

# Notes that apply to the whole page, and notes that apply to the block right below them.
PAGE_NOTES = {"setup", "read"}
BLOCK_NOTES = {"not run", "prelude", "file", "before", "output", "exits"}
# Notes around the tables that bench/report writes.
TABLE_NOTES = {"table", "end"}


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
        self.notes = {}
        self.block = None
        self.fence = ""
        self.indent = 0

    def line(self, number, line):
        if self.block is not None:
            return self.inside(line)
        if opened := FENCE.match(line):
            self.fence, self.indent = opened[2], len(opened[1])
            self.block = Block(self.page.name, number + 1, opened[3].lower(), [], self.notes)
            self.notes = {}
        elif found := NOTE.match(line):
            self.note(number, found[1], found[2] or "")
        else:
            if self.notes:
                raise Mistake(self.page.name, number, f"a note '{next(iter(self.notes))}' is not followed by a block")
            self.prose(number, line)

    def inside(self, line):
        closing = line.strip()
        if closing.startswith(self.fence) and not closing.strip(self.fence[0]):
            self.page.blocks.append(self.block)
            self.block = None
        else:
            self.block.lines.append(line[self.indent:] if not line[:self.indent].strip() else line)

    def note(self, number, name, value):
        if name == "setup":
            self.page.setups += value.split()
        elif name == "read":
            written, _, meant = value.partition(" as ")
            if not meant:
                raise Mistake(self.page.name, number, "a note 'read' has the form 'read: text on the page as text to run'")
            self.page.readings.append((number, written, meant))
        elif name in BLOCK_NOTES:
            self.notes[name] = value
        elif name not in TABLE_NOTES:
            raise Mistake(self.page.name, number, f"unknown note '{name}'; known notes: "
                          + ", ".join(sorted(PAGE_NOTES | BLOCK_NOTES | TABLE_NOTES)))

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
    return [name for name in names if not {".venv", "build"} & set(pathlib.PurePath(name).parts)]
