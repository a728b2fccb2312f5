# SPDX-License-Identifier: Apache-2.0
"""Results computed from files, cached until the files change: a digest of a compiler's libraries takes half a second in
every process that would otherwise compile nothing."""

from __future__ import annotations

import hashlib
import os
import time
from typing import Callable, Iterable, Optional

from kiln._file_cache import FileCache

# A file that changed this recently could change again without a visible change of its times.
_SETTLED_SECONDS = 2.0


def files_below(folder: str, wanted: Callable[[str], bool] = lambda name: True) -> list[str]:
    """Returns all files of a tree, in order. Skips compiled Python files, which come and go."""
    files = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        files += [os.path.join(where, name) for name in sorted(names) if wanted(name)]
    return files


def _stamp(files: Iterable[str]) -> Optional[str]:
    """Returns a digest of the paths, sizes and times of files, to detect changes. None if a file changed so recently
    that a further change could go unnoticed."""
    seen = hashlib.sha256()
    newest = 0
    for path in files:
        found = os.stat(path)
        newest = max(newest, found.st_ctime_ns, found.st_mtime_ns)
        line = f"{path}\0{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}\n"
        seen.update(os.fsencode(line))
    return seen.hexdigest() if newest < (time.time() - _SETTLED_SECONDS) * 1e9 else None


def memoized(cache: FileCache, what: str, files: Iterable[str], compute: Callable[[], str]) -> str:
    """Returns the result of `compute` for these files, which are not read while they are unchanged. The cached result
    is a file that only this user can write."""
    try:
        stamp = _stamp(files)
    except OSError:
        stamp = None
    if stamp is None:
        return compute()
    folder = f"{what}-{stamp}"
    found = cache.read(folder, what)
    if found is not None:
        digest, _, value = found.partition(b"\n")
        if digest == hashlib.sha256(value).hexdigest().encode():
            return value.decode()
    computed = compute()
    value = computed.encode()
    try:
        cache.materialize(folder, what, hashlib.sha256(value).hexdigest().encode() + b"\n" + value)
    except OSError:
        pass  # it is computed again in another process
    return computed
