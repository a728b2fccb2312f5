"""Pages with tables in them: what stands between <!-- table: NAME --> and <!-- end --> is replaced, all else is kept."""

from __future__ import annotations

import re
from collections.abc import Callable

from run import Mistake

MARKED = re.compile(r"^<!-- table: (\S+) -->\n(.*?)^<!-- end -->$", re.M | re.S)
MARK = re.compile(r"^<!-- (?:table: \S+|end) -->$", re.M)


def filled(page: str, text: str, make: Callable[[str], str]) -> str:
    """The page with every table as `make` makes it by its name."""
    marks = len(MARK.findall(text))
    blocks = list(MARKED.finditer(text))
    if marks != 2 * len(blocks) or any(MARK.search(block[2]) for block in blocks):
        raise Mistake(f"{page}: a table that begins has no end, or one that ends no beginning")

    def one(block: re.Match[str]) -> str:
        return f"<!-- table: {block[1]} -->\n\n{make(block[1]).strip()}\n\n<!-- end -->"

    return MARKED.sub(one, text)
