"""What kiln raises. Each exception has a `code` (docs/python.md lists them), and what a compiler printed as `log`."""

from __future__ import annotations


class Error(Exception):
    """Why something could not be done: one sentence for a person, with what to do next where that is known."""

    def __init__(self, message: str, *, code: str = "internal", log: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.log = log


class InvalidArgument(Error, ValueError):
    """Something was asked for that makes no sense."""


class Unsupported(Error):
    """It makes sense, but not on this machine or with this library."""


class Unavailable(Error):
    """A library, program, device or folder that is needed is not there."""


class Refused(Error):
    """Policy says no: compiling is off, or a folder cannot be trusted."""


class Corrupt(Error):
    """Bytes are not what they claim to be."""


class TimedOut(Error, TimeoutError):
    """It is not ready yet. Work on it goes on, and a later `get` finds it."""


class Cancelled(Error):
    """Somebody took the request back."""


class LoadRefused(Error):
    """The driver does not take the code."""


class Capturing(Error):
    """The stream records a graph, and this would have to load, allocate or wait: do it before."""


class CompileError(Error):
    """The compiler ran and said no. Shown with the line of the source that its first message is about."""

    def __init__(
        self, message: str, *, code: str = "compile_failed", log: str = "", name: str = "", source: str = ""
    ) -> None:
        super().__init__(message, code=code, log=log)
        self.name = name
        self.source = source

    @property
    def line(self) -> int | None:
        """The line of the source that the first message is about; None where the log does not say."""
        found = _first_place(self.log, self.name)
        return found[0] if found else None

    def excerpt(self) -> str:
        """That line of the source with its neighbours, and the column where the compiler names one."""
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
                # Tabs stay, so that the mark stands where the compiler means it.
                lead = "".join(c if c == "\t" else " " for c in lines[number - 1][: column - 1])
                shown.append(f"  {'':>{width}} | {lead}^")
        return "\n".join(shown)

    def __str__(self) -> str:
        parts = [self.message, self.excerpt(), self.log.strip()]
        return "\n".join(part for part in parts if part and part not in parts[0] or part is parts[0])


def _first_place(log: str, name: str) -> tuple[int, int | None] | None:
    """Line and column of the first error in the unit's own text. NVRTC says `name(3): error`, clang `name:3:5: error` and
    PoCL `error: name:3:5`. A compiler may call the source by a name of its own: then any that is no header's is taken."""
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
    "refused": Refused,
    "corrupt": Corrupt,
    "timed_out": TimedOut,
    "cancelled": Cancelled,
    "load_refused": LoadRefused,
    "capturing": Capturing,
}


def make(code: str, message: str, log: str, name: str | None, source: str | None) -> Error:
    """The exception that a code of kiln's has. Called by the extension."""
    if code == "compile_failed":
        return CompileError(message, code=code, log=log, name=name or "", source=source or "")
    return _CLASSES.get(code, Error)(message, code=code, log=log)
