#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cold and a warm run of many_kernels and of spatial on PoCL, and the page that `kiln report` makes of the four traces:
its three longest waits are those that this script computes from the traces by itself, and Chromium draws the marks.

    report_page_test.py KILN MANY_KERNELS SPATIAL CHROMIUM ARTEFACTS

The page and the pictures stay in ARTEFACTS. Returns 77 where Chromium is not there.
"""
import collections
import json
import os
import pathlib
import re
import struct
import sys
import tempfile
import zlib

from browser import Page, browse, check, run

# docs/how-to/find-slow-calls.md: waits for other threads count on every thread, kiln's own work only on threads of the program.
FOR_OTHERS = {"blocking_compile", "claim_waited", "lease_waited", "synchronized"}
OWN_WORK = {"hit", "loaded", "copied"}


def waits(trace, number):
    """Yields (duration, run, event) of every wait in a trace, computed only from the file."""
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    for event in events:
        about = event.get("args", {})
        if event["ph"] not in "Xi" or "id" not in about or not about.get("ms"):
            continue
        background = names.get(about.get("thread", event["tid"]), "").startswith("kiln-")
        if event["cat"] in FOR_OTHERS or (event["cat"] in OWN_WORK and not background):
            yield about["ms"], number, about["id"]


def pixels(png):
    """Counts the colors of a PNG with eight bits per channel, not interlaced, as Chromium writes it."""
    data = png.read_bytes()
    check(data[:8] == b"\x89PNG\r\n\x1a\n", f"{png} is not a PNG")
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", data[at + 8 : at + 18])
        packed += data[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    check(depth == 8 and color in (2, 6), f"{png} has an unsupported format")
    step = 3 if color == 2 else 4
    lines, above, counts = zlib.decompress(packed), bytes(width * step), collections.Counter()
    for y in range(height):
        begin = y * (width * step + 1)
        above = unfiltered(lines[begin], bytearray(lines[begin + 1 : begin + 1 + width * step]), above, step)
        if y % 3 == 0:  # no mark is thinner than that
            counts.update(zip(above[0::step], above[1::step], above[2::step]))
    return {bytes(color): count for color, count in counts.items()}


def unfiltered(kind, line, above, step):
    if kind == 2:
        if not any(line):  # most lines are as the one above
            return above
        return bytearray((a + b) & 255 for a, b in zip(line, above))
    for i in range(len(line) if kind else 0):
        left = line[i - step] if i >= step else 0
        up, corner = above[i], above[i - step] if i >= step else 0
        if kind == 1:
            line[i] = (line[i] + left) & 255
        elif kind == 3:
            line[i] = (line[i] + (left + up) // 2) & 255
        else:
            near = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))
            line[i] = (line[i] + near[2]) & 255
    return line


def colors(page):
    """Returns the legend colors of the light theme by name."""
    style = page[page.index(":root {") : page.index("@media")]
    return {name: bytes.fromhex(value) for name, value in re.findall(r"--(\w+): #([0-9a-f]{6})", style)}


def trace_runs(many_kernels, spatial, folder):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    environment |= {"KILN_CACHE_DIR": str(folder / "cache"), "HOME": str(folder), "KILN_TIME_STAGES": "1",
                    "KILN_ALLOW_CPU_DEVICE": "1"}
    traces = []
    for state in ("cold", "warm"):
        for name, command in (("many_kernels", [many_kernels]),
                              ("spatial", [spatial, "demo", "--points", "20000", "--polygons", "200"])):
            trace = folder / f"{name}-{state}.json"
            run([*command, "--backend", "opencl", "--trace", str(trace)], env=environment, cwd=folder)
            traces.append(trace)
    return sorted(traces)


def check_numbers(page, model, traces):
    expected = sorted((w for i, trace in enumerate(traces) for w in waits(trace, i)), key=lambda w: -w[0])
    check(len(expected) == model["waits_in_all"], f"{len(expected)} waits in the traces, {model['waits_in_all']} in the page")
    embedded = [(w["ms"], w["run"], w["event"]) for w in model["waits"]]
    bars = collections.Counter(bar["category"] for run in model["runs"] for lane in run["lanes"] for row in lane["rows"]
                               for bar in row)
    check(page.marks == bars, f"the marks in the browser are {page.marks}, the bars of the model {bars}")
    for name, found in (("model", embedded), ("table", page.rows)):
        check(found[:3] == expected[:3], f"the {name} has {found[:3]} as the longest waits, the traces {expected[:3]}")
    for i, trace in enumerate(traces):
        kinds = [e.get("cat") for e in json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]]
        for kind, member in (("compiled", "compiles"), ("loaded", "loads"), ("launched", "launches")):
            check(kinds.count(kind) == model["runs"][i][member], f"{trace.name}: {member}")
    labels = [run["label"] for run in model["runs"]]
    check(labels == ["cold", "warm"] * 2, f"the runs are called {labels}")
    check(all(m["why"] for run in model["runs"] for m in run["misses"]), "a miss has no explanation")
    return expected


def check_picture(page, counts, known):
    check(len(counts) > 20, "the screenshot is blank")
    for name in ("wait", "find", "compile", "load", "launch", "copy"):
        check(page.marks.get(name, 0) > 0, f"no mark of the kind {name}: {page.marks}")
        check(counts.get(known[name], 0) > 20, f"the color of {name} is not in the screenshot")
    check(all(page.titles), "a mark has no text")
    check(page.ready.isdigit() and int(page.ready) >= sum(page.marks.values()), "the script did not run")


def main():
    kiln, many_kernels, spatial, chromium, artefacts = sys.argv[1:]
    if not os.access(chromium, os.X_OK):
        print("skipped: chromium is not installed")
        sys.exit(77)
    artefacts = pathlib.Path(artefacts).resolve()
    artefacts.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        traces = trace_runs(many_kernels, spatial, pathlib.Path(folder))
        report = artefacts / "report.html"
        run([kiln, "report", *map(str, traces), "-o", str(report)])
        model = json.loads(run([kiln, "report", *map(str, traces), "--json"]))
        del model["schema_version"]  # of the document that the command prints
        written = Page(report.read_text(encoding="utf-8"))
        check(json.loads(written.model) == model, "--json and the page have different models")
        page = browse(chromium, report, artefacts / "report.png", "1280,3600")
        longest = check_numbers(page, model, traces)
    check(page.images == 0, "the page has an image")
    check_picture(page, pixels(artefacts / "report.png"), colors(report.read_text(encoding="utf-8")))
    print("figure: report of cold and warm runs: longest waits", ", ".join(f"{w[0]:.6g} ms" for w in longest[:3]),
          f"as in the traces; {sum(page.marks.values())} marks, {report.stat().st_size} bytes")


main()
