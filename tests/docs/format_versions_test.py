# SPDX-License-Identifier: Apache-2.0
"""Checks that the grammars of docs/internals state the version number that the source has for each format."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAGIC = r'"(KILN[A-Z0-9]{3,4})"'

# The constant that follows the magic in the same source.
in_source = {}
for path in sorted([*ROOT.glob("src/**/*.?pp"), *ROOT.glob("apps/**/*.?pp")]):
    for found in re.finditer(MAGIC + r";(?:(?!KILN[A-Z]).){0,400}?Version = (\d+);", path.read_text(), re.DOTALL):
        in_source[found[1]] = found[2]

compared = []
for page in sorted(ROOT.glob("docs/internals/**/*.md")):
    for found in re.finditer(MAGIC + r"[^K]{0,60}?version\W*u32\W{1,12}(\d+)", page.read_text()):
        if found[1] in in_source:
            compared.append(found[1])
            assert found[2] == in_source[found[1]], (
                f"{page.relative_to(ROOT)} says version {found[2]} of {found[1]}, the source has {in_source[found[1]]}; change the page")
assert {"KILNWRK1", "KILNPCH1", "KILNENT1"} <= set(compared), compared
print(f"{len(compared)} formats have the numbers of the source: {' '.join(sorted(compared))}")
