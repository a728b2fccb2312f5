"""Figures as people read them."""

from __future__ import annotations

import math

from run import Behaviour, Figure

NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
SPACE = "\u00a0"  # a figure and its unit stay on one line
STEPS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))


def digits(value: float, significant: int) -> str:
    """Without an exponent, and no more digits behind the point than count."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{significant}g}")  # 9.99 with two digits is 10
    places = max(0, significant - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:,.{min(places, 6)}f}"


def quantity(value: float, unit: str) -> str:
    """A time in the unit that suits it; anything else as it is."""
    if unit not in NANOSECONDS:
        return f"{value:,.10g} {unit}".rstrip()
    nanoseconds = value * NANOSECONDS[unit]
    for name, size in STEPS:
        if abs(nanoseconds) >= size * 0.9995 or name == "ns":
            return f"{digits(nanoseconds / size, 3)}{SPACE}{name}"
    return ""


def share(value: float) -> str:
    """A ratio: two digits behind the point, or as many as the first two that count need."""
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else digits(value, 2)


def ratio(figure: Figure) -> str:
    if figure.compared == "difference":
        return f"{quantity(figure.ratio, figure.unit)} more" if figure.ratio >= 0 else f"{quantity(-figure.ratio, figure.unit)} less"
    return share(figure.ratio)


def doubt(figure: Figure) -> str:
    """How far the ratio may be off, by the rounds of this run."""
    if figure.n < 2:
        return "one round"
    off = figure.spread * figure.limit
    text = f"±{SPACE}{quantity(off, figure.unit) if figure.compared == 'difference' else share(off)}"
    return text if figure.settled else f"{text}, not settled"


def limit(figure: Figure) -> str:
    return quantity(figure.limit, figure.unit) if figure.compared == "difference" else share(figure.limit).rstrip("0").rstrip(".")


def amount_behind(row: Figure | Behaviour) -> str:
    """By how much a row is behind its peer, or over its limit; and whether this run can tell that from chance."""
    if isinstance(row, Behaviour):
        return "not what it should do"
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
