# SPDX-License-Identifier: Apache-2.0
"""Bytes as files, for programs that need paths: in a directory of this user only, checked at each use."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import threading
import time
from typing import Callable, Optional

_UNUSED_SECONDS = 14 * 24 * 3600.0
_TOUCH_SECONDS = 3600.0
_PRUNE_SECONDS = 24 * 3600.0


def _cache_folder() -> Optional[str]:
    # Same default as the library without a configuration file. Another directory than the cache does no harm: these are
    # copies.
    for variable, separator in (("KILN_CACHE_PATH", ":"), ("KILN_CACHE_DIR", "\0")):
        first = os.environ.get(variable, "").partition(separator)[0]
        if first.startswith("/"):
            return first
    for variable, below in (("XDG_CACHE_HOME", "kiln"), ("HOME", ".cache/kiln")):
        value = os.environ.get(variable, "")
        if value.startswith("/"):
            return os.path.join(value, below)
    return None


def _is_private(path: str) -> bool:
    """Returns True for a directory of this user that no other user can write to, and that is not a link."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _is_protected(path: str) -> bool:
    """Returns True for a directory that only this user or root owns and can write to. Follows their links only."""
    try:
        link = os.lstat(path)
        found = os.stat(path)
    except OSError:
        return False
    own = (0, os.geteuid())
    return stat.S_ISDIR(found.st_mode) and link.st_uid in own and found.st_uid in own and not found.st_mode & 0o022


def is_plain_name(name: str) -> bool:
    """Returns True if it names a file inside a directory, and nothing outside of it."""
    return 0 < len(os.fsencode(name)) <= 255 and "/" not in name and "\0" not in name and name not in (".", "..")


def _read(path: str, most: int) -> Optional[bytes]:
    """Returns the bytes of a file, if it belongs to this user and is not larger than `most`."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            return None
        # Reads one byte more than expected, to detect a file that grew.
        data = os.read(file, found.st_size + 1) if found.st_size <= most else b""
        return data if len(data) == found.st_size else None
    except OSError:
        return None
    finally:
        os.close(file)


def _write(path: str, data: bytes) -> None:
    """Writes the file atomically, replacing an existing one."""
    folder, name = os.path.split(path)
    handle, temporary = tempfile.mkstemp(prefix=".new-", dir=folder)  # created with mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        os.unlink(temporary)
        raise


def _make_private(folder: str) -> None:
    """Creates a private directory. Raises OSError if that is not possible."""
    if _is_private(folder):
        return
    _make_all(folder, 0o700)
    if not _is_private(folder):
        raise PermissionError(f"{folder} is writable by other users")


def _make_all(path: str, mode: int) -> None:
    """Creates a directory with this mode, and missing parents with mode 0700. os.makedirs creates these with the mode
    of the umask."""
    path = os.path.abspath(path)
    missing: list[str] = []
    while not os.path.isdir(above := os.path.dirname(missing[-1]) if missing else path):
        missing.append(above)
    for each in reversed(missing):
        try:
            os.mkdir(each, mode if each == path else 0o700)
        except FileExistsError:
            pass  # another process created it


def _make_cache(cache: str) -> None:
    """Creates the cache directory as the library does: other users can read it, but not the directories above it.
    Raises OSError if another user can replace what is in it."""
    files = os.path.join(cache, "files")
    for path in (cache, files):
        _make_all(path, 0o755)
        if not _is_protected(path):
            raise PermissionError(f"{path} belongs to another user or is writable by other users")


def _place_in(folder: str, files: dict[str, bytes]) -> dict[str, str]:
    _make_private(folder)
    paths = {}
    for name, data in files.items():
        path = paths[name] = f"{folder}/{name}"
        if _read(path, len(data)) != data:
            _write(path, data)
    _note_use(folder)
    return paths


class FileCache:
    """Writes bytes to files and returns their paths: in the directory that `place` returns, if any, otherwise in the
    shared directory of this user. If that cannot be used, or if other users can write to it, uses a private directory of
    this process, which is removed at exit. Thread-safe."""

    def __init__(self, name: str, place: Callable[[], Optional[str]] = lambda: None) -> None:
        self._name = name
        self._place = place
        self._lock = threading.Lock()
        self._root: Optional[str] = None
        self._own: Optional[str] = None
        self._pid = 0

    def materialize(self, folder: str, name: str, data: bytes) -> str:
        """Returns the path of a file with this name and these bytes."""
        return self.materialize_all(folder, {name: data})[name]

    def materialize_all(self, folder: str, files: dict[str, bytes]) -> dict[str, str]:
        """Returns the paths of files with these names and bytes, all in one directory."""
        for name in (folder, *files):
            if not is_plain_name(name):
                raise ValueError(f"{name!r} is not a plain file name")
        for find in (self._place, self._shared_root):
            root = find()
            if not root:
                continue
            try:
                _make_private(root)
                return _place_in(os.path.join(root, folder), files)
            except OSError:
                pass  # full, read-only, or owned by another user: this process still gets its files
        return _place_in(os.path.join(self._own_root(), folder), files)

    def read(self, folder: str, name: str, most: int = 1 << 20) -> Optional[bytes]:
        """Returns the bytes of a file that a process of this user wrote. Only the owner of the file is verified."""
        root = self._shared_root()
        if root is None or not is_plain_name(folder) or not is_plain_name(name):
            return None
        where = os.path.join(root, folder)
        data = _read(os.path.join(where, name), most) if _is_private(where) else None
        if data is not None:
            _note_use(where)
        return data

    def _shared_root(self) -> Optional[str]:
        with self._lock:
            if self._pid == os.getpid():
                return self._root
            # a forked child does not share its parent's directory
            self._pid, self._root, self._own = os.getpid(), None, None
            cache = _cache_folder()
            if cache is None:
                return None
            root = os.path.join(cache, "files", self._name)
            try:
                _make_cache(cache)
                _make_private(root)
            except OSError:
                return None
            _prune(root)
            self._root = root
            return root

    def _own_root(self) -> str:
        with self._lock:
            if self._own is None or not os.path.isdir(self._own):
                self._own = _make_own(self._name)
                atexit.register(_remove_own, self._own, os.getpid())
            return self._own


def _make_own(name: str) -> str:
    try:
        return tempfile.mkdtemp(prefix=f"kiln-{name}-")
    except OSError:
        return tempfile.mkdtemp(prefix=f"kiln-{name}-", dir="/dev/shm")


def _remove_own(folder: str, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)


def _note_use(folder: str) -> None:
    try:
        if time.time() - os.stat(folder).st_mtime > _TOUCH_SECONDS:
            os.utime(folder)
    except OSError:
        pass


def _prune(root: str) -> None:
    """Removes, once a day, directories that were not used for a while: their contents are still in the cache."""
    mark = os.path.join(root, ".pruned")
    now = time.time()
    try:
        if now - os.stat(mark).st_mtime < _PRUNE_SECONDS:
            return
    except OSError:
        pass
    try:
        with open(mark, "wb"):
            os.utime(mark)
        with os.scandir(root) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and now - entry.stat().st_mtime > _UNUSED_SECONDS:
                    shutil.rmtree(entry.path, ignore_errors=True)
    except OSError:
        pass
