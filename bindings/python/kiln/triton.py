# SPDX-License-Identifier: Apache-2.0
"""kiln under Triton: entries that are verified when read, one compile per host or fleet, and bundles.

``TRITON_CACHE_MANAGER=kiln.triton:CacheManager`` enables it without a change to the program; :func:`install` does the
same from within, and also caches the digest that Triton computes of itself in every new process.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from typing import Any, Callable, Dict, Optional, Tuple

from kiln import _external
from kiln._file_cache import FileCache, is_plain_name
from kiln._memo import files_below, memoized

__all__ = ["CacheManager", "import_directory", "install"]

_SYSTEM = "triton"
# Libraries that run on the host: the remote store, to which running hosts write, does not serve them.
_HOST_SYSTEM = "triton.host"
_MAGIC = b"kiln triton group 1\n"
_MOST_FILES = 4096
_own_files = FileCache("triton")
# Inductor reads the files of a kernel from this directory, which it sets if the user did not.
_files = FileCache("triton", lambda: os.environ.get("TRITON_CACHE_DIR"))


def _pack(files: Dict[str, bytes]) -> bytes:
    """Returns all files of a group as one entry, so that a group is stored completely or not at all."""
    parts = [_MAGIC, struct.pack("<I", len(files))]
    for name, data in files.items():
        encoded = name.encode()
        parts += [struct.pack("<IQ", len(encoded), len(data)), encoded, data]
    return b"".join(parts)


def _unpack(data: bytes) -> Optional[Dict[str, bytes]]:
    """Returns None if the data is not a group, or names files outside of its directory."""
    if not data.startswith(_MAGIC):
        return None
    files: Dict[str, bytes] = {}
    try:
        (count,) = struct.unpack_from("<I", data, len(_MAGIC))
        at = len(_MAGIC) + 4
        if count > _MOST_FILES:
            return None
        for _ in range(count):
            name_size, size = struct.unpack_from("<IQ", data, at)
            at += 12
            if name_size > 255 or name_size + size > len(data) - at:
                return None
            name = data[at : at + name_size].decode()
            at += name_size
            if not is_plain_name(name) or name in files:
                return None
            files[name] = data[at : at + size]
            at += size
    except (struct.error, UnicodeDecodeError):
        return None
    return files if at == len(data) else None


def _entry(kind: str, key: str, filename: str) -> bytes:
    return "\0".join((kind, key, filename)).encode()


def _file_entry(key: str, filename: str) -> Tuple[str, bytes]:
    """Returns the system and the key of a single file."""
    if filename.endswith((".so", ".pyd", ".dylib")):
        # Triton's key does not contain the C library that a library was built against.
        return _HOST_SYSTEM, _entry("file", f"{key}\0{_external.host_name()}", filename)
    return _SYSTEM, _entry("file", key, filename)


class CacheManager:
    """The cache manager of Triton, one object per compile. Triton's own dumps and overrides are unchanged."""

    #: Seconds to wait for another process that compiles the same thing, before compiling it as well.
    wait_timeout = 30.0

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self._key = key
        self._files: Optional[Dict[str, bytes]] = None
        self._pending: Optional[_external.PendingCompile] = None
        self._plain: Any = None
        if override or dump:
            from triton.runtime.cache import FileCacheManager

            self._plain = FileCacheManager(key, override=override, dump=dump)

    def has_file(self, filename: str) -> bool:
        return self.get_file(filename) is not None

    def get_file(self, filename: str) -> Optional[str]:
        """Returns the path of a file, or None. After None the caller compiles and calls `put`."""
        if self._plain is not None:
            plain: Optional[str] = self._plain.get_file(filename)
            return plain
        if self._files is not None and filename in self._files:
            return _files.materialize(self._key, filename, self._files[filename])
        system, entry = _file_entry(self._key, filename)
        data, pending, _ = _external.get_or_claim(system, entry, self.wait_timeout, sys._getframe(1))
        if data is not None:
            return _files.materialize(self._key, filename, data)
        self._pending = pending
        return None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        """Stores a file and returns its path. Files of a group are stored with the group."""
        if self._plain is not None:
            plain: str = self._plain.put(data, filename, binary=binary)
            return plain
        if not isinstance(data, bytes):
            data = str(data).encode()
        path = _files.materialize(self._key, filename, data)
        if self._files is not None:
            self._files[filename] = data
            return path
        system, key = _file_entry(self._key, filename)
        pending = self._pending
        if pending is None or pending.key != key:
            pending = _external.PendingCompile(key)
        self._pending = None
        pending.store(system, data, filename)
        return path

    def get_group(self, filename: str) -> Optional[Dict[str, str]]:
        """Returns the verified files of a group as paths by name, or None. After None the caller compiles and calls
        `put_group`."""
        if self._plain is not None:
            plain: Optional[Dict[str, str]] = self._plain.get_group(filename)
            return plain
        self._files = {}
        entry = _entry("group", self._key, filename)
        data, pending, _ = _external.get_or_claim(_SYSTEM, entry, self.wait_timeout, sys._getframe(1))
        files = _unpack(data) if data is not None else None
        if files is not None:
            return _files.materialize_all(self._key, files)
        self._pending = pending
        return None

    def put_group(self, filename: str, group: Dict[str, str]) -> None:
        """Stores all files of a group as one entry."""
        if self._plain is not None:
            self._plain.put_group(filename, group)
            return
        files = {}
        for name, path in group.items():
            data = (self._files or {}).get(name)
            if data is None:
                with open(path, "rb") as file:
                    data = file.read()
            files[name] = data
        pending = self._pending or _external.PendingCompile(_entry("group", self._key, filename))
        self._pending = self._files = None
        pending.store(_SYSTEM, _pack(files), filename)


def install() -> None:
    """Enables kiln under Triton in this process. Also caches the digest of its own library that Triton computes at the
    first compile, as long as the files are unchanged."""
    from triton import knobs
    from triton.runtime import autotuner, cache

    knobs.cache.manager_class = CacheManager
    if not isinstance(cache.triton_key, _TritonKey):
        cache.triton_key = autotuner.triton_key = _TritonKey(cache.triton_key)


class _TritonKey:
    """Triton's digest of itself, which takes Triton half a second to compute."""

    def __init__(self, compute: Callable[[], str]) -> None:
        self._compute = compute
        self._known: Optional[str] = None

    def __call__(self) -> str:
        if self._known is None:
            import triton

            package = os.path.dirname(triton.__file__)
            files = [
                path
                for folder in ("compiler", "backends", "language", "runtime", "_C")
                for path in files_below(
                    os.path.join(package, folder), lambda name: name.endswith(".py") or name.startswith("libtriton")
                )
            ]
            self._known = memoized(_own_files, "triton_key", files, self._compute)
        return self._known


def import_directory(directory: str) -> int:
    """Imports a directory of Triton's own cache into kiln's, and returns the number of kernels. Corruption that is
    already there cannot be detected: only complete groups with readable metadata are imported."""
    taken = 0
    cache = _external.cache(_SYSTEM)
    with os.scandir(directory) as keys:
        for key in keys:
            if not key.is_dir(follow_symlinks=False):
                continue
            for name in os.listdir(key.path):
                if name.startswith("__grp__"):
                    files = _read_group(key.path, name)
                    if files is not None:
                        filename = name[len("__grp__") :]
                        cache.put(_entry("group", key.name, filename), _pack(files), name=filename)
                        taken += 1
    return taken


def _read_group(folder: str, name: str) -> Optional[Dict[str, bytes]]:
    # Its paths are those of the machine that wrote it; the files are next to it.
    files = {}
    try:
        with open(os.path.join(folder, name), "rb") as file:
            names = json.load(file)["child_paths"]
        for child in names:
            if not is_plain_name(child):
                return None
            with open(os.path.join(folder, child), "rb") as file:
                files[child] = file.read()
        json.loads(files[name[len("__grp__") :]])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return files


def _main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] != "import":
        print("usage: python -m kiln.triton import DIRECTORY", file=sys.stderr)
        print("imports a directory of Triton's own cache into kiln's", file=sys.stderr)
        return 2
    try:
        taken = import_directory(arguments[1])
    except OSError as error:
        print(f"kiln: cannot read {arguments[1]}: {error.strerror}", file=sys.stderr)
        print("Triton's cache is ~/.triton/cache or TRITON_CACHE_DIR", file=sys.stderr)
        return 1
    print(f"{taken} kernel{'' if taken == 1 else 's'} imported from {arguments[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
