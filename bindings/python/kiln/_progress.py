# SPDX-License-Identifier: Apache-2.0
"""A progress display for requested units. Imports nothing before it is needed."""

from __future__ import annotations

from . import _kiln

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

# Seconds between two looks, and between two lines of a display that cannot rewrite its line.
_STEP = 0.1
_LINE = 2.0


class _Text:
    """A line of text that is rewritten on a terminal; otherwise a line now and then."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._rewrites = file.isatty()
        self._last = ""
        self._next = 0.0

    def show(self, status: _kiln.Status, now: float) -> None:
        text = f"kiln: {_done(status)}/{str(status).splitlines()[0]}"
        if text == self._last or not self._rewrites and now < self._next:
            return
        # A shorter text must cover a longer one.
        self._file.write(f"\r{text:<{len(self._last)}}" if self._rewrites else f"{text}\n")
        self._file.flush()
        self._last, self._next = text, now + _LINE

    def close(self, status: _kiln.Status) -> None:
        self.show(status, float("inf"))
        if self._rewrites and self._last:
            self._file.write("\n")


class _Bar:
    """A bar of tqdm, which also works in notebooks."""

    def __init__(self, file: TextIO | None) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(desc="kiln", unit="unit", total=0, file=file)

    def show(self, status: _kiln.Status, now: float) -> None:
        self._bar.total = status.submitted
        self._bar.n = _done(status)
        self._bar.set_postfix(compiled=status.compiled, cached=status.cached, failed=status.failed, refresh=False)
        self._bar.refresh()

    def close(self, status: _kiln.Status) -> None:
        self.show(status, 0.0)
        self._bar.close()


def _done(status: _kiln.Status) -> int:
    return status.submitted - status.pending


def _display(file: TextIO | None) -> _Bar | _Text:
    try:
        return _Bar(file)
    except ImportError:
        import sys

        return _Text(file if file is not None else sys.stderr)


def warmup_progress(
    session: _kiln.Session | None = None, *, timeout: float | None = None, file: TextIO | None = None
) -> _kiln.Status:
    """Shows how many of the requested units are ready, until none is pending, at most `timeout` seconds.

    With tqdm installed, a bar; otherwise text on `file`, by default standard error. `session` is by default
    `kiln.shared`. Returns the status. Ctrl-C ends the display; the work continues.
    """
    import time

    if session is None:
        from . import shared

        session = shared
    end = None if timeout is None else time.monotonic() + timeout
    status = session.status()
    display = _display(file)
    try:
        while status.pending and (end is None or time.monotonic() < end):
            display.show(status, time.monotonic())
            time.sleep(_STEP if end is None else max(0.0, min(_STEP, end - time.monotonic())))
            status = session.status()
    finally:
        display.close(status)
    return status
