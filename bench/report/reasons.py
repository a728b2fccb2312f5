"""Why a row is behind: reasons.toml has a sentence for each such result, by its name or by a pattern of names. A row that
is behind and has none is an error, so that nobody publishes one without having asked why."""

from __future__ import annotations

import fnmatch
import pathlib
import tomllib

from run import Behaviour, Figure, Mistake, Run


class Reasons:
    def __init__(self, given: dict[str, str]) -> None:
        self.given = given

    @classmethod
    def read(cls, path: pathlib.Path) -> Reasons:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        for name, reason in given.items():
            if not isinstance(reason, str) or not reason.strip():
                raise Mistake(f"{path.name}: '{name}' has no reason, which is a sentence")
        return cls(given)

    def of(self, row: Figure | Behaviour) -> str | None:
        """The name itself comes before patterns, and an earlier pattern before a later one."""
        if row.name in self.given:
            return self.given[row.name].strip()
        return next((text.strip() for pattern, text in self.given.items() if fnmatch.fnmatch(row.name, pattern)), None)

    def missing(self, run: Run) -> list[str]:
        return [row.name for row in run.rows if row.behind and self.of(row) is None]
