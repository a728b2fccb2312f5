# SPDX-License-Identifier: Apache-2.0
"""Creates the tables of docs/reference/benchmarks.md (docs/_generated/benchmarks-*.md), its plots, and the lines of other pages
that have figures, from docs/benchmarks.jsonl alone.

    python3 bench/report            write the pages
    python3 bench/report --check    write nothing; fail if a page is out of date

bench/run_all writes the file. The command fails if a result is behind a peer or over its limit and reasons.toml has no reason
for it; the pages are written all the same, and show it.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tomllib

import pages
import words
from plots import PLOTS
from reasons import Reasons
from run import Mistake, read
from tables import TABLES, Source, line

HERE = pathlib.Path(__file__).resolve().parent


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is out of date")
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1], help="root of the source tree")
    parser.add_argument("--results", type=pathlib.Path, help="file of JSON lines (default: ROOT/docs/benchmarks.jsonl)")
    parser.add_argument("--reasons", type=pathlib.Path, default=HERE / "reasons.toml")
    parser.add_argument("--layout", type=pathlib.Path, default=HERE / "layout.toml")
    return parser.parse_args(words)


def made(root: pathlib.Path, source: Source) -> dict[pathlib.Path, str | None]:
    """Returns the expected content of every file; None if the file should not exist."""
    files: dict[pathlib.Path, str | None] = {}
    for name, table in TABLES.items():
        files[root / f"docs/_generated/benchmarks-{name.replace('_', '-')}.md"] = table(source).strip() + "\n"
    for one in source.layout.get("lines", []):
        path = root / one["page"]
        text = line(source, one["text"])
        if text is not None and path.exists():
            before = files.get(path) or path.read_text(encoding="utf-8")
            files[path] = pages.with_line(one["page"], before, one["begins"], text)
    for name, draw in PLOTS.items():
        files[root / "docs" / name] = draw(source)
    return files


def report(given: argparse.Namespace) -> int:
    results = given.results or given.root / "docs" / "benchmarks.jsonl"
    run = read(results)
    reasons = Reasons.read(given.reasons)
    layout = tomllib.loads(given.layout.read_text(encoding="utf-8"))
    wrong = 0
    for path, text in made(given.root, Source(run, reasons, layout)).items():
        if (path.read_text(encoding="utf-8") if path.exists() else None) == text:
            continue
        if given.check:
            print(f"bench/report: {path.name} does not match {results.name}; run python3 bench/report", file=sys.stderr)
            wrong += 1
        elif text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"bench/report: wrote {path.name}")
    for row in run.rows:
        if row.behind:
            print(f"bench/report: {row.name}: {words.amount_behind(row)}", file=sys.stderr)
    for name in reasons.missing(run):
        print(f"bench/report: {name} is behind; add the reason to {given.reasons.name}", file=sys.stderr)
        wrong += 1
    return 1 if wrong else 0


def main(words: list[str]) -> int:
    try:
        return report(options(words))
    except (Mistake, OSError, tomllib.TOMLDecodeError) as mistake:
        print(f"bench/report: {mistake}", file=sys.stderr)
        return 1
