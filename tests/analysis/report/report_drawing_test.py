#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Chromium draws from the pages of small traces: malicious names stay text, truncated lists and timelines say so, and an
empty trace has a page.

    report_drawing_test.py KILN CHROMIUM ARTEFACTS

Returns 77 where Chromium is not there.
"""
import json
import os
import pathlib
import sys
import tempfile

from browser import browse, check, run

HOSTILE = "</script><img src=x onerror=\"document.documentElement.dataset.ready='bad'\"><!--&amp;"
TURNED = "\u202egnp\u2066\u0007"


def write_trace(path, events, name="app", thread="kiln-compile-0"):
    """Writes a trace; an event is (kind, end in ms, duration in ms, thread, arguments)."""
    about = {"ph": "M", "ts": 0, "pid": 1}
    lines = [about | {"tid": 1, "name": "process_name", "args": {"name": name}},
             about | {"tid": 1, "name": "kiln_trace", "args": {"name": "kiln trace 2", "command": name, "date": "today"}},
             about | {"tid": 2, "name": "thread_name", "args": {"name": thread}}]
    for number, (kind, end, ms, tid, arguments) in enumerate(events, start=1):
        lines.append({"ph": "X", "ts": (end - ms) * 1000, "dur": ms * 1000, "pid": 1, "tid": tid, "cat": kind, "name": kind,
                      "args": {"id": number, "ms": ms} | arguments})
    path.write_text(json.dumps({"traceEvents": lines}), encoding="utf-8")
    return path


def first_call(name, task):
    """Returns the events of a cold first call with a problem, and of its result."""
    about = {"unit": name, "target": name, "task_id": hex(task), "message": name}
    return [("requested", 1, 0, 1, about), ("miss", 2, 0, 2, about), ("compiled", 102, 100, 2, about),
            ("blocking_compile", 103, 90, 1, about), ("load_rejected", 104, 0, 1, about),
            ("hit", 106, 1, 1, about | {"origin": name}), ("loaded", 110, 5, 1, about), ("launched", 112, 1, 1, about),
            ("copied", 150, 38, 1, {"message": "from the device", "unit": name})]


def check_names(draw, folder):
    """Names that try to leave their element, in the dark theme and at the width of a phone."""
    name = HOSTILE + TURNED
    trace = write_trace(folder / "hostile.json", first_call(name, 1), name, "kiln-" + name)
    page = draw("report-hostile", [trace], "500,3000", "--blink-settings=preferredColorScheme=0")
    check(page.images == 0, "a name became a tag")
    check(page.ready.isdigit() and sum(page.marks.values()) == 9, f"the page is incomplete: {page.ready}, {page.marks}")
    shown = HOSTILE + "\ufffdgnp\ufffd\ufffd"
    check(page.codes.count(shown) >= 4, f"the unit is shown as {set(page.codes)}")
    check(all(shown in title for title in page.titles), f"the marks are described as {page.titles}")
    check(not set(TURNED) & (set(page.text) - set("gnp")), "a character that changes the direction of text is in the page")
    for text in ("a compile: ", "Problems", "load rejected", "First call: ", "compiled in 100 ms", "Audit", "150 ms"):
        check(text in page.text, f"the page does not contain: {text}")


def check_comparison(draw, folder):
    """A cold and a warm run side by side."""
    warm = [("requested", 1, 0, 1, {"unit": "a", "task_id": "0x1"}),
            ("hit", 2, 0.5, 2, {"unit": "a", "task_id": "0x1", "origin": "disk"}),
            ("loaded", 8, 5, 1, {"unit": "a", "task_id": "0x1"}), ("launched", 10, 1, 1, {"unit": "a", "task_id": "0x1"}),
            ("copied", 13, 1, 1, {"message": "from the device", "bytes": 4, "purpose": "allocation_size"}),
            ("copied", 15, 1, 1, {"message": "from the device", "bytes": 64})]
    cold = write_trace(folder / "cold.json", first_call("a", 1) + first_call("b", 2))
    page = draw("report-compared", [cold, write_trace(folder / "warm.json", warm)], "1280,3000")
    for text in ("2 runs of 1 program. A thread was blocked for up to 90.0 ms: app in the cold run of app, on a.",
                 "The first result was ready after 150 ms cold and after 15.0 ms warm: 10 times faster.",
                 "until the first result", "Blocked threads", "Cache tiers", "idle until launch",
                 "not in this run", "disk · ", "1 disk", "5.50 ms"):
        check(text in page.text, f"the page does not contain: {text}")
    check("2 adjacent events, first: requested · a · at 1.00 ms · app · a" in page.titles, f"the marks are {page.titles}")


def check_large(draw, folder):
    """20,000 events of 5,000 units on 40 threads."""
    events = [(("compiled", "synchronized")[i // 5000 % 2], 10 + i, 1 + i * 7919 % 100, 200 + i % 40,
               {"unit": f"unit {i % 5000}", "task_id": hex(i % 5000 + 1)}) for i in range(20000)]
    page = draw("report-large", [write_trace(folder / "large.json", events)], "1280,3000")
    for text in ("The first 12 of 10000 waits are shown.", "The first 40 of 5000 units are shown.", " events are not drawn"):
        check(text in page.text, f"the page does not contain: {text}")


def check_empty(draw, folder):
    page = draw("report-empty", [write_trace(folder / "empty.json", [])], "1280,2000")
    check(page.text.count("No thread was blocked.") == 2, f"the page of an empty trace says: {page.text}")
    for text in ("no launch", "no unit was requested", "None: every requested unit was found.", "No findings."):
        check(text in page.text, f"the page of an empty trace does not contain: {text}")
    check("NaN" not in page.text and "undefined" not in page.text and "null" not in page.text, "the page shows a missing value")


def main():
    kiln, chromium, artefacts = sys.argv[1:]
    if not os.access(chromium, os.X_OK):
        print("skipped: chromium is not installed")
        sys.exit(77)
    artefacts = pathlib.Path(artefacts).resolve()
    artefacts.mkdir(parents=True, exist_ok=True)

    def draw(name, traces, size, *more):
        report = artefacts / f"{name}.html"
        run([kiln, "report", *map(str, traces), "-o", str(report)])
        return browse(chromium, report, artefacts / f"{name}.png", size, *more)

    with tempfile.TemporaryDirectory() as folder:
        for part in (check_names, check_comparison, check_large, check_empty):
            part(draw, pathlib.Path(folder))


main()
