# SPDX-License-Identifier: Apache-2.0
"""Formatting of numbers."""

from __future__ import annotations

import math

from run import Behavior, Figure

NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
SPACE = "\u00a0"  # keeps a number and its unit on one line
STEPS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))


def digits(value: float, significant: int) -> str:
    """Formats a number without exponent, with the given significant digits."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{significant}g}")  # 9.99 with two digits is 10
    places = max(0, significant - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:,.{min(places, 6)}f}"


def quantity(value: float, unit: str) -> str:
    """Formats a time in a suitable unit, and other values unchanged."""
    if unit not in NANOSECONDS:
        return f"{value:,.10g} {unit}".rstrip()
    nanoseconds = value * NANOSECONDS[unit]
    for name, size in STEPS:
        if abs(nanoseconds) >= size * 0.9995 or name == "ns":
            return f"{digits(nanoseconds / size, 3)}{SPACE}{name}"
    return ""


def share(value: float) -> str:
    """Formats a ratio with two decimals, or with two significant digits if it is small."""
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else digits(value, 2)


def ratio(figure: Figure) -> str:
    if figure.compared == "difference":
        return f"{quantity(figure.ratio, figure.unit)} more" if figure.ratio >= 0 else f"{quantity(-figure.ratio, figure.unit)} less"
    return share(figure.ratio)


def ratio_error(figure: Figure) -> str:
    """Formats the error of the ratio, from the rounds of this run."""
    if figure.n < 2:
        return "one round"
    off = figure.spread * figure.limit
    text = f"±{SPACE}{quantity(off, figure.unit) if figure.compared == 'difference' else share(off)}"
    return text if figure.settled else f"{text}, not settled"


def limit(figure: Figure) -> str:
    return quantity(figure.limit, figure.unit) if figure.compared == "difference" else share(figure.limit).rstrip("0").rstrip(".")


def amount_behind(row: Figure | Behavior) -> str:
    """Formats how far a row is behind its peer or over its limit, and whether that is significant in this run."""
    if isinstance(row, Behavior):
        return "wrong behavior"
    if row.n < 2:
        return f"{amount(row)}, in one round"
    return f"{amount(row)}, less than the spread" if row.ratio - row.spread * row.limit <= row.allowed else amount(row)


def amount(row: Figure) -> str:
    if row.compared == "difference":
        return f"{quantity(row.ratio - row.allowed, row.unit)} over the limit"
    more = row.ratio / row.allowed - 1
    much = f"{share(row.ratio / row.allowed)} times" if more >= 1 else f"{digits(100 * more, 2)} %"
    if row.peer and row.limit >= 1:
        return f"{much} the peer's" if more >= 1 else f"{much} behind"
    return f"{much} the limit" if more >= 1 else f"{much} over the limit"


def theirs(figure: Figure) -> str:
    text = quantity(figure.theirs, figure.unit)
    return f"{text} allowed" if figure.compared == "time" else text


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").strip()


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def table(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "".join("| " + " | ".join(cell(text) for text in line) + " |\n" for line in lines)
