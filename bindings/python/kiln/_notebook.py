# SPDX-License-Identifier: Apache-2.0
"""Tables for notebooks. Imported when one is first shown."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from . import _kiln
from .errors import Error

_MAX_ROWS = 200


def _table(caption: str, head: Iterable[str], rows: list[tuple[object, ...]]) -> str:
    def line(cells: Iterable[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    lines = [line(row, "td") for row in rows[:_MAX_ROWS]]
    if len(rows) > _MAX_ROWS:
        lines.append(line([f"… and {len(rows) - _MAX_ROWS} more"], "td"))
    return f"<table><caption>{escape(caption)}</caption>{line(head, 'th')}{''.join(lines)}</table>"


def status_html(status: _kiln.Status) -> str:
    """Returns the counts and a row for each unit."""
    rows: list[tuple[object, ...]] = [
        (unit.unit, unit.target, unit.state, unit.origin or "", f"{unit.ms:.1f}", unit.error) for unit in status.units
    ]
    return _table(str(status).split("\n")[0], ("unit", "target", "state", "origin", "ms", "error"), rows)


def kernel_html(kernel: _kiln.Kernel) -> str:
    """Returns where the kernel comes from and a row for each parameter."""
    caption = f"kernel {kernel.name} of {kernel.unit.label} for {kernel.target}"
    try:
        parameters = kernel.parameters
    except Error:  # for example without a current context
        parameters = []
    rows: list[tuple[object, ...]] = [
        (i, one.name, one.type, one.size or "") for i, one in enumerate(parameters)
    ]
    return _table(caption, ("argument", "name", "type", "bytes"), rows)
