# SPDX-License-Identifier: Apache-2.0
"""Pages with lines that have figures, as layout.toml lists them. All other text is kept."""

from __future__ import annotations

from run import Mistake


def with_line(page: str, text: str, begins: str, line: str) -> str:
    """Returns the page with the one line that begins with a text replaced."""
    lines = text.split("\n")
    found = [number for number, one in enumerate(lines) if one.startswith(begins)]
    if len(found) != 1:
        raise Mistake(f"{page}: {len(found)} lines begin with '{begins}'; layout.toml expects one")
    lines[found[0]] = line
    return "\n".join(lines)
