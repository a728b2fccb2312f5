# SPDX-License-Identifier: Apache-2.0
"""The checks of a page in a file of their own, tests/docs/pages/<page>.toml, so that the page has no notes in it.

docs/internals/writing-docs.md has the keys. A block without a row is checked by its language alone; a row that matches no
block, or two, is a mistake.
"""
import tomllib

from .pages import Mistake

FOLDER = "tests/docs/pages"
PAGE_KEYS = {"setup": list, "driver": str, "replace": dict, "block": list, "figure": list}
BLOCK_KEYS = {"starts": str, "check": str, "skip": str, "prelude": str, "file": str, "before": str, "output": str, "exits": int}
FIGURE_KEYS = {"text": str, "file": str, "line": str}
# What `check` can say, and the words of check_docs for it.
CHECKS = {"run": {"run in a shell", "compiled and run", "run by Python"}, "compile": {"compiled"}, "parse": {"parsed"},
          "write": {"written for the shell"}, "text": {"no code"}}


def place(name):
    """The sidecar of a page, from the root of the tree."""
    return f"{FOLDER}/{name.removesuffix('.md')}.toml"


def spaced(text):
    """A text in which all spaces are alike and `14 %` is spelled `14%`."""
    return text.replace("\u00a0", " ").replace("\u202f", " ").replace(" %", "%")


class Sidecar:
    def __init__(self, root, page):
        self.root, self.page, self.name = root, page, place(page.name)
        self.text = (root / self.name).read_text(encoding="utf-8")

    def mistake(self, message, at=""):
        lines = (number for number, line in enumerate(self.text.splitlines(), 1) if at and at in line)
        return Mistake(self.name, next(lines, 1), message)

    def apply(self):
        """Gives the page and its blocks what the file says."""
        try:
            values = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise self.mistake(f"this is no TOML: {error}")
        self.check_keys(values, PAGE_KEYS)
        if values.get("driver", "fake") != "fake":
            raise self.mistake("there is no such driver; there is: fake", "driver")
        self.page.driver = values.get("driver", "")
        self.page.setups = values.get("setup", [])
        self.page.readings = [(1, written, meant) for written, meant in values.get("replace", {}).items()]
        for written in values.get("replace", {}):
            if not any(written in block.text for block in self.page.blocks):
                raise self.mistake(f"no block of {self.page.name} has '{written}', which is to be replaced", written)
        for entry in values.get("block", []):
            self.apply_block(entry)
        for entry in values.get("figure", []):
            self.check_figure(entry)

    def check_keys(self, values, known, at=""):
        for key, value in values.items():
            if key not in known:
                raise self.mistake(f"there is no key '{key}'; there are: {', '.join(known)}", at or key)
            if not isinstance(value, known[key]):
                raise self.mistake(f"the value of '{key}' has another type than {known[key].__name__}", at or key)

    def apply_block(self, entry):
        starts = entry.get("starts", "")
        if not starts:
            raise self.mistake("an entry of a block says how the block starts: starts = \"…\"", "[[block]]")
        self.check_keys(entry, BLOCK_KEYS, starts)
        found = [block for block in self.page.blocks if block.text.removeprefix("$ ").startswith(starts)]
        if len(found) != 1:
            many = "no block" if not found else f"more than one block ({len(found)})"
            raise self.mistake(f"{many} of {self.page.name} starts with '{starts}'", starts)
        block = found[0]
        if block.in_sidecar:
            raise self.mistake(f"two entries for the block at line {block.line} of {self.page.name}", starts)
        if "skip" in entry and "check" in entry:
            raise self.mistake("an entry has either `check`, or `skip` with the reason", starts)
        if "skip" in entry and not entry["skip"].strip():
            raise self.mistake("`skip` says why the block is not run", starts)
        if entry.get("check", "run") not in CHECKS:
            raise self.mistake(f"`check` is one of: {', '.join(CHECKS)}", starts)
        if entry.get("output", "example") != "example":
            raise self.mistake("`output` is: example", starts)
        block.in_sidecar, block.check = True, entry.get("check", "")
        block.notes |= {key: str(value) for key, value in entry.items() if key not in ("starts", "check", "skip")}
        if "skip" in entry:
            block.notes["not run"] = entry["skip"]

    def check_figure(self, entry):
        """A figure of the page is one of another file, which is generated or measured."""
        self.check_keys(entry, FIGURE_KEYS)
        if not {"text", "file"} <= set(entry):
            raise self.mistake("an entry of a figure has `text` and `file`", "[[figure]]")
        text, file = spaced(entry["text"]), self.root / entry["file"]
        if text not in spaced((self.root / self.page.name).read_text(encoding="utf-8")):
            raise self.mistake(f"{self.page.name} does not say '{entry['text']}'", entry["text"])
        if not file.exists():
            raise self.mistake(f"there is no {entry['file']}", entry["file"])
        lines = [spaced(line) for line in file.read_text(encoding="utf-8").splitlines() if entry.get("line", "") in line]
        if not any(text in line for line in lines):
            where = f", in a line with '{entry['line']}'" if "line" in entry else ""
            raise self.mistake(f"{entry['file']} does not say '{entry['text']}'{where}", entry.get("line", entry["text"]))


def apply(root, page):
    if (root / place(page.name)).exists():
        Sidecar(root, page).apply()


def check_kind(block, kind):
    """A block that is checked otherwise than its sidecar expects is a mistake: a program that lost its `main`, for example."""
    if block.check and kind not in CHECKS[block.check]:
        raise Mistake(block.page, block.line, f"{place(block.page)} says '{block.check}' of this block, but it is: {kind}")


def stray_mistakes(root, names):
    """Sidecars of pages that do not exist."""
    known = {place(name) for name in names}
    for path in sorted((root / FOLDER).rglob("*.toml")):
        name = str(path.relative_to(root))
        if name not in known:
            yield Mistake(name, 1, f"there is no page {name.removeprefix(FOLDER + '/').removesuffix('.toml')}.md")
