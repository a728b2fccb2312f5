# SPDX-License-Identifier: Apache-2.0
"""Reasons for results that are behind: reasons.toml has a text for each such result, by name or by pattern. A result that is
behind without a reason is an error, so that no unexplained result is published."""

from __future__ import annotations

import fnmatch
import pathlib
import tomllib

from run import Behavior, Figure, Mistake, Run


class Reasons:
    def __init__(self, given: dict[str, str]) -> None:
        self.given = given

    @classmethod
    def read(cls, path: pathlib.Path) -> Reasons:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        for name, reason in given.items():
            if not isinstance(reason, str) or not reason.strip():
                raise Mistake(f"{path.name}: '{name}' has no text")
        return cls(given)

    def of(self, row: Figure | Behavior) -> str | None:
        """Returns the reason of a row. The name takes precedence over patterns, and an earlier pattern over a later one."""
        if row.name in self.given:
            return self.given[row.name].strip()
        return next((text.strip() for pattern, text in self.given.items() if fnmatch.fnmatch(row.name, pattern)), None)

    def missing(self, run: Run) -> list[str]:
        return [row.name for row in run.rows if row.behind and self.of(row) is None]
