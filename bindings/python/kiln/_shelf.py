"""Bytes as files, for programs that take paths: in a folder of this user's alone, checked each time it is used."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import threading
import time
from typing import Optional

_UNUSED_SECONDS = 14 * 24 * 3600.0
_TOUCH_SECONDS = 3600.0
_PRUNE_SECONDS = 24 * 3600.0


def _cache_folder() -> Optional[str]:
    # As the library does where no file says otherwise. Elsewhere than the cache is no harm: these are copies.
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
    """A folder of this user that nobody else can write to, and no link to one."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def is_plain_name(name: str) -> bool:
    """Whether it names a file in a folder, and nothing outside of it."""
    return 0 < len(os.fsencode(name)) <= 255 and "/" not in name and "\0" not in name and name not in (".", "..")


def _read(path: str, most: int) -> Optional[bytes]:
    """A file's bytes, where it is this user's own and has no more than that."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            return None
        # One byte more than there should be, so that a file that grew is seen.
        data = os.read(file, found.st_size + 1) if found.st_size <= most else b""
        return data if len(data) == found.st_size else None
    except OSError:
        return None
    finally:
        os.close(file)


def _write(path: str, data: bytes) -> None:
    """Makes the file appear whole, in place of any that is there."""
    folder, name = os.path.split(path)
    handle, temporary = tempfile.mkstemp(prefix=".new-", dir=folder)  # 0600, and nobody's before
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        os.unlink(temporary)
        raise


def _make_private(folder: str) -> None:
    """Sees to it that there is such a folder; an OSError where there cannot be."""
    if _is_private(folder):
        return
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not _is_private(folder):
        raise PermissionError(f"{folder} can be written by others")


def _place_in(folder: str, files: dict[str, bytes]) -> dict[str, str]:
    _make_private(folder)
    paths = {}
    for name, data in files.items():
        path = paths[name] = f"{folder}/{name}"
        if _read(path, len(data)) != data:
            _write(path, data)
    _note_use(folder)
    return paths


class Shelf:
    """Puts bytes where a path leads to them. Any thread. A place that cannot be used, or that others can write to, is
    replaced by one of this process's own, which goes with it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._root: Optional[str] = None
        self._own: Optional[str] = None
        self._pid = 0

    def place(self, folder: str, name: str, data: bytes) -> str:
        """The path of a file with this name and these bytes."""
        return self.place_all(folder, {name: data})[name]

    def place_all(self, folder: str, files: dict[str, bytes]) -> dict[str, str]:
        """The paths of files with these names and bytes, all in one folder."""
        for name in (folder, *files):
            if not is_plain_name(name):
                raise ValueError(f"{name!r} is not the name of a file in a folder")
        root = self._shared_root()
        if root is not None:
            try:
                return _place_in(os.path.join(root, folder), files)
            except OSError:
                pass  # full, read only, or not ours: this process still gets its files
        return _place_in(os.path.join(self._own_root(), folder), files)

    def read(self, folder: str, name: str, most: int = 1 << 20) -> Optional[bytes]:
        """The bytes of a file that some process of this user put there. Nothing vouches for them but their owner."""
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
            self._pid, self._root, self._own = os.getpid(), None, None  # a forked child has no share in its parent's
            cache = _cache_folder()
            if cache is None:
                return None
            root = os.path.join(cache, "files", self._name)
            try:
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
    """Removes, once a day, the folders that nobody used for a while: what was in them is still in the cache."""
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
