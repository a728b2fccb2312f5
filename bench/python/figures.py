# SPDX-License-Identifier: Apache-2.0
"""The common part of these benchmarks: lines of JSON for bench/report, as kiln-bench and bench/peers/run print them.

With --json a benchmark prints these lines to stdout and readable output to stderr.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import statistics
import sys
import traceback
from typing import Any

# Converts the median absolute deviation to half the 95 % confidence interval of a median, as in bench/support/harness.cpp.
HALF_INTERVAL = 1.4826 * 1.2533 * 1.96
SMALL_SPREAD = 0.05

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _failed(*what: Any) -> None:
    """Exits with a code other than 1 on an exception, because 1 means that a limit was exceeded."""
    traceback.print_exception(*what)
    sys.stderr.flush()
    os._exit(3)


wanted = "--json" in sys.argv
if wanted:
    sys.argv.remove("--json")
    _lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout = sys.stderr
    sys.excepthook = _failed
# The command as typed at the root of the tree.
words = [os.path.relpath(word, ROOT) if "/" in word else word for word in sys.argv]
command = " ".join(["PYTHONPATH=build/release/python .venv/bin/python", *words])


def version(package: str) -> str:
    return importlib.metadata.version(package)


def _print(line: dict[str, Any]) -> None:
    if wanted:
        print(json.dumps(line | {"command": command}, ensure_ascii=False), file=_lines, flush=True)


def figure(
    name: str, row: str, peer: str, what: str, ours: list[float], theirs: list[float], unit: str, limit: float = 1.0
) -> tuple[float, float]:
    """Prints a figure; returns its ratio and spread. With a limit of 1 kiln must be faster than the system that uses it."""
    ratios = [a / b for a, b in zip(ours, theirs)]
    middle = statistics.median(ratios)
    spread = 1.0
    if len(ratios) > 1:
        spread = statistics.median(abs(ratio - middle) for ratio in ratios) * HALF_INTERVAL / math.sqrt(len(ratios))
    _print({"kind": "figure", "name": name, "row": row, "peer": peer, "what": what,
            "ours": float(f"{statistics.median(ours):.4g}"), "theirs": float(f"{statistics.median(theirs):.4g}"),
            "ratio": float(f"{middle:.4g}"), "spread": float(f"{spread:.3g}"), "n": len(ratios), "limit": limit, "unit": unit,
            "settled": spread <= SMALL_SPREAD})  # fmt: skip
    return middle, spread


def behavior(name: str, row: str, peer: str, what: str, ours: str, theirs: str, good: tuple[bool, bool], test: str) -> None:
    """Prints a behavior. `good` holds the correctness of ours and theirs; `test` is the test that checks ours."""
    _print({"kind": "behaviour", "name": name, "row": row, "peer": peer, "what": what, "ours": ours, "theirs": theirs,
            "ours_good": good[0], "theirs_good": good[1], "test": f"tests/bindings/python/adapters/{test}"})  # fmt: skip


def compiles(count: int) -> str:
    return "1 compile" if count == 1 else f"{count} compiles"
