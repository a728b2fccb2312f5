# SPDX-License-Identifier: Apache-2.0
"""A directory that counts as a volume. In a container, kiln keeps precompiled headers only on a volume (docs/explanation/precompiled-headers.md),
and benchmarks also run on machines that are containers."""

from __future__ import annotations

import os
import pathlib


def in_container() -> bool:
    """Returns whether kiln takes this machine for a container, by the files and variables that it looks at."""
    mounts = pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    if any(line.split()[1:3] == ["/", "overlay"] for line in mounts):
        return True
    return os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv") or bool(os.environ.get("container"))


def on_volume(command: list[str], directory: pathlib.Path) -> list[str]:
    """Returns a command that runs another with a directory mounted on itself, in a mount namespace of its own, if this machine is a
    container and permits it; else the same command."""
    if not in_container() or os.geteuid() != 0:
        return command
    return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$0" && exec "$@"', str(directory), *command]
