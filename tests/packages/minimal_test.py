#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages of `tools/setup.sh --minimal` are what a build of the library and the program reads, and no others.

    minimal_test.py SOURCE_DIR BUILD_DIR      compares them with the headers and archives of BUILD_DIR, a build by Ninja
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys

# Compilers and tools; they own no header that a source names.
PROGRAMS = {"g++", "cmake", "ninja-build", "pkg-config", "python3"}


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def listed(source: pathlib.Path) -> set[str]:
    """Returns the packages of --minimal: the first list of tools/setup.sh."""
    text = re.search(r"^packages=\(\n(.*?)^\)", (source / "tools/setup.sh").read_text(), re.DOTALL | re.MULTILINE)
    assert text, "tools/setup.sh has no list of packages"
    return set(re.sub(r"#.*", "", text[1]).split())


def files_of(build: pathlib.Path) -> set[str]:
    """Returns the system's headers that objects of the library and the programs include, and the archives that they link."""
    found, wanted = set(), False
    for line in output("ninja", "-C", str(build), "-t", "deps").splitlines():
        if not line.startswith(" "):
            wanted = line.startswith(("src/", "apps/", "runtime/", "analysis/", "bindings/c/"))
        elif wanted and line.strip().startswith("/usr/include/"):
            found.add(line.strip())
    archives = re.findall(r"^KILN_LIB\w+:FILEPATH=(/usr/.*\.a)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
    return found | set(archives)


def owners(files: set[str]) -> set[str]:
    """Returns the packages that own these files; headers of the compiler and the C library belong to g++."""
    lines = output("dpkg-query", "-S", *sorted(files)).splitlines()
    return {re.split(r"[:,]", line)[0] for line in lines}


def dependencies() -> dict[str, set[str]]:
    text = output("dpkg-query", "-W", "-f", "${Package}\t${Depends}\n")
    return {
        name: {re.split(r"[\s(:]", each.strip())[0] for each in re.split(r"[,|]", rest) if each.strip()}
        for name, _, rest in (line.partition("\t") for line in text.splitlines())
    }


def reachable(start: set[str], graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    rest = set(start)
    while rest:
        name = rest.pop()
        seen.add(name)
        rest |= graph.get(name, set()) - seen
    return seen


def main(source: pathlib.Path, build: pathlib.Path) -> int:
    if not shutil.which("dpkg-query") or not (build / "build.ninja").is_file():
        print("minimal_test did not run: it needs Debian and a build by Ninja")
        return 77
    minimal, graph = listed(source), dependencies()
    needed = owners(files_of(build))
    assert len(needed) > 5, f"the build reads files of {needed} only"
    missing = needed - reachable(minimal, graph)
    unused = {name for name in minimal - PROGRAMS if not ({name} | graph.get(name, set())) & needed}
    if missing:
        print(f"the build reads files of {', '.join(sorted(missing))}; add them to the first list of tools/setup.sh")
    if unused:
        print(f"the build reads no file of {', '.join(sorted(unused))}; remove them from the first list of tools/setup.sh")
    print(f"{len(minimal)} packages, files of {len(needed)}")
    return 1 if missing or unused else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
