# SPDX-License-Identifier: Apache-2.0
"""Faults of the environment: too few descriptors, a full disk, a clock that jumps."""
import dataclasses
import os
import pathlib
import shutil
import subprocess

IDLE = ["--fault", "0:reboot:1:EIO"]  # a call that no program makes, so that nothing is traced
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
# The last two go back while the program runs, at each read of the clock: by a second, by an hour.
CLOCKS = ["+1h", "-1h", "+10y", "-10y", "+0 i-1.0", "+0 i-3600.0"]


@dataclasses.dataclass(frozen=True)
class Files:
    """A limit on the number of descriptors, including 0, 1 and 2."""
    count: int
    kind = "descriptors"
    what = ""
    process = 0

    def __str__(self):
        return f"files:{self.count}"

    def options(self):
        return ["--files", str(self.count), *IDLE]

    def before(self):
        return []


@dataclasses.dataclass(frozen=True)
class Clock:
    """Wall time from libfaketime. The steady clock and file times are not changed."""
    shift: str
    kind = "clock"
    what = ""
    process = 0

    def __str__(self):
        return f"clock:{self.shift}"

    def options(self):
        return IDLE

    def before(self):
        return ["env", f"LD_PRELOAD={FAKETIME}", f"FAKETIME={self.shift}", "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1",
                "FAKETIME_NO_CACHE=1"]


@dataclasses.dataclass(frozen=True)
class Disk:
    """A file system with this many bytes or names left. The operation writes only to it."""
    left: int
    names: bool = False
    kind = "disk full"
    what = ""
    process = 0

    def __str__(self):
        return f"disk:{self.left}{' names' if self.names else ''}"

    def options(self):
        return IDLE

    def before(self):
        return []


def parsed(text):
    """Parses a fault as written by str(); None for a fault of a system call."""
    word, _, rest = text.partition(":")
    if word == "files":
        return Files(int(rest))
    if word == "clock":
        return Clock(rest)
    if word == "disk":
        left, _, names = rest.partition(" ")
        return Disk(int(left), names == "names")
    return None


class Full:
    """A tmpfs on a directory, in the mount namespace of the campaign."""
    PLENTY = "size=64m,nr_inodes=10000"

    def __init__(self, root):
        self.root = pathlib.Path(root)

    def begin(self, template):
        self.end()
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", self.PLENTY + ",mode=700", "faults", self.root], check=True)
        shutil.copytree(template.root, self.root, symlinks=True, dirs_exist_ok=True)

    def bound(self, disk):
        state = os.statvfs(self.root)
        size = (state.f_blocks - state.f_bfree) * state.f_frsize + disk.left
        names = state.f_files - state.f_ffree + disk.left
        self.remount(f"nr_inodes={names}" if disk.names else f"size={size}")

    def unbound(self):
        self.remount(self.PLENTY)

    def remount(self, options):
        subprocess.run(["mount", "-o", "remount," + options, self.root], check=True)

    def end(self):
        if os.path.ismount(self.root):
            subprocess.run(["umount", "-l", self.root], check=True)


def planned():
    # tmpfs counts pages: these limits cover every page up to what all operations need, and each name.
    files = [Files(count) for count in range(3, 33)]
    disks = [Disk(kilobytes * 1024) for kilobytes in range(0, 100, 4)] + [Disk(count, True) for count in range(24)]
    return files + disks + [Clock(shift) for shift in CLOCKS]
