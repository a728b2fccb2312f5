# SPDX-License-Identifier: Apache-2.0
"""Prebuilt libraries for FlashInfer, which imports this module by name: those that `kiln jit fill` placed in its workspace.

FlashInfer loads them without running ninja. They run on the host: nothing is served unless `KILN_JIT_HOST_CODE` names
`flashinfer`.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import pathlib
import re
import stat
import struct
from typing import Callable, FrozenSet, NamedTuple, Tuple

__all__ = ["Provider", "get_jit_cache_providers"]

# FlashInfer accepts only its own version, with a suffix.
_SUPPORTED = "0.7."
_SUFFIX = "+kiln"
_ARCHITECTURES = re.compile(r"[0-9]{2,3}[af]?(_[0-9]{2,3}[af]?)*")


class Provider(NamedTuple):
    """The libraries for one set of architectures, with the members that FlashInfer reads."""

    provider_id: str
    distribution: str
    version: str
    jit_cache_dir: pathlib.Path
    cuda_architectures: FrozenSet[str]
    modules: FrozenSet[str]


def _flashinfer_version() -> str:
    try:
        return importlib.metadata.version("flashinfer-python")
    except importlib.metadata.PackageNotFoundError:
        return "0"


__version__ = _flashinfer_version() + _SUFFIX


def get_jit_cache_providers() -> Tuple[Provider, ...]:
    """Returns the libraries of this user's workspace that FlashInfer did not build itself."""
    version = _flashinfer_version()
    if "flashinfer" not in [name.strip() for name in os.environ.get("KILN_JIT_HOST_CODE", "").split(",")]:
        return ()
    if not version.startswith(_SUPPORTED):
        logging.getLogger("kiln").warning(
            "FlashInfer is not changed: kiln supports %s* and not %s; FlashInfer compiles itself", _SUPPORTED, version
        )
        return ()
    base = os.environ.get("FLASHINFER_WORKSPACE_BASE") or os.path.expanduser("~")
    workspace = pathlib.Path(base, ".cache", "flashinfer", version)
    found = (_provider(folder) for folder in _folders(workspace) if _ARCHITECTURES.fullmatch(folder.name))
    return tuple(provider for provider in found if provider.modules)


def _provider(workspace: pathlib.Path) -> Provider:
    place = workspace / "cached_ops"
    modules = frozenset(folder.name for folder in _folders(place) if _is_filled(folder))
    architectures = frozenset(f"sm{one}" for one in workspace.name.split("_"))
    name = f"kiln-{workspace.name}"
    return Provider(name, "kiln-flashinfer-jit-cache", __version__, place, architectures, modules)


def _folders(place: pathlib.Path) -> list[pathlib.Path]:
    """Returns the folders below a folder, if only this user can write to it."""
    if not _is_own(place, stat.S_ISDIR):
        return []
    try:
        return [path for path in sorted(place.iterdir()) if _is_own(path, stat.S_ISDIR)]
    except OSError:
        return []


def _is_own(path: pathlib.Path, is_kind: Callable[[int], bool]) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return is_kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _is_filled(folder: pathlib.Path) -> bool:
    """Returns True for a folder with a complete library that ninja does not know."""
    library = folder / f"{folder.name}.so"
    return not os.path.lexists(folder / "build.ninja") and _is_own(library, stat.S_ISREG) and _is_whole(library)


def _is_whole(library: pathlib.Path) -> bool:
    """Returns False for a truncated ELF file, which would end the program with SIGBUS: its section table, which is last,
    is not in the file."""
    try:
        with open(library, "rb") as file:
            head = file.read(64)
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return False
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        return False
    (table,) = struct.unpack_from("<Q", head, 40)
    entry, count = struct.unpack_from("<HH", head, 58)
    return bool(0 < table <= size - entry * count)
