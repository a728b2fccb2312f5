"""Lines of JSON for bench/report, as kiln-bench and bench/peers/run print them: what these benchmarks have in common.

A benchmark that is given --json prints lines to stdout and what is for people to stderr.
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

# From the median absolute deviation to half the 95 % confidence interval of a median, as bench/harness.cpp has it.
HALF_INTERVAL = 1.4826 * 1.2533 * 1.96
SMALL_SPREAD = 0.05

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _failed(*what: Any) -> None:
    """An exception is no limit that was broken, which Python's own exit code, 1, would say."""
    traceback.print_exception(*what)
    sys.stderr.flush()
    os._exit(3)


wanted = "--json" in sys.argv
if wanted:
    sys.argv.remove("--json")
    _lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout = sys.stderr
    sys.excepthook = _failed
# As one types it at the root of the tree.
words = [os.path.relpath(word, ROOT) if "/" in word else word for word in sys.argv]
command = " ".join(["PYTHONPATH=build/release/python .venv/bin/python", *words])


def version(package: str) -> str:
    return importlib.metadata.version(package)


def _print(line: dict[str, Any]) -> None:
    if wanted:
        print(json.dumps(line | {"command": command}, ensure_ascii=False), file=_lines, flush=True)


def figure(name: str, row: str, peer: str, what: str, ours: list[float], theirs: list[float], unit: str) -> None:
    """The limit is 1: kiln is to be ahead of whomever it is put under."""
    ratios = [a / b for a, b in zip(ours, theirs)]
    middle = statistics.median(ratios)
    spread = 1.0
    if len(ratios) > 1:
        spread = statistics.median(abs(ratio - middle) for ratio in ratios) * HALF_INTERVAL / math.sqrt(len(ratios))
    _print({"kind": "figure", "name": name, "row": row, "peer": peer, "what": what,
            "ours": float(f"{statistics.median(ours):.4g}"), "theirs": float(f"{statistics.median(theirs):.4g}"),
            "ratio": float(f"{middle:.4g}"), "spread": float(f"{spread:.3g}"), "n": len(ratios), "limit": 1.0, "unit": unit,
            "settled": spread <= SMALL_SPREAD})  # fmt: skip


def behaviour(name: str, row: str, peer: str, what: str, ours: str, theirs: str, good: tuple[bool, bool], test: str) -> None:
    """`good`: of ours, of theirs. `test` holds ours to it."""
    _print({"kind": "behaviour", "name": name, "row": row, "peer": peer, "what": what, "ours": ours, "theirs": theirs,
            "ours_good": good[0], "theirs_good": good[1], "test": f"tests/bindings/python/adapters/{test}"})  # fmt: skip


def compiles(count: int) -> str:
    return "1 compile" if count == 1 else f"{count} compiles"
