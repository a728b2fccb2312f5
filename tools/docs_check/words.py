# SPDX-License-Identifier: Apache-2.0
"""The word budgets of the pages of docs/: tests/docs/words.toml. Generated files (docs/_generated) have no budget."""
import pathlib
import re
import tomllib

from .pages import Mistake

BUDGETS = "tests/docs/words.toml"
TOLERANCE = 1.25


def count(path):
    """Returns the number of words: texts between blanks that have a letter or a digit, unlike the bars of tables."""
    return sum(re.search(r"\w", word) is not None for word in path.read_text(encoding="utf-8").split())


def counts(root, names):
    """Returns the number of words of each page of docs/, by its path below docs/."""
    return {name.removeprefix("docs/"): count(root / name) for name in names if name.startswith("docs/")}


def word_mistakes(root, names):
    """Yields pages above 125 % of their budget, pages without one, budgets without a page, and a total above the limit."""
    if not (root / BUDGETS).exists():
        return
    given = tomllib.loads((root / BUDGETS).read_text(encoding="utf-8"))
    budgets, found = given["pages"], counts(root, names)
    for name, number in found.items():
        if name not in budgets:
            yield Mistake(f"docs/{name}", 1, f"this page has no word budget in {BUDGETS}")
        elif number > TOLERANCE * budgets[name]:
            yield Mistake(f"docs/{name}", 1, f"this page has {number} words; its budget in {BUDGETS} is {budgets[name]}")
    for name in sorted(set(budgets) - set(found)):
        yield Mistake(BUDGETS, 1, f"there is no page docs/{name}")
    if sum(found.values()) > given["total"]:
        yield Mistake(BUDGETS, 1, f"the pages have {sum(found.values())} words in all; the limit is {given['total']}")


def print_counts(root, names):
    """Prints the number of words of each section."""
    sections = {}
    for name, number in counts(root, names).items():
        section = pathlib.PurePosixPath(name).parts[0] if "/" in name else "start page and architecture"
        pages, words = sections.get(section, (0, 0))
        sections[section] = pages + 1, words + number
    generated = sum(count(path) for path in (root / "docs/_generated").rglob("*.md"))
    total = sum(number for _, number in sections.values())
    for section, (number, words) in sections.items():
        print(f"  {words:6} words  {section}: {number} pages")
    print(f"  {total:6} words in docs/, and {generated} in generated tables")
