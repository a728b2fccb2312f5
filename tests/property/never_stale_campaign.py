#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test_never_stale on several file systems and prints one table.

    never_stale_campaign.py PROGRAM FOLDER [--on NAME,NAME] [--changes N] [--edit-every N] [--seed N]

PROGRAM is test_never_stale. FOLDER is the directory for image files, mount points and logs. The script creates it and leaves
only the logs in it. Each file system is mounted from a sparse image file in a private mount namespace, so it is unmounted when
its last process ends, even if this script is killed. This needs root and the mkfs program. A file system that is not available
is skipped with the reason.

Exit codes: 0 on success, 1 after a mismatch, a needless compile or a failed run, 77 if everything was skipped.
"""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

SKIPPED = 77
IMAGE_SIZE = 768 << 20  # sparse; the minimum that all of them accept is about 300 MB
TIME_LIMIT = 3600  # seconds for one file system
# File system name -> mkfs command for an image, or None if no image is needed.
MADE_BY = {
    "ext4-128": ["mkfs.ext4", "-q", "-F", "-I", "128"],  # 128-byte inodes have timestamps of whole seconds
    "ext4": ["mkfs.ext4", "-q", "-F", "-I", "256"],
    "tmpfs": None,
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
    "overlayfs": ["mkfs.ext4", "-q", "-F", "-I", "256"],  # holds the upper and the lower directory
}
ABOUT = {
    "ext4-128": "ext4, 128-byte inodes",
    "ext4": "ext4, 256-byte inodes",
    "tmpfs": "tmpfs in /dev/shm",
}
HEADS = ["file system", "changes", "edits during compile", "mismatches", "compiles", "needless compiles", "not stored", "seconds"]


@dataclass
class Row:
    name: str
    figures: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)  # reasons why results were not stored
    problem: str = ""  # reason of a skip or failure
    skipped: bool = False

    def cells(self) -> list[str]:
        about = ABOUT.get(self.name, self.name)
        if not self.figures:
            return [about, *["-"] * (len(HEADS) - 1)]
        shown = [self.figures[one] for one in ("changes", "edits", "mismatches", "compiles", "needless")]
        return [about, *shown, str(sum(self.reasons.values())), self.figures["seconds"]]

    def good(self) -> bool:
        return self.skipped or not self.problem


def missing(name: str) -> str:
    """Returns the reason why this file system is not available; empty if it is."""
    if name == "tmpfs":
        return "" if os.access("/dev/shm", os.W_OK | os.X_OK) else "/dev/shm cannot be written"
    if os.geteuid() != 0:
        return "mounting an image file needs root"
    for program in ("unshare", "mount", MADE_BY[name][0]):
        if shutil.which(program) is None:
            return f"{program} is not installed (tools/setup.sh)"
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True)
    return tried.stderr.strip()


# Runs in a private mount namespace: mounts image $1 on $2 and, for overlayfs, its layers; then runs the remaining
# arguments.
MOUNT = r"""
set -eu
image=$1 place=$2 kind=$3; shift 3
mount -o loop "$image" "$place" || exit 77
if [ "$kind" = overlayfs ]; then
  mkdir "$place/lower" "$place/upper" "$place/work" "$place/merged"
  # Headers that are in the lower layer are copied up by the first edit.
  KILN_TEST_PREPARE=1 KILN_TEST_FOLDER="$place/lower" "$@" >/dev/null
  mount -t overlay -o "lowerdir=$place/lower,upperdir=$place/upper,workdir=$place/work" overlay "$place/merged" || exit 77
  place=$place/merged
fi
KILN_TEST_FOLDER=$place exec "$@"
"""


@contextlib.contextmanager
def command_on(name: str, program: str, folder: pathlib.Path):
    """Yields the command that runs the program on a file system, and cleans up afterwards."""
    if name == "tmpfs":
        with tempfile.TemporaryDirectory(prefix="kiln-never-stale-", dir="/dev/shm") as place:
            yield ["env", f"KILN_TEST_FOLDER={place}", program]
        return
    image, place = folder / f"{name}.image", folder / name
    place.mkdir(parents=True, exist_ok=True)
    image.unlink(missing_ok=True)
    try:
        with open(image, "wb") as file:
            file.truncate(IMAGE_SIZE)
        subprocess.run([*MADE_BY[name], str(image)], check=True, capture_output=True, text=True)
        yield ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNT, "sh", str(image), str(place), name, program]
    finally:
        image.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            place.rmdir()


def run_in_time(command: list[str], environment: dict[str, str], log: pathlib.Path) -> int | None:
    """Returns the exit code, or None after the time limit. Kills all processes that it started."""
    with open(log, "w", encoding="utf-8") as out:
        process = subprocess.Popen(command, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return process.wait(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def row_of(name: str, given: argparse.Namespace) -> Row:
    row = Row(name)
    row.problem = missing(name)
    if row.problem:
        row.skipped = True
        return row
    log = given.folder / f"{name}.log"
    environment = {"KILN_TEST_CHANGES": str(given.changes), "KILN_TEST_EDIT_EVERY": str(given.edit_every),
                   "KILN_TEST_SEED": str(given.seed)}
    try:
        with command_on(name, given.program, given.folder) as command:
            code = run_in_time(command, environment, log)
    except subprocess.CalledProcessError as error:
        row.problem = f"{error.cmd[0]} failed: {error.stderr.strip()}"
        return row
    text = log.read_text(encoding="utf-8", errors="replace")
    if figures := re.search(r"^figure: never stale with \S+: (.*)$", text, re.MULTILINE):
        row.figures = dict(one.split("=") for one in figures[1].split())
    for count, why in re.findall(r"^not stored: (\d+): (.*)$", text, re.MULTILINE):
        # Some reasons start with the name of a header.
        why = re.sub(r"^\S+ (?=appeared|changed)", "a file ", why)
        row.reasons[why] = row.reasons.get(why, 0) + int(count)
    last = (text.strip().splitlines() or ["no output"])[-1]
    if thrown := re.search(r"C\+\+ exception.*", text):
        last = thrown[0]
    if code == SKIPPED:
        row.problem, row.skipped = last, True
    elif code is None:
        row.problem = f"took longer than {TIME_LIMIT} s; see {log}"
    elif code == 0 and not row.figures:
        skipped = re.search(r"Skipped\n(.*)", text)
        row.problem, row.skipped = skipped[1] if skipped else f"printed no figures; see {log}", bool(skipped)
    elif code != 0:
        row.problem = f"the results are wrong; see {log}" if row.figures else f"ended with {code}: {last}; see {log}"
    return row


def table(rows: list[Row]) -> str:
    cells = [HEADS, *(row.cells() for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADS))]
    lines = []
    for row in cells:
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return "\n".join(lines)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--on", default=",".join(MADE_BY), metavar="NAME,NAME", help=f"of {', '.join(MADE_BY)}")
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--edit-every", type=int, default=3, help="make every N-th change while the compiler runs")
    parser.add_argument("--seed", type=int, default=20261115)
    given = parser.parse_args()
    given.on = given.on.split(",")
    given.folder = given.folder.resolve()
    if unknown := set(given.on) - set(MADE_BY):
        parser.error(f"unknown file system: {', '.join(sorted(unknown))}")
    return given


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the program is killed and the image removed
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    given = options()
    given.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in given.on:
        row = row_of(name, given)
        rows.append(row)
        state = "skipped: " + row.problem if row.skipped else row.problem or "good"
        print(f"{name}: {state}", file=sys.stderr, flush=True)
    text = table(rows) + "\n"
    for row in rows:
        for why, count in sorted(row.reasons.items(), key=lambda item: (-item[1], item[0])):
            text += f"{row.name}: {count} not stored: {why}\n"
        if row.figures.get("beyond_hints", "0") != "0":
            text += f"{row.name}: {row.figures['beyond_hints']} compiled again after 16 newer dependency sets of the unit: allowed\n"
        if row.problem:
            text += f"{row.name}: {'skipped: ' if row.skipped else ''}{row.problem.replace(str(given.folder), given.folder.name)}\n"
    print(text, end="")
    if all(row.skipped for row in rows):
        return SKIPPED
    return 0 if all(row.good() for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
