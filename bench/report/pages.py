"""Pages with generated parts: the text between <!-- table: NAME --> and <!-- end --> is replaced, and lines of layout.toml. All
other text is kept."""

from __future__ import annotations

import re
from collections.abc import Callable

from run import Mistake

MARKED = re.compile(r"^<!-- table: (\S+) -->\n(.*?)^<!-- end -->$", re.M | re.S)
MARK = re.compile(r"^<!-- (?:table: \S+|end) -->$", re.M)


def filled(page: str, text: str, make: Callable[[str], str]) -> str:
    """Returns the page with every table replaced by the result of `make` for its name."""
    marks = len(MARK.findall(text))
    blocks = list(MARKED.finditer(text))
    if marks != 2 * len(blocks) or any(MARK.search(block[2]) for block in blocks):
        raise Mistake(f"{page}: a table has no begin or no end marker")

    def one(block: re.Match[str]) -> str:
        return f"<!-- table: {block[1]} -->\n\n{make(block[1]).strip()}\n\n<!-- end -->"

    return MARKED.sub(one, text)


def with_line(page: str, text: str, begins: str, line: str) -> str:
    """Returns the page with the one line that begins with a text replaced."""
    lines = text.split("\n")
    found = [number for number, one in enumerate(lines) if one.startswith(begins)]
    if len(found) != 1:
        raise Mistake(f"{page}: {len(found)} lines begin with '{begins}'; layout.toml expects one")
    lines[found[0]] = line
    return "\n".join(lines)
