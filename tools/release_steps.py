# SPDX-License-Identifier: Apache-2.0
"""The logic of tools/release that needs no build: the steps, their table, and the comparison of an SBOM and a source distribution."""
import hashlib
import pathlib
import re
import subprocess
import tarfile
import time
from dataclasses import dataclass
from typing import Callable


class Failure(Exception):
    """A step that failed: the cause, and the next step."""


@dataclass
class Step:
    """An artifact or a group of artifacts: `build` returns the files, `verify` returns a description of the verification."""

    name: str
    build: Callable[[], list[pathlib.Path]]
    verify: Callable[[pathlib.Path], str]
    group: bool = False  # the artifacts are verified together: verify is called once, with the first


@dataclass
class Row:
    name: str
    size: str
    digest: str
    result: str
    build: float
    check: float
    how: str


def sha256(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run_steps(steps: list[Step], say: Callable[[str], None] = lambda text: None) -> list[Row]:
    """Runs the steps in order. A failed step does not end the run, because the table lists every artifact."""
    rows = []

    def timed(call: Callable, *arguments: object) -> tuple[object, str, float]:
        start = time.monotonic()
        try:
            return call(*arguments), "", time.monotonic() - start
        except (Failure, OSError, ValueError, LookupError, subprocess.SubprocessError) as error:
            say(f"failed: {error}")
            return None, " ".join(str(error).split())[:200] or repr(error), time.monotonic() - start

    for step in steps:
        say(f"{step.name}: build")
        paths, cause, build = timed(step.build)
        missing = [path.name for path in paths or [] if not path.is_file()]
        if cause or missing or not paths:
            cause = cause or (f"{missing[0]} was not written" if missing else "no file was written")
            rows.append(Row(step.name, "-", "-", "NOT BUILT", build, 0, cause))
            continue
        how, check = "", 0.0
        for number, path in enumerate(paths):
            if number == 0 or not step.group:
                say(f"{path.name}: verify")
                how, cause, check = timed(step.verify, path)
            rows.append(Row(path.name, str(path.stat().st_size), sha256(path), "FAILED" if cause else "passed",
                            build if number == 0 else 0, check if number == 0 or not step.group else 0, cause or str(how)))
    return rows


def table(rows: list[Row]) -> str:
    """Returns the rows as aligned text. A step that made several files has its times in the first line."""
    lines = [("artifact", "bytes", "sha256", "result", "build s", "verify s", "verified by (or cause)")]
    lines += [(r.name, r.size, r.digest, r.result, *(f"{s:.1f}" if s else "" for s in (r.build, r.check)), r.how) for r in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(7)]
    aligned = [[cell.rjust(width) if column in (1, 4, 5) else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(line, widths))] for line in lines]
    return "\n".join("  ".join(line).rstrip() for line in aligned) + "\n"


def write_sums(folder: pathlib.Path, rows: list[Row]) -> None:
    (folder / "SHA256SUMS").write_text("".join(f"{row.digest}  {row.name}\n" for row in rows if row.digest != "-"))


def check_sbom(document: dict, versions: dict[str, str], packages: dict[str, str], archives: dict[str, str]) -> int:
    """Compares each component with what is installed and linked, and returns the number of third-party components.

    `versions` are those that the program reports, `packages` those of dpkg, `archives` the digests of the linked archives."""
    components = {each["name"]: each for each in document["packages"]}
    for name, version in versions.items():
        said = components.get(name, {}).get("versionInfo", "nothing")
        if not re.match(rf"(\d+:)?{re.escape(version)}(?![0-9.])", said):
            raise Failure(f"the program contains {name} {version}, the SBOM says {said}")
    listed = set()
    for name, each in components.items():
        for reference in each.get("externalRefs", []):
            found = re.fullmatch(r"pkg:deb/debian/([^@]+)@(.+)", reference["referenceLocator"].replace("%2B", "+"))
            if found and packages.get(found[1]) != found[2]:
                raise Failure(f"the SBOM says {found[1]} {found[2]}, this system has {packages.get(found[1])}")
        if not each.get("versionInfo"):
            raise Failure(f"{name} has no version in the SBOM")
        for checksum in each.get("checksums", []):
            listed.add(each["packageFileName"])
            if archives.get(each["packageFileName"]) != checksum["checksumValue"]:
                raise Failure(f"the SBOM has another digest of {each['packageFileName']} than the linked file")
    if listed != set(archives):
        raise Failure(f"the SBOM lists {sorted(listed)}, the build links {sorted(archives)}")
    return len(components) - 1


def compare_sdist(archive: pathlib.Path, tree: pathlib.Path) -> int:
    """Returns the number of files, each of which is equal to that of the source archive; PKG-INFO is generated."""
    count = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.partition("/")[2]
            if member.isfile() and name != "PKG-INFO":
                count += 1
                if not (tree / name).is_file() or tar.extractfile(member).read() != (tree / name).read_bytes():
                    raise Failure(f"{name} differs from the source archive's")
    return count
