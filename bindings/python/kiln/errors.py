# SPDX-License-Identifier: Apache-2.0
"""Exceptions of kiln. Each has a `code` (docs/reference/python.md lists them) and the compiler output as `log`."""

from __future__ import annotations


class Error(Exception):
    """The base class: a human-readable message that names the next step if there is one."""

    def __init__(self, message: str, *, code: str = "internal", log: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.log = log


class InvalidArgument(Error, ValueError):
    """The caller passed an invalid value."""


class Unsupported(Error):
    """Valid, but not supported on this machine or by this library."""


class Unavailable(Error):
    """A required library, program, device or directory is missing."""


class Denied(Error):
    """Policy or permissions forbid it: compiling is off, or a directory is not trusted."""


class Corrupt(Error):
    """The bytes fail verification."""


class TimedOut(Error, TimeoutError):
    """The unit is not ready yet. The compile continues, and a later `get` can use its result."""


class Cancelled(Error):
    """The request was canceled."""


class LoadRejected(Error):
    """The driver rejects the code."""


class Capturing(Error):
    """The stream is capturing a graph, and the call would have to load, allocate or wait: do it before the capture."""


class CompileError(Error):
    """The compiler rejected the unit. Printed with the source line of the first error message."""

    def __init__(
        self, message: str, *, code: str = "compile_failed", log: str = "", name: str = "", source: str = ""
    ) -> None:
        super().__init__(message, code=code, log=log)
        self.name = name
        self.source = source

    @property
    def line(self) -> int | None:
        """The source line of the first error message; None if the log does not contain it."""
        found = _first_place(self.log, self.name)
        return found[0] if found else None

    def excerpt(self) -> str:
        """Returns that source line with the lines around it, and marks the column if the compiler names one."""
        found = _first_place(self.log, self.name)
        lines = self.source.splitlines()
        if found is None or not 1 <= found[0] <= len(lines):
            return ""
        at, column = found
        width = len(str(at + 1))
        shown = []
        for number in range(max(1, at - 1), min(len(lines), at + 1) + 1):
            mark = ">" if number == at else " "
            shown.append(f"{mark} {number:>{width}} | {lines[number - 1]}")
            if number == at and column is not None:
                # Keeps tabs, so that the mark is below the column that the compiler means.
                lead = "".join(c if c == "\t" else " " for c in lines[number - 1][: column - 1])
                shown.append(f"  {'':>{width}} | {lead}^")
        return "\n".join(shown)

    def __str__(self) -> str:
        parts = [self.message, self.excerpt(), self.log.strip()]
        return "\n".join(part for part in parts if part and part not in parts[0] or part is parts[0])


def _first_place(log: str, name: str) -> tuple[int, int | None] | None:
    """Returns line and column of the first error in the unit's own source. NVRTC prints `name(3): error`, clang
    `name:3:5: error` and PoCL `error: name:3:5`. A compiler may use its own name for the source: then the first file
    that is not a header is used."""
    import re

    where = r"(?P<file>[^\n:]*?)(?:\((?P<a>\d+)\)|:(?P<b>\d+):(?P<c>\d+)): *"
    kind = r"(?:fatal |catastrophic )?error"
    places = list(re.finditer(rf"^(?:{kind}: *{where}|{where.replace('<', '<_')}{kind})", log, re.M))
    said = [tuple(part for part in found.groups() if part is not None) for found in places]
    own = [place for place in said if name and place[0].endswith(name)]
    for file, line, *column in own or said:
        if own or not file.endswith((".h", ".hpp", ".cuh", ".inl")):
            return int(line), int(column[0]) if column else None
    return None


_CLASSES: dict[str, type[Error]] = {
    "invalid_argument": InvalidArgument,
    "unsupported": Unsupported,
    "unavailable": Unavailable,
    "denied": Denied,
    "corrupt": Corrupt,
    "timed_out": TimedOut,
    "cancelled": Cancelled,
    "load_rejected": LoadRejected,
    "capturing": Capturing,
}


def make(code: str, message: str, log: str, name: str | None, source: str | None) -> Error:
    """Returns the exception for a code of kiln. Called by the extension."""
    if code == "compile_failed":
        return CompileError(message, code=code, log=log, name=name or "", source=source or "")
    return _CLASSES.get(code, Error)(message, code=code, log=log)
